// The memory that the ranks of one host share, and the way it is handed out.
//
// The segment is a memfd: it has no name in any file system, so nothing of it can outlive the last process of
// the job, whatever dies and how. The lowest rank of the host (the leader) makes it and hands the descriptor
// to the others through a Unix socket in the abstract namespace. Who cannot reach that socket or cannot map
// the descriptor does not share memory, whatever its host is called; it talks TCP.
//
// Through the same socket every rank gets two descriptors of every other: its *lifeline*, which becomes
// readable when that process ends (a pidfd, or a pipe on kernels without), and its *doorbell*, an eventfd
// that wakes it when it sleeps in ShmTransport.
//
// The memfd is far longer than the segment: what is not touched is not there. Ranges behind it are given to
// segments of some of the same ranks (Reserve, Within), which need no other descriptors, and go back to the
// kernel when the last of them has left.
//
// What lies in the segment, for L local ranks (all offsets are multiples of 64; docs/explanation/engine.md
// draws it):
//   header      the lost rank once somebody gave up; how much of the memfd was given out; how many have left
//   lines       per rank: what it has done (RankLines), read by the others, written by itself only
//   slots       per rank: kSlots small messages, by the call number
//   entries     per rank: kEntries buffers of kEntryBytes, the stages of large collectives
//   rings       per ordered pair of ranks: a byte ring, the links of ShmTransport
// Memory is used only where it was touched: an idle ring costs nothing.
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
#include "rabit_engine/host/doorbell.h"
#include "rabit_engine/transport/call_tag.h"
#include "rabit_engine/transport/wait_record.h"
#include "rabit_engine/transport/waiting.h"

namespace warren {

inline constexpr std::size_t kCacheLine = 64;
/// More ranks than this on one host talk TCP: each needs two descriptors of every other.
inline constexpr int kMaxLocalRanks = 256;
/// The largest payload of a slot: above it, reading every slot whole costs more than the two further rounds
/// of waiting of the large way. Measured with 2 to 16 ranks on 2 cores (docs/explanation/engine.md).
inline constexpr std::size_t kSlotPayloadBytes = std::size_t{16} << 10;
/// Slots of a rank: so many calls may it be ahead of those that read them.
inline constexpr std::size_t kSlots = 8;
/// Stages of a large collective in flight, and the bytes of each: 4 x 256 KiB stay in the cache of a core,
/// so that only the caller's own buffers are read from memory.
inline constexpr std::size_t kEntries = 4;
inline constexpr std::size_t kEntryBytes = std::size_t{256} << 10;

/// Calls that a rank remembers: a rank that needs nothing of the others may be so far ahead of them.
inline constexpr std::uint32_t kRememberedCalls = 16;

/// What a rank said of one of its calls. `sequence` is 0 while the words are written.
struct alignas(kCacheLine) CallRecord {
  static constexpr std::size_t kWords = sizeof(CallTag) / sizeof(std::uint64_t);
  std::atomic<std::uint32_t> sequence;
  std::atomic<std::uint64_t> words[kWords];
};

/// What a rank says of the wait it is in. `renewed` is 0 while the words are written.
struct alignas(kCacheLine) WaitLines {
  static constexpr std::size_t kWords = sizeof(WaitRecord) / sizeof(std::uint64_t);
  std::atomic<std::int64_t> renewed;
  std::atomic<std::uint64_t> words[kWords];
};

/// One rank's progress, each word on a cache line of its own: the rank writes, the others poll.
struct RankLines {
  /// Rounds whose input lies in the entry.
  alignas(kCacheLine) std::atomic<std::uint64_t> input;
  /// Rounds whose result lies in the entry.
  alignas(kCacheLine) std::atomic<std::uint64_t> result;
  /// Rounds whose entries (all ranks') this rank needs no longer.
  alignas(kCacheLine) std::atomic<std::uint64_t> output;
  /// Calls that this rank has completed.
  alignas(kCacheLine) std::atomic<std::uint64_t> completed;
  /// The futex that the ranks waiting for this one sleep on, and how many of them do.
  alignas(kCacheLine) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> sleepers;
  /// True while this rank sleeps on its doorbell.
  alignas(kCacheLine) std::atomic<std::uint32_t> needs_doorbell;
  /// The core it ran on when it last waited, plus 1.
  alignas(kCacheLine) std::atomic<std::uint32_t> core_plus_1;
  /// Set when the rank has left in good order; nobody may wait for it any more.
  alignas(kCacheLine) std::atomic<std::uint32_t> left;
  /// Its last collectives, by sequence: whoever waits for it in vain looks whether it is in the same.
  CallRecord calls[kRememberedCalls];
  /// Whom it waits for, where it has waited for long.
  WaitLines wait;
};

/// A small message: the call it belongs to and its payload. Valid when `sequence` says so.
struct alignas(kCacheLine) Slot {
  std::atomic<std::uint64_t> sequence;
  CallTag tag;
  std::byte payload[kSlotPayloadBytes];
};

/// One direction between two ranks: a ring of bytes. `written` and `read` only grow.
struct Ring {
  alignas(kCacheLine) std::atomic<std::uint64_t> written;
  alignas(kCacheLine) std::atomic<std::uint64_t> read;
  static constexpr std::size_t kHeaderBytes = 2 * kCacheLine;
};

class HostSegment {
 public:
  /// Made in two steps with an Allgather between them, so that all ranks agree who shares memory with whom:
  /// each rank puts `offer()` into its record; Join takes all ranks' offers.
  class Offer;

