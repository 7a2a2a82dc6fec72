// A call in progress: the object behind a user's handle.
#pragma once

#include <exception>
#include <functional>

namespace warren::api {

/// Thread-safe.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  /// Whether it has ended, with success or not.
  virtual bool HasEnded() = 0;
  /// Waits until it has ended. Throws its error, or Misuse in a process forked after the call was made.
  virtual void Wait() = 0;
  /// Calls the function, with the error or nullptr, once the call has ended: on any thread, or immediately if
  /// it has already ended. The function must neither throw nor wait for operations.
  virtual void WhenEnded(std::function<void(const std::exception_ptr& error)> function) = 0;
};

}  // namespace warren::api
