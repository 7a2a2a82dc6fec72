// A world whose ranks are threads of this process and whose links are small queues in memory. The queues take
// and give odd numbers of bytes, so that no code can rely on messages arriving whole. The bytes sent are
// counted. A rank that fails takes the others with it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "rabit_engine/transport/transport.h"

namespace warren::testing {

class MemoryWorld {
 public:
  /// `capacity`: the bytes that a link holds until they are received.
  explicit MemoryWorld(int size, std::size_t capacity = 64 << 10);
  ~MemoryWorld();

  int size() const { return static_cast<int>(ranks_.size()); }

  /// Runs `body` on every rank, each in its own thread; rethrows the first error that is
  /// not the consequence of another rank's.
  void Run(const std::function<void(Transport& transport)>& body);

  /// Since the start, including call tags.
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
  std::vector<std::unique_ptr<QueueTransport>> ranks_;
};

}  // namespace warren::testing
