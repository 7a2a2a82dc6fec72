// The events that a cluster's state machine (gang_controller.h, ssh_controller.h, kubernetes/controller.h)
// reports to the job, as values.
#pragma once

#include <csignal>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

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

/// The base of a cluster's state machine: its pending actions. `Action` is a variant with ClusterEvent among
/// its types.
template <typename Action>
class ActionQueue {
 public:
  std::vector<Action> TakeActions() { return std::exchange(actions_, {}); }

 protected:
  template <typename One>
  void Do(One action) {
    actions_.emplace_back(std::move(action));
  }
  template <typename Event>
  void Tell(Event event) {
    actions_.emplace_back(std::in_place_type<ClusterEvent>, std::move(event));
  }
  void Say(Severity severity, std::string text) { Tell(LogLine{severity, std::move(text)}); }

 private:
  std::vector<Action> actions_;
};

/// The status of a process that was stopped before it could report its end.
inline const ExitStatus kStopped{0, SIGTERM, false, {}};

/// Calls the function of `events` for the event. Logs the event instead if it is a LogLine.
void Deliver(const ClusterEvent& event, const ClusterEvents& events);

}  // namespace warren::submit
