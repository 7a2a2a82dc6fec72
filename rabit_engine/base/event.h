// Wakes a thread of this process that waits for descriptors.
#pragma once

#include "rabit_engine/base/descriptor.h"

namespace warren {

class Event {
 public:
  Event() = default;
  /// None, and errno, where no descriptors are left.
  static Event Make();

  explicit operator bool() const { return static_cast<bool>(heard_); }
  /// Readable from a ring until it is drained.
  int fd() const { return heard_.fd(); }
  /// Of any thread, and of a signal handler.
  void Ring() const noexcept;
  void Drain() const noexcept;

 private:
  CloseOnForkDescriptor heard_;
  CloseOnForkDescriptor rung_;  ///< where that is another one
};

}  // namespace warren
