// What happens to the processes of a cluster, as values: what its state machine (gang_controller.h,
// kubernetes/controller.h) has to say to the job.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "submit/cluster/cluster.h"
#include "tracker/action.h"

namespace warren::submit {

using tracker::TimePoint;

enum class Severity { kDebug, kInfo, kWarning, kError };
/// A line for the log.
struct Log {
  Severity severity;
  std::string text;
};

// Each stands for a function of ClusterEvents (cluster.h), where it is explained.
struct ProcessOutput {
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
using ClusterEvent = std::variant<ProcessOutput, ProcessLocated, ProcessExited, LauncherSaid, JobWaits,
                                  JobRequeued, TrackerFailed, JobTroubled, Log>;

/// Calls the function; a Log goes to the log.
void Deliver(const ClusterEvent& event, const ClusterEvents& events);

}  // namespace warren::submit
