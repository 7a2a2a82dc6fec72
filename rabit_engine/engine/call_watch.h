// Finds out that ranks are in different calls.
//
// Tags that travel with the data (collective/peer_group.h) or lie beside it (host/host_collectives.h) are
// compared where two ranks meet. But ranks that call different collectives may never meet: one waits in
// shared memory for a leader, who waits for a host that waits for a link which nobody makes. So whoever waits
// looks around: the ranks of its host say in shared memory which calls they make; another host's rank that it
// waits for is asked, once a call, by a short connection that tells this rank's call. A rank that is asked
// compares when it waits itself. As each rank of a deadlock waits for another, at least one of them finds a
// call that differs from its own, and says so to all.
//
// Messages between two ranks are calls that the others do not make: ranks that wait for each other's are
// found by deadlock_search.h. And whoever waits for very long for a rank that does not wait itself says for
// whom.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/engine/deadlock_search.h"
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
  /// asked for losses, too. After `patience` it is said whom this rank waits for, in the communicator `name`.
  CallWatch(HostSegment* segment, TcpTransport& tcp, const std::string& name, std::chrono::seconds patience,
            Job* job = nullptr);

  /// This rank begins a call. Fills in `tag.before`. With `only_gives` this rank takes nothing from others in
  /// this call, so no data brings it another's tag: it is compared here with those that the ranks of its host
  /// have begun. Throws Misuse if one differs.
  void Begin(CallTag& tag, bool only_gives);
  /// It begins one that others do not make.
  void BeginMessages() { in_messages_ = true; }

  /// The digest of this call and all calls before it.
  std::uint64_t digest() const { return digest_; }

  /// Throws Misuse when a rank has called something else than this one or messages wait for each other,
  /// LostPeer when a linked rank is gone.
  void OnWait(std::span<const Interest> awaited, Clock::time_point since, Clock::time_point looked) override;
  int WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline) override;

 private:
  void LookForLossesOfJob();
  const CallTag* Remembered(std::uint32_t sequence) const;
  void CompareWithHost();
  void CompareWithAskers();
  void Ask();

  bool SharesMemory(int rank) const;
  /// What that rank of this host says of its wait, if it is in it still.
  std::optional<WaitRecord> WaitOf(int rank) const;
  void SayWait(std::span<const Interest> awaited, Clock::time_point since, Clock::time_point looked);
  LinkState LinkWith(int peer) const;
  void LookForDeadlock(std::span<const Interest> awaited);
  [[noreturn]] void ThrowDeadlock() const;
  void WarnIfLate(std::span<const Interest> awaited, Clock::time_point since, Clock::time_point now);
  int CulpritHere(int rank) const;
  bool AnotherSpeaksOf(int culprit) const;

  HostSegment* segment_;
  TcpTransport& tcp_;
  Job* job_;
  CallTag current_;
  std::uint64_t digest_ = 0;
  std::array<CallTag, kRememberedCalls> calls_{};
  std::vector<int> asked_;  ///< about the current call
  Clock::time_point asked_last_;
  std::vector<Interest> on_links_;  ///< in ranks that are waited for on other hosts

  bool in_messages_ = false;
  WaitRecord wait_;
  DeadlockSearch search_;
  const std::string name_;
  const std::chrono::seconds patience_;
  Clock::time_point warned_since_{};  ///< the wait that next_warning_ is of
  Clock::time_point next_warning_{};
  Clock::time_point asked_whether_it_waits_{};  ///< the rank at the other end; never, for this warning
  int suspect_ = -1;                            ///< the rank of this host that does not wait, it seems
  Clock::time_point suspected_since_{};
  Clock::time_point missed_deadline_{};  ///< and those that are awaited, after this
  Clock::time_point asked_after_deadline_{};
};

}  // namespace warren
