// The workers of an elastic job whose hosts may change: which of them has a seat on which host.
// cluster/seats.h finds the changes; this class keeps what has been decided, and returns the actions to carry
// out.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "submit/cluster/host_losses.h"
#include "submit/cluster/seats.h"
#include "submit/job/actions.h"
#include "submit/job/process_state.h"

namespace warren::submit {

class Seating {
 public:
  /// `hosts_from`: where the hosts come from, such as "the host file".
  Seating(std::string hosts_from, std::size_t min_workers);

  /// All processes have lost their seats, because the job is started again.
  void Clear();
  /// `tells`: whether the user is told of the changes.
  std::vector<Action> SetHosts(const std::vector<HostRoom>& hosts, bool tells);
  /// Gives seats on hosts that have room to processes that are then to be started (TakeNext), and asks those
  /// to leave whose seats have gone.
  std::vector<Action> Reseat(std::vector<ProcessState>& processes, HostLosses& losses, TimePoint now);
  /// No more seats are given until the next Reseat.
  void Rest() { next_change_.reset(); }
  /// Warns the user once while too few workers can run. `needs_workers`: whether the job goes on.
  std::vector<Action> TellIfItWaits(bool needs_workers);

  bool has_next() const { return !to_start_.empty(); }
  /// The next process to start, which has a seat.
  std::size_t TakeNext();
  /// Whether a process stays although its seat has gone, until another one has joined.
  bool keeps_one() const { return kept_.has_value(); }
  /// How many processes can run: SeatChanges::num_possible.
  std::size_t num_possible() const { return num_possible_; }
  bool has_too_few() const { return num_possible_ < min_workers_; }
  /// When Reseat is to be called because a host may be used again.
  std::optional<TimePoint> next_change() const { return next_change_; }

 private:
  const std::string hosts_from_;
  const std::size_t min_workers_;
  std::vector<HostRoom> hosts_;
  bool is_first_ = true;  ///< no seats have been given since the job began or was started again
  std::deque<std::size_t> to_start_;
  std::size_t num_possible_ = 0;
  std::optional<std::size_t> kept_;
  std::optional<TimePoint> next_change_;
  int num_expected_ = 0;  ///< the latest number in ExpectWorkers
  bool told_that_it_waits_ = false;
};

/// Takes the seat of a process away.
void Unseat(ProcessState& process);

}  // namespace warren::submit
