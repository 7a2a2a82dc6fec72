// A call in progress: the object behind a user's handle.
#pragma once

#include <exception>
#include <functional>

namespace warren::api {

/// Thread-safe.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  /// Whether the call has ended, successfully or not.
  virtual bool HasEnded() = 0;
  /// Waits until the call has ended. Throws the call's error, or Misuse in a process forked after the call
  /// was made.
  virtual void Wait() = 0;
  /// Calls the function, with the call's error or nullptr, once the call has ended: on any thread, or
  /// immediately if the call has already ended. The function must neither throw nor wait for operations.
  virtual void WhenEnded(std::function<void(const std::exception_ptr& error)> function) = 0;
};

}  // namespace warren::api
