// The memory that the ranks on one host share, and how they obtain it.
//
// The segment is a memfd: it has no name in any file system, so it cannot outlive the last process of the
// job, however the processes end. The lowest rank on the host (the leader) creates it and passes the
// descriptor to the others through a Unix socket in the abstract namespace. A rank that cannot reach that
// socket does not share memory, whatever its host name; it uses TCP. If a rank fails after that, for example
// because it cannot map the memory, all ranks on its host use TCP.
//
// Through the same socket every rank receives two descriptors of every other rank: its *lifeline*, which
// becomes readable when that rank's process ends (a pidfd, or a pipe on kernels that lack pidfds), and its
// *doorbell*, an eventfd that wakes that process when it sleeps in ShmTransport.
//
// The memfd is far longer than the segment; untouched pages take no memory. Ranges after the segment are
// reserved for segments of subsets of its ranks (Reserve, Within), which need no further descriptors. The
// memory of such a range returns to the kernel when the last rank of its segment has left.
//
// Contents of the segment (all offsets are multiples of 64; docs/explanation/engine.md has the sizes):
//   header      the lost rank, if any; how much of the memfd is reserved; how many ranks have left
//   lines       per rank: its progress (RankLines), which the others poll
//   slots       per rank: kSlots messages, by call number
//   stages      per rank: a ring of bytes, through which it passes data to the others in collectives
//   rings       per ordered pair of ranks: a byte ring, the links of ShmTransport
// Unused parts take no physical memory.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/base/oob_allgather.h"
#include "rabit_engine/call/call_tag.h"
#include "rabit_engine/host/core_distance.h"
#include "rabit_engine/host/doorbell.h"
#include "rabit_engine/host/shared_copy.h"
#include "rabit_engine/transport/wait_record.h"
#include "rabit_engine/transport/waiting.h"

namespace warren {

inline constexpr std::size_t kCacheLine = 64;
/// The ranks on a host with more ranks than this use TCP: each would need two descriptors of every other
/// rank.
inline constexpr int kMaxLocalRanks = 256;
/// The payload capacity of a slot. Larger payloads go into the stage.
inline constexpr std::size_t kSlotPayloadBytes = std::size_t{4} << 10;
/// Slots per rank, i.e. the number of calls that a rank may be ahead of the ranks that read its slots.
inline constexpr std::size_t kSlots = 8;
/// The largest round of a collective. Up to three rounds are in flight, so a stage has room for four.
inline constexpr std::size_t kMostRoundBytes = std::size_t{256} << 10;
inline constexpr std::size_t kLeastStageBytes = 4 * kMostRoundBytes;

/// The properties of a host that determine, together with the number of ranks, the layout of its segment. All
/// members use the leader's values.
struct HostCores {
  /// The size of a core's own cache (L2).
  std::size_t cache_bytes = kLeastStageBytes;
  /// Whether some ranks have no core to themselves.
  bool is_crowded = false;

  /// Returns the values for this host; the cache size is clamped to reasonable limits.
  static HostCores OfThisHost(bool is_crowded);
  /// Returns the size of a stage. Writing a line that the reader's own cache still holds is slow, so with few
  /// ranks a stage is much larger than that cache: its lines have left the cache before they are written
  /// again. With more ranks stages are smaller, down to kLeastStageBytes, so that all stages together fit the
  /// cache that the cores share. Crowded ranks often find each other's data in their own core's cache, so
  /// their stages are small.
  std::size_t StageBytes(std::size_t local_size) const;
};

/// The number of calls that a rank remembers. If a rank that needs nothing from the others gets further ahead
/// than this, their calls cannot be compared.
inline constexpr std::uint32_t kRememberedCalls = 16;

/// A record that one rank publishes: a sequence lock (Boehm, "Can seqlocks get along with programming
/// language memory models?", 2012).
template <typename Record, typename Stamp>
class alignas(kCacheLine) PublishedRecord {
 public:
  /// `stamp` differs from that of the previous record. 0 removes the record.
  void Store(const Record& record, Stamp stamp) {
    const auto words = std::bit_cast<std::array<std::uint64_t, kWords>>(record);
    stamp_.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
    stamp_.store(stamp, std::memory_order_release);
  }
  /// Returns nullopt if there is no record, or it is just being written.
  std::optional<Record> Load() const {
    std::array<std::uint64_t, kWords> words{};
    const Stamp stamp = stamp_.load(std::memory_order_acquire);
    if (stamp == 0) return std::nullopt;
    for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (stamp_.load(std::memory_order_relaxed) != stamp) return std::nullopt;
    return std::bit_cast<Record>(words);
  }

