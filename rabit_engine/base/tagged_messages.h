// Messages with tags between the ranks of a communicator, independent of its calls. Any number of messages
// may be in flight; only messages with the same sender, receiver and tag are sure to arrive in order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

namespace warren {

/// Thread-safe.
class TaggedMessages {
 public:
  static constexpr int kAnyRank = -1;
  /// Called once, with the error or, on success, with nullptr and the sender; on any thread, possibly before
  /// Send or Receive returns. Must neither throw nor wait for messages.
  using Ended = std::function<void(const std::exception_ptr& error, int from)>;

  virtual ~TaggedMessages() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// Whether the calling thread is the one on which messages end: such a thread must not destroy this object.
  virtual bool EndsOnThisThread() = 0;
  /// Sends to another rank. Completes when `data` may be reused; a long message completes only after the
  /// other rank has started to receive it. `patience`: how long to wait for a rank that is alive; 0: the time
  /// in the settings (collective_timeout).
  virtual void Send(int to, std::uint64_t tag, const void* data, std::size_t bytes,
                    std::chrono::milliseconds patience, Ended ended) = 0;
  /// Receives from another rank, or from kAnyRank. If the message has a different length, only this receive
  /// fails.
  virtual void Receive(int from, std::uint64_t tag, void* data, std::size_t bytes,
                       std::chrono::milliseconds patience, Ended ended) = 0;
};

}  // namespace warren
