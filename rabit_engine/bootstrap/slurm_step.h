// What Slurm tells a task that srun started, and where its rank 0 can be met. Pure functions over text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/variables.h"

namespace warren {

/// The hosts of Slurm's short form, in its order: "n[1-3,7],gpu[01-04]" names seven. A name may have several
/// brackets. Throws EngineError that shows the list and what is wrong with it.
std::vector<std::string> ExpandHostList(std::string_view list);

/// One task of a job step.
struct SlurmStep {
  std::string id;  ///< "<job>.<step>"
  int rank = 0;    ///< SLURM_PROCID
  int world_size = 1;
  std::string meeting_host;        ///< where rank 0 listens, as this task reaches it
  std::vector<int> meeting_ports;  ///< the ports rank 0 may listen on, best first
  /// What only tasks of this step can easily know. Keeps jobs apart that meet at one port by chance; it is no
  /// defence against a user of the same host, unless WARREN_BOOTSTRAP_TOKEN holds a secret.
  std::string token;
  bool has_job_token = false;  ///< `token` is made from the job's; who does not know it hears nothing
};

/// Reads SLURM_JOB_ID, SLURM_STEP_ID, SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST and the like,
/// WARREN_BOOTSTRAP_HOST, WARREN_BOOTSTRAP_PORT and WARREN_BOOTSTRAP_TOKEN through `look_up`, which gives
/// nothing for a variable that is unset or empty. Throws EngineError that names the variable that is missing
/// or wrong.
SlurmStep ReadSlurmStep(const wire::LookUp& look_up);

}  // namespace warren
