#include "rabit_engine/host/host_segment.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "posix/cpu_quota.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/host/kernel.h"

namespace warren {

struct HostSegment::Header {
  /// 0, or three numbers, from the least significant bits up: the lost rank + 1 (32 bits), the rank that
  /// reported it (24 bits), and the errno of a resource shortage, or 0 (8 bits).
  std::atomic<std::uint64_t> aborted;
  std::atomic<std::uint64_t> reserved;   ///< number of reserved bytes after the segment
  std::atomic<std::uint64_t> have_left;  ///< number of members that have left
};

namespace {

constexpr int kByShift = 32;
constexpr int kShortageShift = 56;
constexpr std::uint64_t kByMask = 0xffffff;
constexpr std::uint64_t kShortageMask = 0xff;

constexpr std::size_t RoundUp(std::size_t bytes, std::size_t unit = kCacheLine) {
  return (bytes + unit - 1) / unit * unit;
}

/// Returns the capacity of a ring: enough for a whole message of usual size. With many ranks there are many
/// rings, so they are smaller. With few ranks they are larger, up to the size of two cores' own caches, for
/// the reason given at HostCores::StageBytes.
std::size_t RingBytes(std::size_t local_size, const HostCores& cores) {
  const std::size_t least = local_size <= 64 ? std::size_t{64} << 10 : std::size_t{16} << 10;
  if (cores.is_crowded || local_size < 2) return least;
  const std::size_t share = 8 * cores.cache_bytes / (local_size * (local_size - 1));
  return std::bit_floor(std::clamp(share, least, std::max(least, 2 * cores.cache_bytes)));
}

/// Stages begin in the middle of a page, half a page away from the offset at which a program's large buffers
/// begin. If both had the same offset in their pages, the processor would assume that each load of a copy
/// depends on the last store, and wait for it (4K aliasing): with two ranks, calls with 256 KiB took 1.2
/// times as long between near cores and 2.6 times as long between far cores.
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kStageOffset = kPageBytes / 2;

struct Layout {
  Layout(std::size_t local_size, const HostCores& cores) {
    std::size_t at = kCacheLine;
    const auto place = [&at](std::size_t bytes) { return std::exchange(at, at + RoundUp(bytes)); };
    lines = place(local_size * sizeof(RankLines));
    slots = place(local_size * kSlots * sizeof(Slot));
    at = RoundUp(at, kPageBytes) + kStageOffset;
    stages = place(local_size * cores.StageBytes(local_size));
    rings = place(local_size * local_size * (Ring::kHeaderBytes + RingBytes(local_size, cores)));
    bytes = at;
  }
  std::size_t lines, slots, stages, rings, bytes;
};

}  // namespace

HostCores HostCores::OfThisHost(bool is_crowded) {
  HostCores cores;
  cores.is_crowded = is_crowded;
#if defined(_SC_LEVEL2_CACHE_SIZE)
  constexpr std::size_t kLeast = std::size_t{256} << 10;
  constexpr std::size_t kMost = std::size_t{4} << 20;
  const long known = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (known > 0) cores.cache_bytes = std::clamp(static_cast<std::size_t>(known), kLeast, kMost);
#endif
  return cores;
}

std::size_t HostCores::StageBytes(std::size_t local_size) const {
  if (is_crowded) return kLeastStageBytes;
  const std::size_t most = std::max(kLeastStageBytes, 4 * cache_bytes);
  return std::bit_floor(std::clamp(8 * cache_bytes / local_size, kLeastStageBytes, most));
}

std::size_t HostSegment::Bytes(std::size_t local_size, const HostCores& cores) {
  return Layout(local_size, cores).bytes;
}

std::size_t HostSegment::MostBytes(std::size_t local_size, const HostCores& cores) {
  std::size_t most = 0;
  for (std::size_t ranks = 1; ranks <= local_size; ++ranks) most = std::max(most, Bytes(ranks, cores));
  return most;
}

HostSegment::Memory HostSegment::Map(std::shared_ptr<const CloseOnForkDescriptor> descriptor,
                                     std::size_t offset, std::size_t bytes) {
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor->fd(), static_cast<off_t>(offset));
  if (base == MAP_FAILED) {
    const int error = errno;
    const std::string doing = fmt::format("this rank cannot map {} bytes of shared memory", bytes);
    ThrowIfShortage(doing, "mmap", error);
    throw EngineError(fmt::format("{}: {}", doing, std::strerror(error)));
  }
  std::shared_ptr<std::byte> mapped(static_cast<std::byte*>(base),
                                    [bytes](std::byte* memory) { munmap(memory, bytes); });
  return {std::move(descriptor), offset, std::move(mapped)};
}

