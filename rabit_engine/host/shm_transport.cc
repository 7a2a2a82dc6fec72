#include "rabit_engine/host/shm_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "rabit_engine/base/error.h"
#include "rabit_engine/host/shared_copy.h"

namespace warren {
class ShmTransport::RingLink : public Link {
 public:
  RingLink(HostSegment& segment, int peer)
      : segment_(segment),
        peer_(peer),
        out_(segment.ring(segment.local_index(), peer)),
        in_(segment.ring(peer, segment.local_index())),
        out_bytes_(segment.ring_bytes(segment.local_index(), peer)),
        in_bytes_(segment.ring_bytes(peer, segment.local_index())),
        capacity_(segment.ring_capacity()) {}

  bool has_room() const {
    return out_.written.load(std::memory_order_relaxed) - out_.read.load(std::memory_order_acquire) <
           capacity_;
  }
  bool has_bytes() const {
    return in_.written.load(std::memory_order_acquire) != in_.read.load(std::memory_order_relaxed);
  }

  std::size_t TrySend(const void* data, std::size_t bytes) override {
    const std::uint64_t written = out_.written.load(std::memory_order_relaxed);
    const std::uint64_t room = capacity_ - (written - PeersProgress(bytes));
    const std::size_t now = std::min<std::size_t>(bytes, room);
    if (now == 0) return 0;
    const std::size_t at = written % capacity_;
    const std::size_t first = std::min(now, capacity_ - at);
    const Reader peer = segment_.ReaderAt(peer_);
    CopyToShared(out_bytes_ + at, data, first, peer);
    CopyToShared(out_bytes_, static_cast<const std::byte*>(data) + first, now - first, peer);
    out_.written.store(written + now, std::memory_order_seq_cst);
    RingDoorbell();
    return now;
  }

  std::size_t TryReceive(void* data, std::size_t bytes) override {
    const std::uint64_t read = in_.read.load(std::memory_order_relaxed);
    const std::uint64_t there = in_.written.load(std::memory_order_acquire) - read;
    const std::size_t now = std::min<std::size_t>(bytes, there);
    if (now == 0) return 0;
    const std::size_t at = read % capacity_;
    const std::size_t first = std::min(now, capacity_ - at);
    std::memcpy(data, in_bytes_ + at, first);
    std::memcpy(static_cast<std::byte*>(data) + first, in_bytes_, now - first);
    in_.read.store(read + now, std::memory_order_seq_cst);
    RingDoorbell();
    return now;
  }

 private:
  /// Returns the number of bytes that the peer has read. If `bytes`, the length of the data to send, is so
  /// large that the cost does not matter, also measures the distance to the peer's core.
  std::uint64_t PeersProgress(std::size_t bytes) {
    constexpr std::size_t kLeastBytes = std::size_t{16} << 10;
    if (bytes < kLeastBytes) return out_.read.load(std::memory_order_acquire);
    const std::uint64_t before = ReadTicks();
    const std::uint64_t read = out_.read.load(std::memory_order_acquire);
    segment_.NoteRead(peer_, NanosecondsOf(ReadTicks() - before));
    return read;
  }

  void RingDoorbell() {
    if (segment_.lines(peer_).needs_doorbell.load(std::memory_order_seq_cst) != 0) {
      segment_.members()[peer_].doorbell->Ring();
    }
  }

  HostSegment& segment_;
  int peer_;
  Ring& out_;
  Ring& in_;
  std::byte* out_bytes_;
  std::byte* in_bytes_;
  std::size_t capacity_;
};

ShmTransport::ShmTransport(HostSegment& segment, int world_size)
    : segment_(segment),
      doorbell_(segment.members()[segment.local_index()].doorbell),
      waiter_(segment),
      world_size_(world_size),
      local_of_rank_(world_size, -1) {
  for (int local = 0; local < segment.local_size(); ++local) {
    if (local == segment.local_index()) {
      links_.push_back(nullptr);
    } else {
      local_of_rank_[segment.ranks()[local]] = local;
      links_.push_back(std::make_unique<RingLink>(segment, local));
    }
  }
}

ShmTransport::~ShmTransport() = default;

int ShmTransport::LocalIndex(int rank) const {
  return rank >= 0 && rank < world_size_ ? local_of_rank_[rank] : -1;
}

void ShmTransport::Connect(std::span<const int> peers) {
  for (const int peer : peers) To(peer);
}

Link& ShmTransport::To(int peer) {
  const int local = LocalIndex(peer);
  if (local < 0) throw EngineError(fmt::format("rank {} does not share memory with rank {}", peer, rank()));
  return *links_[local];
}

bool ShmTransport::AnyReady(std::span<const Interest> interests) const {
  return std::any_of(interests.begin(), interests.end(), [this](const Interest& interest) {
    const int local = LocalIndex(interest.peer);
    if (local < 0) return false;
    const RingLink& link = *links_[local];
    return (interest.to_receive && link.has_bytes()) || (interest.to_send && link.has_room());
  });
}

PeerCore ShmTransport::CoreOf(std::span<const Interest> interests) {
  for (const Interest& interest : interests) {
    const PeerCore core = segment_.CoreOf(LocalIndex(interest.peer));
    if (core != PeerCore::kOther) return core;
  }
  return PeerCore::kOther;
}

void ShmTransport::ThrowIfLost(std::span<const Interest> interests) {
  const std::vector<int> lost = segment_.FindLost();
  int left = -1;  // an awaited member that has left, if any
  for (const Interest& interest : interests) {
    const int local = LocalIndex(interest.peer);
    if (local >= 0 && segment_.HasLeft(local)) left = local;
  }
  if (AnyReady(interests)) return;
  waiter_.ThrowIfAborted();
  for (const int rank : lost) {
    const bool awaited = std::ranges::find(interests, rank, &Interest::peer) != interests.end();
    if (awaited || !peers_may_leave_) waiter_.ThrowLost(rank);
  }
  if (left >= 0) waiter_.ThrowLeft(left);
}

void ShmTransport::Sleep(std::span<const Interest> interests, int other_descriptor, Clock::duration limit) {
  RankLines& own = segment_.lines(segment_.local_index());
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit);
  doorbell_.Sleep(other_descriptor, ms, [&] {
    own.needs_doorbell.store(1, std::memory_order_seq_cst);
    return !AnyReady(interests) && !is_interrupted();
  });
  own.needs_doorbell.store(0, std::memory_order_relaxed);
}

void ShmTransport::Interrupt() {
  is_interrupted_ = true;
  segment_.members()[segment_.local_index()].doorbell->Ring();
}

void ShmTransport::Wait(std::span<const Interest> interests, Clock::time_point deadline) {
  const auto ready = [&] { return AnyReady(interests) || is_interrupted(); };
  if (ready()) return;
  waiter_.set_deadline(deadline);
  const Clock::time_point begin = Clock::now();
  WaitInPhases(CoreOf(interests), wait_policy_, ready, [&] {
    Sleep(interests, -1, kLookAround);
    const Clock::time_point looked = Clock::now();
    if (ready()) return;
    ThrowIfLost(interests);
    if (wait_observer_ != nullptr) wait_observer_->OnWait(interests, begin, looked);
    waiter_.ThrowIfLate(wait_observer_, interests, begin);
  });
}

}  // namespace warren