 private:
  static constexpr std::size_t kWords = sizeof(Record) / sizeof(std::uint64_t);
  std::atomic<Stamp> stamp_;
  std::atomic<std::uint64_t> words_[kWords];
};

/// One rank's progress, which the rank writes and the others poll; only `bell` and `sleepers` are also
/// written by other ranks. Each progress counter has its own cache line.
struct RankLines {
  /// The position up to which this rank's input for rounds is in its stage. Positions count the bytes of a
  /// stage used so far, by rounds and payloads, and are the same in all stages.
  alignas(kCacheLine) std::atomic<std::uint64_t> input;
  /// The position up to which this rank's results of rounds are in its stage.
  alignas(kCacheLine) std::atomic<std::uint64_t> result;
  /// The position up to which this rank needs nothing more in any stage.
  alignas(kCacheLine) std::atomic<std::uint64_t> output;
  /// Number of calls that this rank has completed.
  alignas(kCacheLine) std::atomic<std::uint64_t> completed;
  /// The futex on which ranks that wait for this one sleep; `sleepers` is the number of these ranks.
  alignas(kCacheLine) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> sleepers;
  /// Nonzero while this rank sleeps on its doorbell.
  alignas(kCacheLine) std::atomic<std::uint32_t> needs_doorbell;
  /// The core that this rank ran on when it last waited, plus 1.
  alignas(kCacheLine) std::atomic<std::uint32_t> core_plus_1;
  /// Set when the rank has left normally; no rank may wait for it after that.
  alignas(kCacheLine) std::atomic<std::uint32_t> left;
  /// Nonzero for the members (by local index) whose cores this rank has found to be far from its own.
  alignas(kCacheLine) std::atomic<std::uint8_t> far[kMaxLocalRanks];
  /// The rank's latest collectives, each at its sequence number modulo kRememberedCalls. Waiting ranks on the
  /// host compare these calls with their own.
  PublishedRecord<CallTag, std::uint32_t> calls[kRememberedCalls];
  /// The ranks that this rank waits for, published only during long waits.
  PublishedRecord<WaitRecord, std::int64_t> wait;
};

/// The beginning of a call: its tag, and its payload if the payload is small. Valid if `sequence` is the
/// number of the call.
struct alignas(kCacheLine) Slot {
  std::atomic<std::uint64_t> sequence;
  CallTag tag;
  bool is_staged;  ///< whether the payload is in the stage
  /// Begins in the cache line of `sequence`, so that a few bytes arrive with it.
  alignas(std::uint64_t) std::byte payload[kSlotPayloadBytes];
};

/// One direction between two ranks: a ring of bytes. `written` and `read` only grow.
struct Ring {
  alignas(kCacheLine) std::atomic<std::uint64_t> written;
  alignas(kCacheLine) std::atomic<std::uint64_t> read;
  static constexpr std::size_t kHeaderBytes = 2 * kCacheLine;
};

class HostSegment {
 public:
  /// A segment is created in two steps, so that all ranks agree on which of them share memory: each rank
  /// sends text() to all others, in its record; Join then takes the texts of all ranks.
  class Offer;

  /// A rank of the segment, with this process's copies of its descriptors.
  struct Member {
    int rank = -1;
    std::shared_ptr<const CloseOnForkDescriptor> lifeline;
    std::shared_ptr<Doorbell> doorbell;
  };
  /// A range of the memory that the ranks on a host share.
  struct Memory {
    std::shared_ptr<const CloseOnForkDescriptor> descriptor;
    std::size_t offset = 0;
    std::shared_ptr<std::byte> mapped;
  };

