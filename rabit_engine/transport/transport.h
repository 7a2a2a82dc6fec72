// How bytes move between ranks: one ordered byte stream in each direction between every two ranks that talk.
// The algorithms in collective/ know this interface and nothing below it.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

namespace warren {

/// The byte stream to and from one peer. Not thread safe.
class Link {
 public:
  virtual ~Link() = default;
  /// Takes as many of the bytes as fit now, without waiting. Returns how many, 0 when there is no room.
  /// Throws LostPeer when the peer is gone.
  virtual std::size_t TrySend(const void* data, std::size_t bytes) = 0;
  /// The same for two pieces in a row, in one go where the transport can. Returns how many bytes of both.
  virtual std::size_t TrySendWithHead(const void* head, std::size_t head_bytes, const void* data,
                                      std::size_t bytes) {
    const std::size_t taken = TrySend(head, head_bytes);
    return taken < head_bytes || bytes == 0 ? taken : taken + TrySend(data, bytes);
  }
  /// Reads up to `bytes` that have arrived, without waiting. Returns how many, 0 when there are none.
  /// Throws LostPeer when the peer is gone and nothing of it is left to read.
  virtual std::size_t TryReceive(void* data, std::size_t bytes) = 0;
};

/// What a rank waits for on one link; neither: something that the peer does in shared memory.
struct Interest {
  int peer = -1;
  bool to_send = false;
  bool to_receive = false;
};

/// The first one that is awaited by this rank; this rank if there is none.
inline int FirstOf(std::span<const Interest> awaited, int rank) {
  return awaited.empty() ? rank : awaited.front().peer;
}

using Clock = std::chrono::steady_clock;
inline constexpr Clock::time_point kNoDeadline = Clock::time_point::max();

/// Called while a rank waits in vain.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  /// Called every now and then, at least five times a second, with the peers waited for and the time when
  /// this wait began: nothing of them has come since, as was seen after `looked`. Throws what makes waiting
  /// any longer pointless.
  virtual void OnWait(std::span<const Interest> awaited, Clock::time_point since,
                      Clock::time_point looked) = 0;
  /// The deadline has passed: which of them is to be named for it. -1: none yet, for they wait themselves,
  /// and whoever waits for the one that is late is about to say so.
  virtual int WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline) = 0;
};

/// All links of one rank. Not thread safe: one collective at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  /// Makes sure that there are links to these ranks; connects those that are missing. The peers must make the
  /// same call for this rank before long: an algorithm calls it with the same plan on all ranks. Throws
  /// LostPeer or TimedOut.
  virtual void Connect(std::span<const int> peers) = 0;
  /// The link to a peer that Connect was called for.
  virtual Link& To(int peer) = 0;

  /// Returns when one of the interests may make progress (spuriously at times). Gives the core away while it
  /// waits. Throws LostPeer when any peer of a link is gone, even one that is not among the interests, for
  /// then the collective cannot end; TimedOut after the deadline.
  virtual void Wait(std::span<const Interest> interests, Clock::time_point deadline) = 0;

  /// From now on Wait returns at once, until Resume. Of any thread, also while another is in Wait, as nothing
  /// else here.
  virtual void AllowInterrupts() {}  ///< comes before them
  virtual void Interrupt() {}
  virtual void Resume() {}

  /// Is told during Connect and Wait; must outlive the transport. Nobody by default.
  virtual void SetWaitObserver([[maybe_unused]] WaitObserver* observer) {}

  /// Tells every linked peer that this rank gives up, so that they do not wait for it: their calls throw
  /// LostPeer naming `lost_rank` (the rank whose loss began it, this rank itself for an error of its own).
  /// `shortage` is the error of the call for which that rank lacked something of its own, 0 if none is known;
  /// the peers pass it on in their messages. After it the transport can only be destroyed.
  virtual void Abort(int lost_rank, int shortage) noexcept = 0;
  void Abort(int lost_rank) noexcept { Abort(lost_rank, 0); }

  /// From now on a peer that ends is no loss unless this rank still waits for it. Called by all ranks before
  /// the barrier that ends the job: whoever is through it may be gone before the others have left it.
  virtual void ExpectPeersToLeave() {}
};

}  // namespace warren
