// The byte transport between ranks: one ordered stream in each direction between any two linked ranks. The
// algorithms in collective/ use only this interface.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

namespace warren {

/// The byte stream to and from one peer. Not thread-safe.
class Link {
 public:
  virtual ~Link() = default;
  /// Sends as many bytes as fit, without waiting. Returns the number of bytes taken, 0 if there is no space.
  /// Throws LostPeer if it finds that the peer is gone, unless received data is still unread.
  virtual std::size_t TrySend(const void* data, std::size_t bytes) = 0;
  /// Like TrySend for two consecutive pieces, which are sent together if the transport can. Returns the total
  /// number of bytes taken.
  virtual std::size_t TrySendWithHead(const void* head, std::size_t head_bytes, const void* data,
                                      std::size_t bytes) {
    const std::size_t taken = TrySend(head, head_bytes);
    return taken < head_bytes || bytes == 0 ? taken : taken + TrySend(data, bytes);
  }
  /// Reads up to `bytes` bytes that have arrived, without waiting. Returns the number of bytes read, 0 if
  /// none have arrived. Throws LostPeer if it finds that the peer is gone and everything the peer sent has
  /// been read.
  virtual std::size_t TryReceive(void* data, std::size_t bytes) = 0;

  /// Whether calls of at least kMinFramedBytes send frames over this link (message_frames.h). Both ends
  /// return the same value.
  virtual bool has_frames() const { return false; }
  /// Returns the packed length, as a share of the plain length, below which packing a piece of a message
  /// saves time; if it is 0 or less, packing never does. `begins_message`: whether the piece is the first one
  /// of its message.
  virtual double MaxPackedShare([[maybe_unused]] bool begins_message) { return 0; }
};

/// The maximum number of bytes that a collective sends or receives in one call of a link, so that sending and
/// receiving take turns.
inline constexpr std::size_t kTurnBytes = std::size_t{256} << 10;

/// The events of one link that a rank waits for: space for sending, or data. If neither flag is set, the rank
/// waits for the peer to do something in shared memory.
struct Interest {
  int peer = -1;
  bool to_send = false;
  bool to_receive = false;
};

/// Returns the first awaited peer, or `rank` if none exists.
inline int FirstOf(std::span<const Interest> awaited, int rank) {
  return awaited.empty() ? rank : awaited.front().peer;
}

using Clock = std::chrono::steady_clock;
inline constexpr Clock::time_point kNoDeadline = Clock::time_point::max();

/// Receives callbacks while a rank waits.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  /// Called at least five times a second. `since`: when this wait began. `looked`: a time after which the
  /// rank has checked again that nothing has arrived from the awaited peers. Throws if waiting any longer is
  /// pointless.
  virtual void OnWait(std::span<const Interest> awaited, Clock::time_point since,
                      Clock::time_point looked) = 0;
  /// Called after the deadline. Returns the peer to report as late, or -1 while that is unknown or all
  /// awaited peers are themselves waiting: in the latter case, the rank that waits for the late rank reports
  /// it.
  virtual int WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline) = 0;
};

/// All links of one rank. Not thread-safe: one collective at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  /// Links this rank with `peers`, which may name a rank more than once; existing links are kept. The peers
  /// must soon make the same call for this rank: an algorithm calls Connect with the same plan on all ranks.
  /// Throws LostPeer, TimedOut or LocalShortage.
  virtual void Connect(std::span<const int> peers) = 0;
  /// Returns the link to a peer that Connect was called for.
  virtual Link& To(int peer) = 0;

  /// Returns when one of the interests may make progress (sometimes spuriously). Waits in the phases of
  /// waiting.h. Throws LostPeer if the peer of any link is gone, even one that is not among the interests,
  /// because the collective can then not complete (but see ExpectPeersToLeave); throws TimedOut after the
  /// deadline, unless the wait observer's WhoIsLate returns -1.
  virtual void Wait(std::span<const Interest> interests, Clock::time_point deadline) = 0;

  /// Interrupt makes Wait return, immediately and in later calls, until Resume is called. Unlike the other
  /// functions here, Interrupt may be called from any thread, even while another is in Wait. Call
  /// AllowInterrupts first.
  virtual void AllowInterrupts() {}
  virtual void Interrupt() {}
  virtual void Resume() {}

  /// `observer` is called during Connect and Wait, and must exist during these calls. nullptr, the default,
  /// means none.
  virtual void SetWaitObserver([[maybe_unused]] WaitObserver* observer) {}

  /// Informs every linked peer that this rank is giving up, so that none of them waits for it: their calls
  /// throw LostPeer naming `lost_rank` (the first rank that was lost, or this rank itself if the error is its
  /// own). `shortage` is the errno of the call in which that rank ran out of a resource, 0 if unknown; the
  /// peers include it in their messages. Afterwards the transport can only be destroyed.
  virtual void Abort(int lost_rank, int shortage) noexcept = 0;
  void Abort(int lost_rank) noexcept { Abort(lost_rank, 0); }

  /// From now on, a peer whose process ends counts as lost only if this rank is still waiting for it. All
  /// ranks call this before the barrier that ends the job, because ranks that leave the barrier first may end
  /// before the others have left it.
  virtual void ExpectPeersToLeave() {}
};

}  // namespace warren
