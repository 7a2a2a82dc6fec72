// The events that a cluster's state machine (gang_controller.h, ssh_controller.h, kubernetes/controller.h)
// reports to the job, as values.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "submit/cluster/cluster.h"
#include "submit/output/log_line.h"
#include "tracker/action.h"

namespace warren::submit {

using tracker::TimePoint;

// Each of these events corresponds to a function of ClusterEvents (cluster.h), which documents it.
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

/// Calls the function of `events` for the event. Logs the event instead if it is a LogLine.
void Deliver(const ClusterEvent& event, const ClusterEvents& events);

}  // namespace warren::submit
