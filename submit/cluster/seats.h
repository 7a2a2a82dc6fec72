// Where the workers of an elastic job run if its hosts may change: which of them are started on which host,
// and which are asked to leave theirs. A function of values.
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

/// A worker that has not ended its work.
struct SeatedTask {
  std::optional<Seat> seat = {};  ///< where it runs or is about to start
  std::string last_host = {};     ///< where it ran before
  bool joined = false;            ///< has taken part in a generation, and so holds the training's state
  bool leaving = false;           ///< has been asked to leave
};

struct SeatChanges {
  struct Start {
    std::size_t task;
    Seat seat;
  };
  std::vector<Start> starts;
  std::vector<std::size_t> leaves;  ///< tasks whose seats have gone
  /// The task whose seat has gone, but which stays until another one has joined, since the training's state
  /// would leave with it.
  std::optional<std::size_t> kept;
  /// How many tasks have a seat, get one, or will get one when a host has rested or they have left theirs.
  std::size_t num_possible = 0;
  std::optional<TimePoint> next;  ///< when a host that is avoided now may be used again
};

/// `hosts`: in the order in which they are filled. A task gets a seat on its last host if it can, otherwise
/// on the first host with room. Hosts that `losses` avoids get no task. `tasks`: the tasks by number; nullopt
/// for those that have ended their work.
SeatChanges ChangeSeats(const std::vector<HostRoom>& hosts,
                        const std::vector<std::optional<SeatedTask>>& tasks, const HostLosses& losses,
                        TimePoint now);

/// The number of workers that may run on the hosts together, at most `limit`.
std::size_t NumSlots(const std::vector<HostRoom>& hosts, std::size_t limit);

}  // namespace warren::submit
