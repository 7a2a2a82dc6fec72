// Many threads of control in one thread, each with a stack of its own that takes memory only where it was
// touched: 10,000 ranks in one process. Over ucontext, which every Linux has.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace warren::simulation {

/// Memory for the stacks of so many fibers, with a page between every two that no one may touch.
class Stacks {
 public:
  Stacks(std::size_t count, std::size_t bytes_each);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  void* At(std::size_t index) const { return begin_ + index * stride_ + kGuardBytes; }
  std::size_t bytes_each() const { return stride_ - kGuardBytes; }

 private:
  static constexpr std::size_t kGuardBytes = 4096;
  std::byte* begin_ = nullptr;
  std::size_t stride_ = 0;
  std::size_t bytes_ = 0;
};

/// Not thread safe; must stay where it is.
class Fiber {
 public:
  Fiber(void* stack, std::size_t stack_bytes, std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the body until it suspends itself or ends. Rethrows what the body threw.
  void Resume();
  /// Called from inside the body: returns when somebody calls Resume again.
  void Suspend();
  bool finished() const { return finished_; }

 private:
  static void Enter();

  ucontext_t own_{};
  ucontext_t caller_{};
  std::function<void()> body_;
  std::exception_ptr error_;
  bool finished_ = false;
};

}  // namespace warren::simulation
