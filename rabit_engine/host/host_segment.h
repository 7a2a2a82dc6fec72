// The memory that the ranks of one host share, and how it is handed out.
//
// The segment is a memfd: it has no name in any file system, so it cannot outlive the last process of the
// job, however the processes end. The lowest rank of the host (the leader) creates it and passes the
// descriptor to the others through a Unix socket in the abstract namespace. A rank that cannot reach that
// socket does not share memory, whatever its host name; it uses TCP. If a rank fails after that, for example
// because it cannot map the memory, all ranks of its host use TCP.
//
// Through the same socket every rank receives two descriptors of every other rank: its *lifeline*, which
// becomes readable when that rank's process ends (a pidfd, or a pipe on kernels that lack pidfds), and its
// *doorbell*, an eventfd that wakes that process when it sleeps in ShmTransport.
//
// The memfd is far longer than the segment; untouched pages take no memory. Ranges after the segment are
// given to segments of some of the same ranks (Reserve, Within), which need no further descriptors. Their
// memory is returned to the kernel when the last of these ranks has left.
//
// Contents of the segment, for L local ranks (all offsets are multiples of 64; docs/explanation/engine.md
// draws it):
//   header      the lost rank, if any; how much of the memfd is reserved; how many ranks have left
//   lines       per rank: its progress (RankLines), read by the others, written only by itself
//   slots       per rank: kSlots messages, by call number
//   stages      per rank: a ring of bytes, through which it shows its data to the others in collectives
//   rings       per ordered pair of ranks: a byte ring, the links of ShmTransport
// Memory that is not used does not exist.
#pragma once

#include <poll.h>

#include <atomic>
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
/// The ranks of a host with more ranks than this use TCP: each would need two descriptors of every other
/// rank.
inline constexpr int kMaxLocalRanks = 256;
/// The room for a payload in a slot. Larger ones are in the stage.
inline constexpr std::size_t kSlotPayloadBytes = std::size_t{4} << 10;
/// Slots per rank, i.e. the number of calls that a rank may be ahead of the ranks that read its slots.
inline constexpr std::size_t kSlots = 8;
/// The largest round of a collective. Up to three rounds are in flight, so a stage has room for four.
inline constexpr std::size_t kMostRoundBytes = std::size_t{256} << 10;
inline constexpr std::size_t kLeastStageBytes = 4 * kMostRoundBytes;

/// What the segment of a host depends on besides the number of ranks. The leader finds it out, so that it is
/// the same for all members.
struct HostCores {
  /// The size of a core's own cache (L2).
  std::size_t cache_bytes = kLeastStageBytes;
  /// Whether there are more ranks than cores.
  bool is_crowded = false;

  /// Fills in the size of this core's own cache, within reasonable limits.
  static HostCores OfThisHost(bool is_crowded);
  /// The bytes of a stage. A line that is written again while the reader's own cache still holds it must
  /// first be taken from there. So a stage is larger than two such caches, unless there are so many ranks
  /// that all stages together are; and all of them together fit the cache that the cores share, as far as
  /// that is possible. Crowded ranks often find each other's data in their own core's cache, so there a stage
  /// is small.
  std::size_t StageBytes(std::size_t local_size) const;
};

/// The number of calls that a rank remembers. If a rank that needs nothing from the others is further ahead
/// of them, their calls cannot be compared.
inline constexpr std::uint32_t kRememberedCalls = 16;

/// A rank's published record of one of its calls. `sequence` is 0 while the words are being written.
struct alignas(kCacheLine) CallRecord {
  static constexpr std::size_t kWords = sizeof(CallTag) / sizeof(std::uint64_t);
  std::atomic<std::uint32_t> sequence;
  std::atomic<std::uint64_t> words[kWords];
};

/// A rank's published record of its current wait. `renewed` is 0 while the words are being written.
struct alignas(kCacheLine) WaitLines {
  static constexpr std::size_t kWords = sizeof(WaitRecord) / sizeof(std::uint64_t);
  std::atomic<std::int64_t> renewed;
  std::atomic<std::uint64_t> words[kWords];
};

/// One rank's progress, which the rank writes and the others poll; each counter has its own cache line.
struct RankLines {
  /// The position up to which the input of rounds is in this rank's stage. A position counts the bytes of all
  /// rounds so far, and is the same in all stages.
  alignas(kCacheLine) std::atomic<std::uint64_t> input;
  /// The position up to which the results of rounds are in this rank's stage.
  alignas(kCacheLine) std::atomic<std::uint64_t> result;
  /// The position up to which this rank needs nothing more in any stage.
  alignas(kCacheLine) std::atomic<std::uint64_t> output;
  /// Number of calls that this rank has completed.
  alignas(kCacheLine) std::atomic<std::uint64_t> completed;
  /// The futex on which ranks that wait for this one sleep, and the number of these ranks.
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
  /// The rank's last collectives, by sequence: a rank that waits for this one checks whether both are in the
  /// same call.
  CallRecord calls[kRememberedCalls];
  /// The ranks that this rank waits for, published once it has waited long.
  WaitLines wait;
};

/// The beginning of a call: its tag, and the payload if that is small. Valid if `sequence` is the number of
/// the call.
struct alignas(kCacheLine) Slot {
  std::atomic<std::uint64_t> sequence;
  CallTag tag;
  bool is_staged;  ///< whether the payload is in the stage
  /// Begins in the line of the sequence, so that a few bytes arrive with it.
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
  /// A segment is created in two steps with an Allgather between them, so that all ranks agree on which of
  /// them share memory: each rank puts `text()` into its record; Join takes the texts of all ranks.
  class Offer;

