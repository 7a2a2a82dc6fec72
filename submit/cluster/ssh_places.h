// Determines how the processes of --cluster ssh share the cores of their hosts, and the environment variables
// with the local rank of each process and similar numbers. Besides the arguments, these functions read only
// dmlc-submit's own environment.
//
// In this file, a place is the index of a slot in `places`, which contains the index of the host for each
// slot.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "submit/cluster/script.h"
#include "submit/options/options.h"
#include "submit/process/binding.h"
#include "submit/process/planned_process.h"

namespace warren::submit {

/// The place of process `index` of the plan. The servers have the first places. Must not be called for the
/// scheduler, which has none.
std::size_t PlaceOf(const Options& options, std::size_t index);

/// The place of a process of an elastic job, from the index of its host and the number of its slot there.
/// `places` must list all slots of a host consecutively.
std::size_t SeatedPlace(const std::vector<std::size_t>& places, std::size_t host, int slot);

/// The parameters for sharing the cores of `host` among the workers placed there, plus this worker if it was
/// moved there because its own host is gone. Empty if the process is not a worker or workers do not share
/// cores.
CoreShare ShareOf(const Options& options, const PlannedProcess& process,
                  const std::vector<std::size_t>& places, std::size_t place, std::size_t host);

/// The workers that were started on another host because their own host is gone.
class MovedWorkers {
 public:
  /// Records the host on which the worker with this place is started. `moved`: whether it is not its own
  /// host.
  void Start(std::size_t place, std::size_t host, bool moved);
  /// The worker's number among the moved workers of its host, from 0. It stays the same while the worker
  /// runs.
  std::size_t NumberOf(std::size_t place) const { return moved_.at(place).second; }
  std::size_t CountOn(std::size_t host) const;

 private:
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> moved_;  ///< host and number, by place
};

/// Adds the variables that torch.distributed and Horovod need beyond the planned environment. Does nothing
/// unless the process is a worker. `host`: the host on which it is started; `master`: worker 0's address.
/// `moved` must include this worker if `host` is not its own.
void AddPlace(const Options& options, const std::vector<std::size_t>& places, const MovedWorkers& moved,
              std::size_t place, std::size_t host, const std::string& master, PlannedProcess& process);

/// The cores of one process, and the binding of its host as a whole.
struct PlaceCores {
  CoreList own;  ///< cores that the process is bound to; empty if it is not bound
  Binding host;
};
/// Chooses the cores of the process with this place on `host`. Each process gets the same cores whenever it
/// is started; a process that was moved to `host` because its own host is gone gets none. `report`: the text
/// of the host's "cores" message: the number of usable cores, the value of OMP_NUM_THREADS (0 if not set),
/// and the core lists.
PlaceCores ChooseCores(const Options& options, const std::vector<std::size_t>& places, std::size_t place,
                       std::size_t host, const std::string& report);

}  // namespace warren::submit
