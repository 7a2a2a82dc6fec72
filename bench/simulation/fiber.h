// Fibers, so that one thread can run 10,000 ranks. Each has a separate stack, which only takes memory for the
// pages that have been touched. Based on glibc's ucontext.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace warren::simulation {

/// Memory for the stacks of `count` fibers, separated by inaccessible guard pages.
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

/// Not thread-safe.
class Fiber {
 public:
  Fiber(void* stack, std::size_t stack_bytes, std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the body until it suspends itself or ends. Rethrows its exception.
  void Resume();
  /// Called by the body: returns at the next call of Resume.
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
