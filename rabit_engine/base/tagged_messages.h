// Messages with tags between the ranks of a communicator, beside its calls: any number of them under way at
// once, in no order but that of messages from one rank to another with one tag.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

namespace warren {

/// Thread safe.
class TaggedMessages {
 public:
  static constexpr int kAnyRank = -1;
  /// Called once, from any thread, also at once: with the error or nullptr, and whose message it was. It must
  /// neither throw nor wait for messages.
  using Ended = std::function<void(const std::exception_ptr& error, int from)>;

  virtual ~TaggedMessages() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// To another rank. Ends when the bytes may be used again, which for a long message is not before the other
  /// receives it. `patience`: for a rank that lives; 0: the communicator's.
  virtual void Send(int to, std::uint64_t tag, const void* data, std::size_t bytes,
                    std::chrono::milliseconds patience, Ended ended) = 0;
  /// From another rank, or from kAnyRank. A message of another length is an error of this receive alone.
  virtual void Receive(int from, std::uint64_t tag, void* data, std::size_t bytes,
                       std::chrono::milliseconds patience, Ended ended) = 0;
};

}  // namespace warren
