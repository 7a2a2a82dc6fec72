// Byte streams between the ranks on one host: a ring in shared memory for each direction. They serve
// algorithms that send messages between ranks; collectives among the ranks of one host use faster methods
// (host/host_collectives.h).
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "rabit_engine/host/host_segment.h"
#include "rabit_engine/host/waiter.h"
#include "rabit_engine/transport/transport.h"

namespace warren {

/// Reaches only the ranks of the segment. Ranks are ranks in the job.
class ShmTransport : public Transport {
 public:
  ShmTransport(HostSegment& segment, int world_size);
  ~ShmTransport() override;

  int rank() const override { return segment_.rank(); }
  int world_size() const override { return world_size_; }
  /// Whether the rank is another rank of the segment.
  bool Reaches(int rank) const { return LocalIndex(rank) >= 0; }

  void Connect(std::span<const int> peers) override;
  Link& To(int peer) override;
  void Wait(std::span<const Interest> interests, Clock::time_point deadline) override;
  void SetWaitObserver(WaitObserver* observer) override { wait_observer_ = observer; }
  using Transport::Abort;
  void Abort(int lost_rank, int shortage) noexcept override { segment_.Abort(lost_rank, shortage); }
  void ExpectPeersToLeave() override { peers_may_leave_ = true; }
  void Interrupt() override;
  void Resume() override { is_interrupted_ = false; }

  // --- for a transport that has other links, too ---

  /// Returns kCrowded if the segment is oversubscribed, kThis if a peer of `interests` was last on this
  /// rank's core, otherwise kOther. All of these peers must be on this host.
  PeerCore CoreOf(std::span<const Interest> interests);
  /// Whether one of the interests may make progress now. Ranks on other hosts are skipped.
  bool AnyReady(std::span<const Interest> interests) const;
  /// Throws LostPeer if a rank on the host has given up, an awaited rank has left, or a process on the host
  /// has ended (after ExpectPeersToLeave, only if its rank is awaited). Makes a system call. Does not throw
  /// if an interest is ready, because data sent before the loss still counts.
  void ThrowIfLost(std::span<const Interest> interests);
  /// Sleeps until a local peer has moved bytes, Interrupt is called, `other_descriptor` (-1 for none) becomes
  /// readable, or the limit has passed; may return spuriously.
  void Sleep(std::span<const Interest> interests, int other_descriptor, Clock::duration limit);
  bool is_interrupted() const { return is_interrupted_; }

 private:
  class RingLink;
  int LocalIndex(int rank) const;

  HostSegment& segment_;
  Doorbell::Seat doorbell_;
  Waiter waiter_;
  WaitPolicy wait_policy_;
  WaitObserver* wait_observer_ = nullptr;
  int world_size_;
  bool peers_may_leave_ = false;
  std::atomic<bool> is_interrupted_ = false;
  std::vector<int> local_of_rank_;
  std::vector<std::unique_ptr<RingLink>> links_;
};

}  // namespace warren
