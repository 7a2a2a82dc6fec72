// Computes which ranks make others wait in collective calls.
//
// Every rank reports the duration of its long calls (wire/report.h). In each call, the rank that arrived last
// spent the shortest time; the additional time of each other rank is the time it waited for that rank. Ranks
// report at different times, so a call is settled once the reports of every rank cover it. Does no I/O.
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

  /// Adds a report of `rank`, whose reports now cover all calls up to `last_ended`.
  void Add(std::size_t rank, const std::vector<wire::ReportedWait>& waits, std::uint64_t last_ended);
  /// Called when the ranks start counting their calls from 1 again. Discards calls that are not settled.
  void BeginAgain();
  /// Like the overload above, for a new generation of `world_size` ranks, at most as many as at first.
  void BeginAgain(std::size_t world_size);
  /// Discards the calls up to `last_ended`. Called if a rank had more to report than fits in a report: it is
  /// then unknown which rank arrived last in these calls.
  void Forget(std::uint64_t last_ended);

  /// The time that this rank has waited for other ranks since the job began, in seconds.
  double Waited(std::size_t rank) const { return ranks_[rank].waited; }
  /// The time that this rank has made others wait, in seconds: the longest wait of any other rank, summed
  /// over the calls in which this rank arrived last.
  double MadeWait(std::size_t rank) const { return ranks_[rank].made_wait; }

 private:
  /// The reports on one call. A rank without a report spent too little time in the call to count.
  struct Call {
    std::vector<std::pair<std::size_t, double>> seconds;  ///< pairs of a rank and its seconds
  };
  struct Rank {
    std::uint64_t last_ended = 0;
    double waited = 0;
    double made_wait = 0;
  };

  void Settle(const Call& call);
  void SettleUpTo(std::uint64_t number);

  std::vector<Rank> ranks_;
  std::size_t world_size_;  ///< the number of ranks that take part in calls now
  std::map<std::uint64_t, Call> calls_;
  std::size_t num_kept_ = 0;  ///< total length of Call::seconds over all of calls_
};

}  // namespace warren::submit