HostSegment::HostSegment(Memory memory, std::vector<Member> members, int local_index, const HostCores& cores,
                         std::optional<bool> oversubscribed)
    : memory_(std::move(memory)),
      members_(std::move(members)),
      local_index_(local_index),
      cores_(cores),
      stage_bytes_(cores.StageBytes(members_.size())),
      ring_bytes_(RingBytes(members_.size(), cores)),
      distances_(members_.size()) {
  for (const Member& member : members_) ranks_.push_back(member.rank);
  const Layout layout(members_.size(), cores);
  std::byte* const base = memory_.mapped.get();
  header_ = reinterpret_cast<Header*>(base);
  lines_ = reinterpret_cast<RankLines*>(base + layout.lines);
  slots_ = reinterpret_cast<Slot*>(base + layout.slots);
  stages_ = base + layout.stages;
  rings_ = base + layout.rings;
  // A new memfd is all zeros, which is the initial state of everything in it.
  oversubscribed_ = oversubscribed ? *oversubscribed : local_size() > posix::UsableCores();
}

HostSegment::~HostSegment() {
  if (NumForks() != num_forks_) return;  // a forked child must not leave on its parent's behalf
  lines_[local_index_].left.store(1);
  RingBell();
  const bool is_last = header_->have_left.fetch_add(1) + 1 == members_.size();
  if (!is_last || memory_.offset == 0) return;
  GiveBackPages(memory_.descriptor->fd(), memory_.offset,
                RoundUp(Bytes(members_.size(), cores_), kPageBytes));
}

// --- segments of some of the members ---

std::optional<std::size_t> HostSegment::Reserve(std::size_t local_size) {
  struct stat memory {};
  if (fstat(memory_.descriptor->fd(), &memory) != 0) return std::nullopt;
  const std::size_t bytes = RoundUp(Bytes(local_size, cores_), kPageBytes);
  const std::size_t begin = RoundUp(memory_.offset + Bytes(members_.size(), cores_), kPageBytes);
  const auto end = static_cast<std::size_t>(memory.st_size);
  std::uint64_t reserved = header_->reserved.load();
  do {
    if (begin + reserved + bytes > end) return std::nullopt;
  } while (!header_->reserved.compare_exchange_weak(reserved, reserved + bytes));
  return begin + reserved;
}

std::unique_ptr<HostSegment> HostSegment::Within(std::size_t offset, std::span<const int> members) const {
  std::vector<Member> some;
  int index = -1;
  for (const int local : members) {
    if (local == local_index_) index = static_cast<int>(some.size());
    some.push_back(members_[local]);
  }
  Memory memory = Map(memory_.descriptor, offset, Bytes(some.size(), cores_));
  auto segment =
      std::make_unique<HostSegment>(std::move(memory), std::move(some), index, cores_, oversubscribed_);
  segment->members_may_leave_ = true;
  return segment;
}

// --- cores, losses, calls and waits of the members ---

PeerCore HostSegment::CoreOf(int local) {
  if (oversubscribed_) return PeerCore::kCrowded;
  const std::uint32_t core = SayCore();
  return lines_[local].core_plus_1.load(std::memory_order_relaxed) != core ? PeerCore::kOther
                                                                           : PeerCore::kThis;
}

