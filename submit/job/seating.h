// Assigns seats to the workers of an elastic job whose hosts may change. cluster/seats.h computes the
// changes; this class records them and returns the actions to carry out.
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
  /// `hosts_from`: the source of the hosts, such as "the host file".
  Seating(std::string hosts_from, std::size_t min_workers);

  /// Call when the job is restarted, after all processes have lost their seats.
  void Clear();
  /// Replaces the hosts. `tells`: whether to return a message to the user about the changes.
  std::vector<Action> SetHosts(const std::vector<HostRoom>& hosts, bool tells);
  /// Assigns free seats to processes, which must then be started (TakeNext), and asks processes whose seats
  /// are gone to leave. The first call after the job began or was restarted clears `losses` if too few
  /// workers could run otherwise.
  std::vector<Action> Reseat(std::vector<ProcessState>& processes, HostLosses& losses, TimePoint now);
  /// Cancels next_change(): no seats are assigned until the next Reseat.
  void Rest() { next_change_.reset(); }
  /// Returns a warning, once per wait, if too few workers can run. `needs_workers`: whether the job still
  /// needs workers.
  std::vector<Action> TellIfItWaits(bool needs_workers);

  bool has_next() const { return !to_start_.empty(); }
  /// Removes and returns the next process to start, which has a seat. Call only if has_next().
  std::size_t TakeNext();
  /// Whether a process whose seat is gone stays until another process has joined.
  bool keeps_one() const { return kept_.has_value(); }
  /// The number of processes that can run: SeatChanges::num_possible.
  std::size_t num_possible() const { return num_possible_; }
  bool has_too_few() const { return num_possible_ < min_workers_; }
  /// When to call Reseat because a host may be used again.
  std::optional<TimePoint> next_change() const { return next_change_; }

 private:
  const std::string hosts_from_;
  const std::size_t min_workers_;
  std::vector<HostRoom> hosts_;
  bool is_first_ = true;  ///< Reseat has not been called since the job began or was restarted
  std::deque<std::size_t> to_start_;
  std::size_t num_possible_ = 0;
  std::optional<std::size_t> kept_;
  std::optional<TimePoint> next_change_;
  int num_expected_ = 0;  ///< the number in the latest ExpectWorkers
  bool told_that_it_waits_ = false;
};

/// Takes the seat of a process away. The process is left out until it gets another seat.
void Unseat(ProcessState& process);

}  // namespace warren::submit
