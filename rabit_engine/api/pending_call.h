// A call that was given and that nobody waits for yet: what a handle is to its user.
#pragma once

#include <exception>
#include <functional>

namespace warren::api {

/// Thread safe.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  /// Whether it has ended, well or not.
  virtual bool HasEnded() = 0;
  /// Returns when it has ended. Throws its error, or Misuse in a process that was forked after it was given.
  virtual void Wait() = 0;
  /// Calls the function when it has ended, with its error or nullptr, at once if it has; from any thread. The
  /// function must neither throw nor wait for operations.
  virtual void WhenEnded(std::function<void(const std::exception_ptr& error)> function) = 0;
};

}  // namespace warren::api
