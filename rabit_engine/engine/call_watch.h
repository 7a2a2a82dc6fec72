// Finds out that ranks are in different calls.
//
// Tags that travel with the data (collective/peer_group.h) or lie beside it (host/host_collectives.h) are
// compared where two ranks meet. But ranks that call different collectives may never meet: one waits in
// shared memory for a leader, who waits for a host that waits for a link which nobody makes. So whoever waits
// looks around: the ranks of its host say in shared memory which calls they make; another host's rank that it
// waits for is asked, once a call, by a short connection that tells this rank's call. A rank that is asked
// compares when it waits itself. As each rank of a deadlock waits for another, at least one of them finds a
// call that differs from its own, and says so to all.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "rabit_engine/engine/job.h"
#include "rabit_engine/host/host_segment.h"
#include "rabit_engine/transport/call_tag.h"
#include "rabit_engine/transport/tcp/tcp_transport.h"
#include "rabit_engine/transport/transport.h"

namespace warren {

/// Both parts must outlive it. Not thread safe.
class CallWatch final : public WaitObserver {
 public:
  /// `segment` is nullptr for a rank that shares memory with nobody, `job` for the world: in others it is
  /// asked for losses, too.
  CallWatch(HostSegment* segment, TcpTransport& tcp, Job* job = nullptr)
      : segment_(segment), tcp_(tcp), job_(job) {}

  /// This rank begins a call. Fills in `tag.before`.
  void Begin(CallTag& tag);

  /// Of this call and all before it.
  std::uint64_t digest() const { return digest_; }

  /// Throws Misuse when a rank has called something else than this one, LostPeer when a linked rank is gone.
  void OnWait(std::span<const Interest> awaited, std::chrono::nanoseconds waited) override;

 private:
  const CallTag* Remembered(std::uint32_t sequence) const;
  void CompareWithHost();
  void CompareWithAskers();
  void Ask();

  HostSegment* segment_;
  TcpTransport& tcp_;
  Job* job_;
  CallTag current_;
  std::uint64_t digest_ = 0;
  std::array<CallTag, kRememberedCalls> calls_{};
  std::vector<int> asked_;  ///< about the current call
  Clock::time_point asked_last_;
  std::vector<Interest> on_links_;  ///< of those waited for, who are not on this host
};

}  // namespace warren