  /// The descriptors of one rank of the segment, as the others hold them.
  struct Member {
    int rank = -1;
    std::shared_ptr<const CloseOnForkDescriptor> lifeline;
    std::shared_ptr<Doorbell> doorbell;
  };
  /// A range of the memory that the ranks of a host share.
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
  /// The largest Bytes of up to `local_size` ranks: fewer ranks may have larger stages.
  static std::size_t MostBytes(std::size_t local_size, const HostCores& cores);
  /// Maps a range of a descriptor's memory. Throws EngineError.
  static Memory Map(std::shared_ptr<const CloseOnForkDescriptor> descriptor, std::size_t offset,
                    std::size_t bytes);
  ~HostSegment();
  HostSegment(const HostSegment&) = delete;
  HostSegment& operator=(const HostSegment&) = delete;

  int local_size() const { return static_cast<int>(members_.size()); }
  int local_index() const { return local_index_; }
  /// World ranks of the members, ascending.
  const std::vector<int>& ranks() const { return ranks_; }
  const std::vector<Member>& members() const { return members_; }
  /// Whether there are more ranks here than cores, so that waiting must not spin. By default the cores that
  /// this process may use are counted, until SetOversubscribed is called with knowledge of the other ranks'
  /// cores.
  bool oversubscribed() const { return oversubscribed_; }
  void SetOversubscribed(bool oversubscribed) { oversubscribed_ = oversubscribed; }
  /// Where member `local` runs, as it last reported. Ranks that started together often begin on one core and
  /// stay there if they take turns on it.
  PeerCore CoreOf(int local);
  /// Publishes the core that this rank runs on, and returns the core's number plus 1. CoreOf calls it, too.
  std::uint32_t SayCore();
  /// Reports in how many nanoseconds this rank has read a line that member `local` wrote last: see
  /// CoreDistance.
  void NoteRead(int local, double ns);
  /// Where member `local` runs, which reads what this rank writes.
  Reader ReaderAt(int local) const {
    // Either of the two may have measured the distance.
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

  /// Tells the other ranks of the host which collective this rank begins. Sequence numbers grow one by one
  /// from 1.
  void SayCall(const CallTag& tag);
  /// Returns the tag of the call with this number as published by member `local`; nullopt if the member has
  /// not begun that call or no longer remembers it.
  std::optional<CallTag> CallOf(int local, std::uint32_t sequence) const;
  /// Throws Misuse naming the first call, among those up to `sequence` that both remember, in which this rank
  /// and member `local` differ.
  void ThrowIfCallsDiffer(int local, std::uint32_t sequence) const;

  /// Tells the other ranks of the host that this rank waits, and for which ranks.
  void SayWait(const WaitRecord& wait);
  /// Returns the wait that member `local` published last, which may be out of date: see WaitRecord::renewed.
  std::optional<WaitRecord> WaitOf(int local) const;

  /// Makes all waiting in this segment end with LostPeer naming `lost_rank`, which is this rank if it gives
  /// up after an error. `shortage`: see Transport::Abort. Only the first call has an effect.
  void Abort(int lost_rank, int shortage = 0) noexcept;
  struct Aborted {
    int lost;      ///< the rank that Abort was called for
    int by;        ///< the rank that called it
    int shortage;  ///< the errno of the lost rank's own shortage; 0 if none is known
  };
  std::optional<Aborted> aborted() const;
  /// Returns the world ranks of the lost members: those whose process has ended and those that have left. If
  /// members may leave, only those whose process has ended without leaving are lost. Makes a system call.
  std::vector<int> FindLost();
  /// Whether a member that may leave at any time has done so.
  bool HasLeft(int local) const { return members_may_leave_ && lines_[local].left.load() != 0; }

  /// Reserves a range for a segment of `local_size` of these ranks; no range is reserved twice. Returns
  /// nullopt if memory or its limits (ulimit -f) leave no room. One of those ranks calls Reserve and tells
  /// the others the range's offset.
  std::optional<std::size_t> Reserve(std::size_t local_size);
  /// Returns the segment of these members (local indices, this rank included) in a reserved range. All of
  /// them must call it. Each may leave at any time. Throws EngineError.
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

  /// Joins the segment of this host. `offers` holds every rank's text (empty if that rank does not share).
  /// All ranks call it, and agree through `oob`. `is_crowded`: see HostCores; the leader's
  /// opinion counts. Returns nullptr if this rank shares memory with no other. On
  /// return all ranks know all hosts: `hosts[r]` is the lowest of the ranks that share memory with r, r
  /// included.
  std::unique_ptr<HostSegment> Join(OobAllgather& oob, std::span<const std::string> offers, bool is_crowded,
                                    std::vector<int>& hosts);

 private:
  CloseOnForkDescriptor listener_;
  std::string socket_name_;
  std::string text_;
  std::string trouble_;  ///< why text_ is empty
};

/// A text that is equal for processes that run on one kernel and in one network namespace, and so can reach
/// each other's abstract sockets; empty if unknown.
std::string HostKey();
/// The part of a host key that is equal for all processes on one kernel, whatever their namespaces.
std::string_view MachineOf(std::string_view host_key);

}  // namespace warren
