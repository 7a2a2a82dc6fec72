// Determines the Slurm step of this process, including the address of the step's rank 0, from environment
// variables set by srun and by the user. Pure functions over text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/variables.h"

namespace warren {

/// Expands Slurm's short form of a host list, keeping its order: "n[1-3,7],gpu[01-04]" names eight hosts. A
/// name may have several brackets. Throws EngineError if the list is malformed; the message explains the
/// fault and quotes the list or the contents of the faulty brackets.
std::vector<std::string> ExpandHostList(std::string_view list);

/// One task of a job step.
struct SlurmStep {
  std::string id;  ///< "<job>.<step>"
  int rank = 0;    ///< SLURM_PROCID
  int world_size = 1;
  std::string meeting_host;        ///< the host of rank 0, as reached from this task
  std::vector<int> meeting_ports;  ///< ports that rank 0 may listen on, in the order of trying
  /// A string that processes outside this step cannot easily find out. It distinguishes jobs that use the
  /// same port by chance; it does not protect against other users of the host, unless WARREN_BOOTSTRAP_TOKEN
  /// holds a secret or the string is derived from the job's token.
  std::string token;
  /// Whether `token` is derived from the job's token. If so, connections without the right token get no
  /// answer.
  bool has_job_token = false;
};

/// Reads SLURM_JOB_ID, SLURM_STEP_ID, SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST and other Slurm
/// variables, and WARREN_BOOTSTRAP_HOST, WARREN_BOOTSTRAP_PORT and WARREN_BOOTSTRAP_TOKEN through `look_up`,
/// which returns nullopt for a variable that is unset or empty. Throws EngineError with a message that names
/// the missing variable or quotes the malformed value.
SlurmStep ReadSlurmStep(const wire::LookUp& look_up);

}  // namespace warren
