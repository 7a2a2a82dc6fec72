// How bytes move between ranks: one ordered byte stream in each direction between every two linked ranks. The
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
  /// Takes as many of the bytes as fit now, without waiting. Returns how many, 0 if there is no room. Throws
  /// LostPeer if the peer is gone.
  virtual std::size_t TrySend(const void* data, std::size_t bytes) = 0;
  /// The same for two pieces in a row, sent together if the transport can. Returns the number of bytes taken
  /// in total.
  virtual std::size_t TrySendWithHead(const void* head, std::size_t head_bytes, const void* data,
                                      std::size_t bytes) {
    const std::size_t taken = TrySend(head, head_bytes);
    return taken < head_bytes || bytes == 0 ? taken : taken + TrySend(data, bytes);
  }
  /// Reads up to `bytes` that have arrived, without waiting. Returns how many, 0 if none have. Throws
  /// LostPeer if the peer is gone and all it sent has been read.
  virtual std::size_t TryReceive(void* data, std::size_t bytes) = 0;
};

/// What a rank waits for on one link. If neither flag is set, it waits for the peer to do something in shared
/// memory.
struct Interest {
  int peer = -1;
  bool to_send = false;
  bool to_receive = false;
};

/// Returns the first peer awaited, or `rank` if none is.
inline int FirstOf(std::span<const Interest> awaited, int rank) {
  return awaited.empty() ? rank : awaited.front().peer;
}

using Clock = std::chrono::steady_clock;
inline constexpr Clock::time_point kNoDeadline = Clock::time_point::max();

/// Called while a rank waits.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  /// Called at least five times a second. `since` is the time when this wait began. After the time `looked`,
  /// the rank has checked once more that nothing has arrived from the awaited peers. Throws if waiting any
  /// longer is pointless.
  virtual void OnWait(std::span<const Interest> awaited, Clock::time_point since,
                      Clock::time_point looked) = 0;
  /// Called after the deadline. Returns the peer to report as late, or -1 if the awaited peers are themselves
  /// waiting: the rank that waits for the late rank is then about to report it.
  virtual int WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline) = 0;
};

/// All links of one rank. Not thread-safe: one collective at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  /// Makes sure that there are links to these ranks, and makes those that are missing. The peers must soon
  /// make the same call for this rank: an algorithm calls Connect with the same plan on all ranks. Throws
  /// LostPeer or TimedOut.
  virtual void Connect(std::span<const int> peers) = 0;
  /// Returns the link to a peer that Connect was called for.
  virtual Link& To(int peer) = 0;

  /// Returns when one of the interests may make progress (sometimes spuriously). Yields the core while it
  /// waits. Throws LostPeer if the peer of any link is gone, even one that is not among the interests,
  /// because the collective cannot end then; throws TimedOut after the deadline.
  virtual void Wait(std::span<const Interest> interests, Clock::time_point deadline) = 0;

  /// Interrupt makes Wait return immediately until Resume is called. Unlike all other functions here, it may
  /// be called by any thread, even while another is in Wait. AllowInterrupts must be called before both.
  virtual void AllowInterrupts() {}
  virtual void Interrupt() {}
  virtual void Resume() {}

  /// `observer` is called during Connect and Wait and must outlive the transport. None by default.
  virtual void SetWaitObserver([[maybe_unused]] WaitObserver* observer) {}

  /// Tells every linked peer that this rank gives up, so that they do not wait for it: their calls throw
  /// LostPeer naming `lost_rank` (the first rank that was lost, or this rank itself if the error is its own).
  /// `shortage` is the errno of the call in which that rank ran out of a resource, 0 if unknown; the peers
  /// include it in their messages. Afterwards the transport can only be destroyed.
  virtual void Abort(int lost_rank, int shortage) noexcept = 0;
  void Abort(int lost_rank) noexcept { Abort(lost_rank, 0); }

  /// From now on a peer that ends counts as lost only if this rank still waits for it. All ranks call this
  /// before the barrier that ends the job: ranks that leave the barrier first may end before the others have
  /// left it.
  virtual void ExpectPeersToLeave() {}
};

}  // namespace warren