std::uint32_t HostSegment::SayCore() {
  const auto core = static_cast<std::uint32_t>(CurrentCore() + 1);
  if (core != core_plus_1_) {
    core_plus_1_ = core;
    lines_[local_index_].core_plus_1.store(core, std::memory_order_relaxed);
  }
  return core;
}

void HostSegment::NoteRead(int local, double ns) {
  distances_[local].Note(ns);
  const std::uint8_t far = distances_[local].is_far() ? 1 : 0;
  std::atomic<std::uint8_t>& published = lines_[local_index_].far[local];
  if (published.load(std::memory_order_relaxed) != far) published.store(far, std::memory_order_relaxed);
}

void HostSegment::Abort(int lost_rank, int shortage) noexcept {
  std::uint64_t nobody = 0;
  const auto by = static_cast<std::uint64_t>(rank()) & kByMask;
  const auto why = static_cast<std::uint64_t>(shortage) & kShortageMask;
  header_->aborted.compare_exchange_strong(
      nobody, why << kShortageShift | by << kByShift | static_cast<std::uint32_t>(lost_rank + 1));
  for (int local = 0; local < local_size(); ++local) {
    WakeSleepers(local);
    if (lines_[local].needs_doorbell.load() != 0) members_[local].doorbell->Ring();
  }
}

std::optional<HostSegment::Aborted> HostSegment::aborted() const {
  const std::uint64_t word = header_->aborted.load(std::memory_order_relaxed);
  if (word == 0) return std::nullopt;
  return Aborted{static_cast<int>(static_cast<std::uint32_t>(word)) - 1,
                 static_cast<int>(word >> kByShift & kByMask), static_cast<int>(word >> kShortageShift)};
}

void HostSegment::SayCall(const CallTag& tag) {
  lines_[local_index_].calls[tag.sequence % kRememberedCalls].Store(tag, tag.sequence);
}

std::optional<CallTag> HostSegment::CallOf(int local, std::uint32_t sequence) const {
  const auto tag = lines_[local].calls[sequence % kRememberedCalls].Load();
  return tag && tag->sequence == sequence ? tag : std::nullopt;
}

void HostSegment::ThrowIfCallsDiffer(int local, std::uint32_t sequence) const {
  for (std::uint32_t back = kRememberedCalls; back-- > 0;) {
    const auto own = CallOf(local_index_, sequence - back);
    const auto theirs = CallOf(local, sequence - back);
    if (own && theirs && !IsSameCall(*own, *theirs)) {
      ThrowDifferentCalls(rank(), *own, ranks_[local], *theirs);
    }
  }
}

void HostSegment::SayWait(const WaitRecord& wait) {
  lines_[local_index_].wait.Store(wait, wait.renewed);
}

std::optional<WaitRecord> HostSegment::WaitOf(int local) const {
  return lines_[local].wait.Load();
}

std::vector<int> HostSegment::FindLost() {
  lifelines_.resize(members_.size());
  for (std::size_t i = 0; i < members_.size(); ++i) lifelines_[i] = {members_[i].lifeline->fd(), POLLIN, 0};
  poll(lifelines_.data(), lifelines_.size(), 0);
  std::vector<int> lost;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const bool left = lines_[i].left.load() != 0;
    if (members_may_leave_ ? lifelines_[i].revents != 0 && !left : lifelines_[i].revents != 0 || left) {
      lost.push_back(ranks_[i]);
    }
  }
  return lost;
}

void HostSegment::WakeSleepers(int local) noexcept {
  lines_[local].bell.fetch_add(1);
  FutexWakeAll(lines_[local].bell);
}

std::string_view MachineOf(std::string_view host_key) {
  return host_key.substr(0, host_key.find('/'));
}

}  // namespace warren