  /// `memory`: Bytes(members.size(), cores) zero bytes that all members share. `oversubscribed`: see
  /// oversubscribed().
  HostSegment(Memory memory, std::vector<Member> members, int local_index, const HostCores& cores,
              std::optional<bool> oversubscribed = {});
  static std::size_t Bytes(std::size_t local_size, const HostCores& cores);
  /// The maximum of Bytes for 1 to `local_size` ranks: with fewer ranks, stages may be larger.
  static std::size_t MostBytes(std::size_t local_size, const HostCores& cores);
  /// Maps a range of a descriptor's memory. Throws EngineError.
  static Memory Map(std::shared_ptr<const CloseOnForkDescriptor> descriptor, std::size_t offset,
                    std::size_t bytes);
  ~HostSegment();
  HostSegment(const HostSegment&) = delete;
  HostSegment& operator=(const HostSegment&) = delete;

  int local_size() const { return static_cast<int>(members_.size()); }
  int local_index() const { return local_index_; }
  /// The members' ranks in the job, by local index.
  const std::vector<int>& ranks() const { return ranks_; }
  /// This process's rank in the job.
  int rank() const { return ranks_[local_index_]; }
  const std::vector<Member>& members() const { return members_; }
  /// Whether some ranks here have no core to themselves, so that waiting must not spin. By default this
  /// compares the number of ranks with the number of cores that this process may use; SetOversubscribed
  /// overrides it once the other ranks' cores are known.
  bool oversubscribed() const { return oversubscribed_; }
  void SetOversubscribed(bool oversubscribed) { oversubscribed_ = oversubscribed; }
  /// Returns where member `local` runs, by the core that it published last. Ranks that started together often
  /// begin on one core and stay there if they take turns on it.
  PeerCore CoreOf(int local);
  /// Publishes the core that this rank runs on, and returns the core's number plus 1, or 0 if unknown. Called
  /// by CoreOf, too.
  std::uint32_t SayCore();
  /// Records the time in nanoseconds that this rank took to read a line that member `local` wrote last: see
  /// CoreDistance.
  void NoteRead(int local, double ns);
  /// Returns where member `local` runs, as a reader of data that this rank writes.
  Reader ReaderAt(int local) const {
    // Either of the two ranks may have measured the distance.
    const bool is_far =
        lines_[local].far[local_index_].load(std::memory_order_relaxed) != 0 || distances_[local].is_far();
    if (is_far) return Reader::kFar;
    return cores_.is_crowded ? Reader::kCrowded : Reader::kNear;
  }

  RankLines& lines(int local) { return lines_[local]; }
  Slot& slot(int local, std::uint64_t sequence) { return slots_[kSlots * local + sequence % kSlots]; }
  std::byte* stage(int local) { return stages_ + static_cast<std::size_t>(local) * stage_bytes_; }
  std::size_t stage_bytes() const { return stage_bytes_; }
  const HostCores& cores() const { return cores_; }
  Ring& ring(int from, int to) { return *reinterpret_cast<Ring*>(RingAt(from, to)); }
  std::byte* ring_bytes(int from, int to) { return RingAt(from, to) + Ring::kHeaderBytes; }
  std::size_t ring_capacity() const { return ring_bytes_; }

  /// Publishes to the other ranks on the host which collective this rank begins. Sequence numbers count up
  /// from 1.
  void SayCall(const CallTag& tag);
  /// Returns the tag of the call with this number as published by member `local`; nullopt if the member has
  /// not begun that call or its record has been overwritten.
  std::optional<CallTag> CallOf(int local, std::uint32_t sequence) const;
  /// Throws Misuse naming the first call, among those up to `sequence` that both remember, in which this rank
  /// and member `local` differ. Otherwise does nothing.
  void ThrowIfCallsDiffer(int local, std::uint32_t sequence) const;

  /// Publishes to the other ranks on the host that this rank is waiting, and for which ranks.
  void SayWait(const WaitRecord& wait);
  /// Returns the wait that member `local` published last, which may be out of date (see WaitRecord::renewed);
  /// nullopt if none exists or it is just being written.
  std::optional<WaitRecord> WaitOf(int local) const;

