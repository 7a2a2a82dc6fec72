// Assigns the workers of an elastic job to its hosts if the hosts may change. A pure function determines
// which workers are started on which host, and which workers are asked to leave.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "submit/cluster/host_losses.h"
#include "submit/process/planned_process.h"

namespace warren::submit {

/// A host of the job, and the number of workers that may run there.
struct HostRoom {
  std::string name;
  int slots = 1;

  bool operator==(const HostRoom&) const = default;
};

/// A worker that has not finished its work.
struct SeatedTask {
  std::optional<Seat> seat = {};  ///< the seat in which the worker runs or is about to start
  std::string last_host = {};     ///< the host of the worker's previous seat
  bool joined = false;            ///< whether it has joined a generation, so that it has the training state
  bool leaving = false;           ///< whether it has been asked to leave
};

struct SeatChanges {
  struct Start {
    std::size_t task;
    Seat seat;
  };
  std::vector<Start> starts;
  std::vector<std::size_t> leaves;  ///< tasks to be asked to leave, because their seats are gone
  /// A task whose seat is gone, but which stays until another task has joined, since no other task has the
  /// training state.
  std::optional<std::size_t> kept;
  /// The number of tasks that keep their seats, get one now, or can get one once a host has rested or once
  /// they have left their present seats.
  std::size_t num_possible = 0;
  std::optional<TimePoint> next;  ///< when a host that is avoided now may be used for a waiting task
};

/// Determines the changes. `hosts`: in the order in which they are filled. A task gets a seat on its last
/// host if possible, otherwise on the first host with a free slot. Hosts to be avoided according to `losses`
/// get no task. `tasks`: the tasks by number; nullopt for tasks that have finished their work.
SeatChanges ChangeSeats(const std::vector<HostRoom>& hosts,
                        const std::vector<std::optional<SeatedTask>>& tasks, const HostLosses& losses,
                        TimePoint now);

/// The total number of workers that may run on the hosts, or `limit` if that is less.
std::size_t NumSlots(const std::vector<HostRoom>& hosts, std::size_t limit);

}  // namespace warren::submit
