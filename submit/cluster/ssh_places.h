// Determines how the processes of --cluster ssh share the cores of their hosts, and the variables that
// describe the place of each process. Besides the arguments, these functions read only dmlc-submit's own
// environment.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "submit/cluster/script.h"
#include "submit/options/options.h"
#include "submit/process/binding.h"
#include "submit/process/planned_process.h"

namespace warren::submit {

/// The slot of a process of the plan. The servers have the first slots; the scheduler has no slot.
std::size_t PlaceOf(const Options& options, std::size_t index);

/// The place of a process of an elastic job, from its host and its slot there. `places` must list all slots
/// of a host consecutively.
std::size_t SeatedPlace(const std::vector<std::size_t>& places, std::size_t host, int slot);

/// The parameters for sharing the cores of a host among the workers placed there, plus this worker if it
/// moved there because its own host is gone. Empty if the process is not a worker or its cores are not
/// shared. `places`: the index of the host of each slot.
CoreShare ShareOf(const Options& options, const PlannedProcess& process,
                  const std::vector<std::size_t>& places, std::size_t place, std::size_t host);

/// Adds the variables that torch.distributed and Horovod need beyond the planned environment. `master`:
/// worker 0's host.
void AddPlace(const Options& options, const std::vector<std::size_t>& places, std::size_t place,
              std::size_t host, const std::string& master, PlannedProcess& process);

/// The cores of one process, and the binding of its host as a whole.
struct PlaceCores {
  CoreList own;  ///< cores of the process; empty if it is not bound
  Binding host;
};
/// Chooses the cores of the process in slot `place`. Each process on a host always gets the same cores,
/// however often it is started; a process that moved here because its own host is gone gets none. `report`:
/// the host's "cores" message: the number of usable cores, its OMP_NUM_THREADS (0 if not set), and its core
/// lists.
PlaceCores ChooseCores(const Options& options, const std::vector<std::size_t>& places, std::size_t place,
                       std::size_t host, const std::string& report);

}  // namespace warren::submit