  /// One rank of the segment, as the others see it.
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

  /// Memory of Bytes(members.size()) zeros that all members share. See oversubscribed().
  HostSegment(Memory memory, std::vector<Member> members, int local_index,
              std::optional<bool> oversubscribed = {});
  static std::size_t Bytes(std::size_t local_size);
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
  /// True when there are more ranks here than cores: waiting must not spin. Cores that this process may use,
  /// until somebody says better who knows those of the other ranks.
  bool oversubscribed() const { return oversubscribed_; }
  void SetOversubscribed(bool oversubscribed) { oversubscribed_ = oversubscribed; }
  /// Where member `local` runs, as far as it has said. Ranks that started together often begin on one core,
  /// and those that take turns there stay.
  PeerCore CoreOf(int local);
  /// Says which core this rank runs on; CoreOf does, too.
  std::uint32_t SayCore();

  RankLines& lines(int local) { return lines_[local]; }
  Slot& slot(int local, std::uint64_t sequence) { return slots_[kSlots * local + sequence % kSlots]; }
  std::byte* entry(int local, std::uint64_t round) {
    return entries_ + (static_cast<std::size_t>(local) * kEntries + round % kEntries) * kEntryBytes;
  }
  Ring& ring(int from, int to) { return *reinterpret_cast<Ring*>(RingAt(from, to)); }
  std::byte* ring_bytes(int from, int to) { return RingAt(from, to) + Ring::kHeaderBytes; }
  std::size_t ring_capacity() const { return ring_bytes_; }

  /// Tells the others of the host which collective this rank begins. Sequences grow one by one from 1.
  void SayCall(const CallTag& tag);
  /// What member `local` said of its call of this number, if it has begun it and remembers it.
  std::optional<CallTag> CallOf(int local, std::uint32_t sequence) const;
  /// Throws Misuse that names the first call in which this rank and member `local` differ, as far back from
  /// `sequence` as both remember. Returns when there is none.
  void ThrowIfCallsDiffer(int local, std::uint32_t sequence) const;

  /// Tells the others of the host that this rank waits, and for whom.
  void SayWait(const WaitRecord& wait);
  /// What member `local` said last, which may be long ago: see WaitRecord::renewed.
  std::optional<WaitRecord> WaitOf(int local) const;

  /// Makes all waiting in this segment end with LostPeer naming `lost_rank`: this rank itself when it gives
  /// up after an error of its own. `shortage` is that of Transport::Abort. Only the first counts.
  void Abort(int lost_rank, int shortage = 0) noexcept;
  struct Aborted {
    int lost;      ///< the rank that Abort was called for
    int by;        ///< the rank that called it
    int shortage;  ///< the errno of the lost rank's own shortage; 0 if none is known
  };
  std::optional<Aborted> aborted() const;
  /// World ranks of the members whose process has ended or that have left; where members may leave, of those
  /// whose process has ended before they did. A system call.
  std::vector<int> FindLost();
  /// Whether a member has left that may do so at any time.
  bool HasLeft(int local) const { return members_may_leave_ && lines_[local].left.load() != 0; }

  /// A range for a segment of `local_size` of these ranks, which nobody else has; none when memory or its
  /// limits (ulimit -f) leave no room. One of them asks and tells the others.
  std::optional<std::size_t> Reserve(std::size_t local_size);
  /// The segment of these members (local indices, this rank among them) in a reserved range. All of them call
  /// it. Each leaves when it likes. Throws EngineError.
  std::unique_ptr<HostSegment> Within(std::size_t offset, std::span<const int> members) const;

  /// Wakes whoever sleeps on this rank's bell. To be called after a store that others wait for.
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
  std::vector<pollfd> lifelines_;  ///< of FindLost; kept so that looking around need not allocate
  std::vector<int> ranks_;
  int local_index_ = 0;
  bool oversubscribed_ = false;
  bool members_may_leave_ = false;
  const std::uint64_t num_forks_ = NumForks();
  std::uint32_t core_plus_1_ = 0;  ///< what this rank said last
  std::size_t ring_bytes_ = 0;
  Header* header_ = nullptr;
  RankLines* lines_ = nullptr;
  Slot* slots_ = nullptr;
  std::byte* entries_ = nullptr;
  std::byte* rings_ = nullptr;
};

/// What a rank tells the others about the memory it could share. Listens on an abstract Unix socket until
/// Join has used it.
class HostSegment::Offer {
 public:
  /// Ranks with different `group`s do not share, even on one host.
  explicit Offer(const std::string& group);
  /// Identifies the host (kernel and network namespace) and the socket: one line of text.
  const std::string& text() const { return text_; }

  /// Joins the segment of this host. `offers` holds every rank's text (empty: that rank does not share).
  /// Called by all ranks; they agree by way of `oob`. Returns nullptr when this rank shares with nobody.
  /// All ranks learn all hosts: `hosts[r]` is the lowest rank that r shares memory with, itself if alone.
  std::unique_ptr<HostSegment> Join(OobAllgather& oob, std::span<const std::string> offers,
                                    std::vector<int>& hosts);

 private:
  CloseOnForkDescriptor listener_;
  std::string socket_name_;
  std::string text_;
  std::string trouble_;  ///< why there is no text
};

/// Equal for processes that run on one kernel and in one network namespace, where abstract sockets meet;
/// empty when that cannot be told.
std::string HostKey();
/// The part of a host key that is equal for all processes on one kernel, whatever their namespaces.
std::string_view MachineOf(std::string_view host_key);

}  // namespace warren
