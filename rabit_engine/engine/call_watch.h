// Detects ranks that are in different calls, and warns of late ranks.
//
// Tags that travel with the data (collective/peer_group.h) or lie next to it (host/host_collectives.h) are
// compared where two ranks meet. But ranks that call different collectives may never meet: for example, one
// rank waits in shared memory for its leader, the leader waits for another host, and that host waits for a
// link that no rank makes. So a waiting rank compares its call with the calls of other ranks. The ranks of
// its host publish their calls in shared memory. To the awaited ranks on other hosts, it sends its call over
// short-lived connections, once per call, or repeatedly to a rank with which it has no link; the receiver
// compares the calls while it is itself waiting. In a deadlock every rank waits for another, so at least one
// of them finds a call that differs from its own and reports this to all ranks.
//
// Calls that send or receive messages are not compared, because other ranks need not make them;
// deadlock_search.h finds ranks that wait for each other's messages. A rank that waits very long for a rank
// that is not itself waiting prints a warning that names the late rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/call/call_tag.h"
#include "rabit_engine/engine/deadlock_search.h"
#include "rabit_engine/engine/job.h"
#include "rabit_engine/host/host_segment.h"
#include "rabit_engine/transport/tcp/tcp_transport.h"
#include "rabit_engine/transport/transport.h"

namespace warren {

/// `segment`, `tcp` and `job` must outlive the CallWatch. Not thread-safe.
class CallWatch final : public WaitObserver {
 public:
  /// `segment` is nullptr if this rank shares memory with no other rank. `job` is nullptr for the world; in
  /// other communicators, a waiting rank also throws if the job has lost a rank. A rank that has waited for
  /// `patience` prints a warning with the late rank and `name`, the communicator's name.
  CallWatch(HostSegment* segment, TcpTransport& tcp, const std::string& name, std::chrono::seconds patience,
            Job* job = nullptr);

  /// Begins a call and fills in `tag.before`. If `only_gives` is set, this rank receives nothing in this
  /// call, not even another rank's tag, so Begin compares `tag` with the calls that the ranks on its host
  /// have begun. Throws Misuse if one differs.
  void Begin(CallTag& tag, bool only_gives);
  /// Begins a send or receive call, which other ranks need not make.
  void BeginMessages() { in_messages_ = true; }

  /// The digest of all collectives that this rank has begun.
  std::uint64_t digest() const { return digest_; }

  /// Throws Misuse if it finds a rank in a different call or a cycle of ranks that wait for each other's
  /// messages; LostPeer if it finds that a rank has been lost.
  void OnWait(std::span<const Interest> awaited, Clock::time_point since, Clock::time_point looked) override;
  int WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline) override;

 private:
  void LookForLossesOfJob();
  const CallTag* Remembered(std::uint32_t sequence) const;
  void CompareWithHost();
  void CompareWithAskers();
  void Ask();

  bool SharesMemory(int rank) const;
  /// The wait record of this rank or of one that shares memory with it; nullopt if that rank is not waiting
  /// or its record is out of date.
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
  std::vector<int> asked_;  ///< the ranks to which the current call has been sent
  Clock::time_point asked_last_;
  std::vector<Interest> on_links_;  ///< the awaited ranks that share no memory with this one

  bool in_messages_ = false;
  WaitRecord wait_;
  DeadlockSearch search_;
  const std::string name_;
  const std::chrono::seconds patience_;
  Clock::time_point warned_since_{};  ///< start of the wait that next_warning_ is for
  Clock::time_point next_warning_{};
  /// The time at which the first awaited rank was asked whether it is itself waiting; the next warning
  /// depends on its answer. Zero if it has not been asked.
  Clock::time_point asked_whether_it_waits_{};
  int suspect_ = -1;  ///< the rank on this host that appears to be late, or -1
  Clock::time_point suspected_since_{};
  Clock::time_point missed_deadline_{};  ///< the deadline that asked_after_deadline_ belongs to
  Clock::time_point asked_after_deadline_{};
};

}  // namespace warren
