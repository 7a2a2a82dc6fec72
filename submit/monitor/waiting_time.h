// Who makes whom wait in collective calls.
//
// Every rank says how long the calls took it that took long (wire/report.h). In each call the rank that came
// last was in it for the shortest time, and the others waited for it for so much longer as they were in it.
// Ranks report at different times, so a call is settled when each has said something of a later one. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "wire/report.h"

namespace warren::submit {

class WaitingTime {
 public:
  explicit WaitingTime(std::size_t world_size);

  /// What `rank` says: of all calls up to `last_ended` it has now said what there is to say.
  void Add(std::size_t rank, const std::vector<wire::ReportedWait>& waits, std::uint64_t last_ended);
  /// Calls are counted anew: ranks began anew. What was settled stays; of what was not nothing is known.
  void BeginAgain();
  /// A rank has more to say than goes into its reports: of calls up to here nobody knows who came last.
  void Forget(std::uint64_t last_ended);

  /// For other ranks, in seconds since the job began.
  double Waited(std::size_t rank) const { return ranks_[rank].waited; }
  /// By coming late: the longest that any other rank waited, summed over the calls in which it came last.
  double MadeWait(std::size_t rank) const { return ranks_[rank].made_wait; }

 private:
  /// Numbers of ranks that say less of a call than there are ranks: they took no time that counts.
  struct Call {
    std::vector<std::pair<std::size_t, double>> seconds;  ///< of each rank that said something
  };
  struct Rank {
    std::uint64_t last_ended = 0;
    double waited = 0;
    double made_wait = 0;
  };

  void Settle(const Call& call);
  void SettleUpTo(std::uint64_t number);

  std::vector<Rank> ranks_;
  std::map<std::uint64_t, Call> calls_;
  std::size_t num_kept_ = 0;  ///< numbers in calls_
};

}  // namespace warren::submit
