// What happens to the processes of a cluster, as values: what its state machine (gang_controller.h,
// kubernetes/controller.h) has to say to the job.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "submit/cluster/cluster.h"
#include "submit/output/log_line.h"
#include "tracker/action.h"

namespace warren::submit {

using tracker::TimePoint;

// Each stands for a function of ClusterEvents (cluster.h), where it is explained.
struct ProcessWrote {
  std::size_t index;
  Stream stream;
  std::string bytes;
};
struct ProcessLocated {
  std::size_t index;
  Started where;
};
struct ProcessExited {
  std::size_t index;
  ExitStatus status;
};
struct ProcessSampled {
  std::size_t index;
  ProcessSample sample;
};
struct LauncherSaid {
  std::string launcher;
  Stream stream;
  std::string piece;
};
struct JobWaits {};
struct JobRequeued {
  std::string story;
};
struct TrackerFailed {
  std::string story;
};
struct JobTroubled {
  std::string story;
};
using ClusterEvent = std::variant<ProcessWrote, ProcessLocated, ProcessExited, ProcessSampled, LauncherSaid,
                                  JobWaits, JobRequeued, TrackerFailed, JobTroubled, LogLine>;

/// Calls the function; a LogLine goes to the log.
void Deliver(const ClusterEvent& event, const ClusterEvents& events);

}  // namespace warren::submit