  /// Makes all waiting in this segment end with LostPeer naming `lost_rank`, which is this rank if it gives
  /// up after an error. `shortage`: see Transport::Abort. Only the first call's arguments count.
  void Abort(int lost_rank, int shortage = 0) noexcept;
  struct Aborted {
    int lost;      ///< the rank that Abort was called for
    int by;        ///< the rank that called it
    int shortage;  ///< the errno of the lost rank's resource shortage; 0 if none is known
  };
  std::optional<Aborted> aborted() const;
  /// Returns the lost members, as ranks in the job. A member is lost if its process has ended or it has left;
  /// if members may leave at any time, only if its process has ended without leaving. Makes a system call.
  std::vector<int> FindLost();
  /// Whether a member that may leave at any time has done so.
  bool HasLeft(int local) const { return members_may_leave_ && lines_[local].left.load() != 0; }

  /// Reserves a range for a segment of `local_size` of these ranks; no range is reserved twice. Returns
  /// nullopt if the memfd, whose length the file size limit (ulimit -f) may restrict, has no space left. One
  /// of the new segment's ranks calls Reserve and sends the range's offset to the others.
  std::optional<std::size_t> Reserve(std::size_t local_size);
  /// Returns the segment of these members (local indices, this rank included) in a reserved range. Each of
  /// these members must call it, and may leave at any time. Throws EngineError.
  std::unique_ptr<HostSegment> Within(std::size_t offset, std::span<const int> members) const;

  /// Wakes the ranks that sleep on this rank's bell. Call it after a store that others wait for.
  void RingBell() {
    if (lines_[local_index_].sleepers.load(std::memory_order_seq_cst) != 0) WakeSleepers(local_index_);
  }

 private:
  struct Header;
  std::byte* RingAt(int from, int to) {
    return rings_ +
           (static_cast<std::size_t>(from) * members_.size() + to) * (Ring::kHeaderBytes + ring_bytes_);
  }
  void WakeSleepers(int local) noexcept;

  Memory memory_;
  std::vector<Member> members_;
  std::vector<pollfd> lifelines_;  ///< for FindLost; kept to avoid allocations
  std::vector<int> ranks_;
  int local_index_ = 0;
  bool oversubscribed_ = false;
  bool members_may_leave_ = false;
  const std::uint64_t num_forks_ = NumForks();
  std::uint32_t core_plus_1_ = 0;  ///< the value that SayCore published last
  HostCores cores_;
  std::size_t stage_bytes_ = 0;
  std::size_t ring_bytes_ = 0;
  std::vector<CoreDistance> distances_;
  Header* header_ = nullptr;
  RankLines* lines_ = nullptr;
  Slot* slots_ = nullptr;
  std::byte* stages_ = nullptr;
  std::byte* rings_ = nullptr;
};

/// A rank's offer to share memory with other ranks. Listens on an abstract Unix socket until Join returns.
class HostSegment::Offer {
 public:
  /// Ranks with different `group`s do not share memory, even on one host.
  explicit Offer(const std::string& group);
  /// One line of text that identifies the host (kernel and network namespace), the group and the socket;
  /// empty if this rank cannot share memory.
  const std::string& text() const { return text_; }

  /// Joins the segment of this host. A collective call, in which the ranks agree through `oob`. `offers`
  /// holds every rank's text (empty if that rank does not share memory). `is_crowded`: see HostCores; the
  /// leader's value counts. Returns nullptr if this rank shares memory with no other. On return, `hosts[r]`
  /// is the lowest of the ranks that share memory with r, r included, on all ranks.
  std::unique_ptr<HostSegment> Join(OobAllgather& oob, std::span<const std::string> offers, bool is_crowded,
                                    std::vector<int>& hosts);

 private:
  CloseOnForkDescriptor listener_;
  std::string socket_name_;
  std::string text_;
  std::string trouble_;  ///< the reason why text_ is empty, if known
};

/// A string that is equal for processes that run on one kernel and in one network namespace, and so can reach
/// each other's abstract sockets; empty if unknown. On systems other than Linux, the host's name.
std::string HostKey();
/// The part of a host key that is equal for all processes on one kernel, whatever their namespaces.
std::string_view MachineOf(std::string_view host_key);

}  // namespace warren
