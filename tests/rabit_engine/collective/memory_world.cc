#include "memory_world.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <random>
#include <thread>

#include "rabit_engine/base/error.h"

namespace warren::testing {

/// Bytes in transit from one rank to another. The caller must hold the world's mutex.
class MemoryWorld::Queue {
 public:
  explicit Queue(std::size_t capacity) : ring_(capacity) {}
  std::size_t room() const { return ring_.size() - used_; }
  std::size_t used() const { return used_; }

  void Push(const std::byte* data, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t at = (first_ + used_) % ring_.size();
      const std::size_t run = std::min(bytes - done, ring_.size() - at);
      std::memcpy(&ring_[at], data + done, run);
      used_ += run;
      done += run;
    }
  }
  void Pop(std::byte* data, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t run = std::min(bytes - done, ring_.size() - first_);
      std::memcpy(data + done, &ring_[first_], run);
      first_ = (first_ + run) % ring_.size();
      used_ -= run;
      done += run;
    }
  }

 private:
  std::vector<std::byte> ring_;
  std::size_t first_ = 0;
  std::size_t used_ = 0;
};

class MemoryWorld::QueueLink : public Link {
 public:
  QueueLink(QueueTransport& self, QueueTransport& peer);
  std::size_t TrySend(const void* data, std::size_t bytes) override;
  std::size_t TryReceive(void* data, std::size_t bytes) override;
  bool has_frames() const override;
  double MaxPackedShare(bool /*begins_message*/) override { return 1; }
  bool CanSend() const { return outgoing_.room() > 0; }
  bool CanReceive() const { return incoming_.used() > 0; }

 private:
  QueueTransport& self_;
  QueueTransport& peer_;
  Queue& outgoing_;
  Queue& incoming_;
};

class MemoryWorld::QueueTransport : public Transport {
 public:
  QueueTransport(MemoryWorld& world, int rank) : world_(world), rank_(rank), random_(rank) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_.size(); }

  void Connect(std::span<const int> peers) override {
    const std::lock_guard lock(world_.mutex_);
    for (const int peer : peers) {
      if (peer == rank_ || peer < 0 || peer >= world_size()) throw Misuse("Connect to an impossible peer");
      if (!links_.contains(peer)) links_[peer] = std::make_unique<QueueLink>(*this, *world_.ranks_[peer]);
      peers_.insert(peer);
    }
  }

  Link& To(int peer) override {
    if (!links_.contains(peer)) throw Misuse("To() without Connect()");
    return *links_.at(peer);
  }

  void Wait(std::span<const Interest> interests, Clock::time_point deadline) override {
    std::unique_lock lock(world_.mutex_);
    const auto ready = [&] {
      return world_.aborted_ ||
             std::any_of(interests.begin(), interests.end(), [&](const Interest& interest) {
               const QueueLink& link = *links_.at(interest.peer);
               return (interest.to_send && link.CanSend()) || (interest.to_receive && link.CanReceive());
             });
    };
    if (!changed_.wait_until(lock, deadline, ready)) throw TimedOut("nothing moved before the deadline");
    if (world_.aborted_) throw LostPeer(-1, "another rank failed");
  }

  using Transport::Abort;
  void Abort(int /*lost_rank*/, int /*shortage*/) noexcept override {
    const std::lock_guard lock(world_.mutex_);
    world_.aborted_ = true;
    for (const auto& rank : world_.ranks_) rank->changed_.notify_all();
  }

  Queue& QueueFrom(int peer) {
    auto& queue = incoming_[peer];
    if (!queue) queue = std::make_unique<Queue>(world_.capacity_);
    return *queue;
  }

  /// The number of bytes, out of `possible`, that one call moves: usually all, sometimes fewer, but at least
  /// 1 unless `possible` is 0.
  std::size_t SomeOf(std::size_t possible) {
    const bool fewer = possible > 1 && random_() % 4 == 0;
    return fewer ? 1 + random_() % (possible - 1) : possible;
  }

  MemoryWorld& world_;
  const int rank_;
  std::minstd_rand random_;
  std::condition_variable changed_;
  std::map<int, std::unique_ptr<QueueLink>> links_;
  std::map<int, std::unique_ptr<Queue>> incoming_;
  std::set<int> peers_;
  std::size_t bytes_sent_ = 0;
};

MemoryWorld::QueueLink::QueueLink(QueueTransport& self, QueueTransport& peer)
    : self_(self),
      peer_(peer),
      outgoing_(peer.QueueFrom(self.rank_)),
      incoming_(self.QueueFrom(peer.rank_)) {}

std::size_t MemoryWorld::QueueLink::TrySend(const void* data, std::size_t bytes) {
  const std::lock_guard lock(self_.world_.mutex_);
  const std::size_t moved = self_.SomeOf(std::min(bytes, outgoing_.room()));
  if (moved == 0) return 0;
  outgoing_.Push(static_cast<const std::byte*>(data), moved);
  self_.bytes_sent_ += moved;
  peer_.changed_.notify_one();
  return moved;
}

std::size_t MemoryWorld::QueueLink::TryReceive(void* data, std::size_t bytes) {
  const std::lock_guard lock(self_.world_.mutex_);
  const std::size_t moved = self_.SomeOf(std::min(bytes, incoming_.used()));
  if (moved == 0) return 0;
  incoming_.Pop(static_cast<std::byte*>(data), moved);
  peer_.changed_.notify_one();
  return moved;
}

bool MemoryWorld::QueueLink::has_frames() const {
  return self_.world_.frames_;
}

MemoryWorld::MemoryWorld(int size, std::size_t capacity, bool frames) : capacity_(capacity), frames_(frames) {
  for (int rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<QueueTransport>(*this, rank));
}

MemoryWorld::~MemoryWorld() = default;

void MemoryWorld::Run(const std::function<void(Transport&)>& body) {
  std::exception_ptr cause;
  std::mutex mutex;
  const auto run = [&](QueueTransport& transport) {
    try {
      body(transport);
    } catch (const LostPeer&) {
      transport.Abort(transport.rank());  // a consequence of another rank's failure
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        if (!cause) cause = std::current_exception();
      }
      transport.Abort(transport.rank());
    }
  };
  std::vector<std::thread> threads;
  for (const auto& rank : ranks_) threads.emplace_back(run, std::ref(*rank));
  for (std::thread& thread : threads) thread.join();
  if (cause) std::rethrow_exception(cause);
}

std::size_t MemoryWorld::bytes_sent(int rank) const {
  return ranks_[rank]->bytes_sent_;
}
const std::set<int>& MemoryWorld::peers(int rank) const {
  return ranks_[rank]->peers_;
}

}  // namespace warren::testing
