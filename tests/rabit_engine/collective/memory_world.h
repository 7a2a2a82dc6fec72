// A world whose ranks are threads of this process and whose links are small queues in memory. The queues
// sometimes accept or return only some of the bytes, so code that relies on whole messages fails. The world
// counts the bytes sent; if one rank fails, all fail.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "rabit_engine/transport/transport.h"

namespace warren::testing {

/// The usual capacity of a link in each direction.
inline constexpr std::size_t kLinkBytes = std::size_t{64} << 10;

class MemoryWorld {
 public:
  /// `capacity`: the number of bytes that a link can hold in each direction. `frames`: whether links have
  /// frames, which are then packed whenever this makes them shorter.
  explicit MemoryWorld(int size, std::size_t capacity = kLinkBytes, bool frames = false);
  ~MemoryWorld();

  int size() const { return static_cast<int>(ranks_.size()); }

  /// Runs `body` on every rank, each in its own thread. Rethrows the first error that is not a consequence of
  /// another rank's error.
  void Run(const std::function<void(Transport& transport)>& body);

  /// The bytes that `rank` has sent since the start, including call tags.
  std::size_t bytes_sent(int rank) const;
  /// The ranks with which `rank` has links.
  const std::set<int>& peers(int rank) const;

 private:
  class Queue;
  class QueueLink;
  class QueueTransport;

  std::mutex mutex_;
  bool aborted_ = false;
  const std::size_t capacity_;
  const bool frames_;
  std::vector<std::unique_ptr<QueueTransport>> ranks_;
};

}  // namespace warren::testing
