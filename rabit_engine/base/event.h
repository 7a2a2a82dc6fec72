// Wakes a thread of this process that waits for descriptors.
#pragma once

#include "rabit_engine/base/descriptor.h"

namespace warren {

class Event {
 public:
  Event() = default;
  /// Returns an empty event, with errno set, if no descriptor can be created.
  static Event Make();

  explicit operator bool() const { return static_cast<bool>(heard_); }
  /// The descriptor to wait for: readable from Ring until Drain.
  int fd() const { return heard_.fd(); }
  /// May be called on any thread, and in a signal handler.
  void Ring() const noexcept;
  void Drain() const noexcept;

 private:
  CloseOnForkDescriptor heard_;
  CloseOnForkDescriptor rung_;  ///< the write end, if it is a separate descriptor
};

}  // namespace warren
