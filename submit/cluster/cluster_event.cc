#include "submit/cluster/cluster_event.h"

namespace warren::submit {
namespace {

struct Delivery {
  const ClusterEvents& to;

  void operator()(const ProcessWrote& event) const { to.output(event.index, event.stream, event.bytes); }
  void operator()(const ProcessLocated& event) const { to.located(event.index, event.where); }
  void operator()(const ProcessExited& event) const { to.exited(event.index, event.status); }
  void operator()(const ProcessSampled& event) const { to.sampled(event.index, event.sample); }
  void operator()(const LauncherSaid& event) const { to.said(event.launcher, event.stream, event.piece); }
  void operator()(const JobWaits&) const { to.waits(); }
  void operator()(const JobRequeued& event) const { to.requeued(event.story); }
  void operator()(const TrackerFailed& event) const { to.tracker_failed(event.story); }
  void operator()(const JobTroubled& event) const { to.trouble(event.story); }
  void operator()(const LogLine& line) const { Write(line); }
};

}  // namespace

void Deliver(const ClusterEvent& event, const ClusterEvents& events) {
  std::visit(Delivery{events}, event);
}

}  // namespace warren::submit
