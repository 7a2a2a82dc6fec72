// The processes of a job, as a function of the options. Nothing is started here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "submit/options/options.h"
#include "submit/process/binding.h"
#include "submit/process/command.h"
#include "submit/process/planned_process.h"
#include "tracker/environment.h"

namespace warren::submit {

/// Shown by --dry-run instead of the port chosen for each job.
inline constexpr std::uint16_t kShownMasterPort = 29500;

/// The inputs of a plan other than the options.
struct PlanContext {
  tracker::JobAddress address;         ///< address of the tracker or the scheduler
  FoundCommand command;                ///< the program that options.command[0] refers to
  std::vector<std::string> inherited;  ///< names of the variables in dmlc-submit's environment
  int usable_cores = 1;                ///< usable cores of this machine, for workers that run here
  Binding binding = {};                ///< the binding of processes that run here
  std::uint16_t master_port = 0;       ///< a port of worker 0's host, for torch.distributed
  int report_seconds = 0;              ///< interval of the workers' reports; 0: no reports
  tracker::Environment trace = {};     ///< variables that link the programs' spans to the job's trace
};

/// The processes of the job in the order in which they are started: scheduler, servers, workers. Throws
/// UsageError if --env names a variable that the job itself sets.
std::vector<PlannedProcess> Plan(const Options& options, const PlanContext& context);

}  // namespace warren::submit
