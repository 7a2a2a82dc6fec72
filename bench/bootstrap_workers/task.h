// A coroutine that another one awaits, so that a simulated worker can call "connect" or "receive" and
// continue when the result is ready. Single-threaded. Exceptions propagate to the awaiting coroutine.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace warren::bench {

/// Resumes the coroutine that awaited the finished task.
struct ResumeCaller {
  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
    return ended.promise().caller;
  }
  void await_resume() const noexcept {}
};

struct TaskPromiseBase {
  std::suspend_always initial_suspend() noexcept { return {}; }
  ResumeCaller final_suspend() noexcept { return {}; }
  void unhandled_exception() { failure = std::current_exception(); }

  std::coroutine_handle<> caller;
  std::exception_ptr failure;
};

template <typename T>
struct TaskPromise : TaskPromiseBase {
  std::coroutine_handle<TaskPromise> get_return_object() {
    return std::coroutine_handle<TaskPromise>::from_promise(*this);
  }
  void return_value(T result) { value = std::move(result); }
  T Result() { return std::move(*value); }

  std::optional<T> value;
};

template <>
struct TaskPromise<void> : TaskPromiseBase {
  std::coroutine_handle<TaskPromise> get_return_object() {
    return std::coroutine_handle<TaskPromise>::from_promise(*this);
  }
  void return_void() {}
  void Result() {}
};

/// Starts when awaited. May be awaited once.
template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = TaskPromise<T>;

  Task(std::coroutine_handle<promise_type> coroutine)
      : coroutine_(coroutine) {}  // NOLINT: made by the compiler
  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
    coroutine_.promise().caller = caller;
    return coroutine_;
  }
  T await_resume() {
    if (coroutine_.promise().failure) std::rethrow_exception(coroutine_.promise().failure);
    return coroutine_.promise().Result();
  }

 private:
  std::coroutine_handle<promise_type> coroutine_;
};

/// A coroutine that is not awaited: it starts immediately and frees itself. It must not throw.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

}  // namespace warren::bench
