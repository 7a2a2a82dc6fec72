#include "submit/cluster/local.h"

#include "submit/process/environment.h"

namespace warren::submit {

Started LocalCluster::Start(std::size_t index, const PlannedProcess& process, int attempt) {
  const auto whole = InheritedWith(EnvironmentOfAttempt(process, attempt), process.unset);
  const auto pid = std::make_shared<pid_t>(-1);
  *pid = children_.Start(
      {process.file, process.argv, whole, false, process.cores},
      {[this, index](Stream stream, std::string_view bytes) { events_.output(index, stream, bytes); },
       [this, index, pid](const ExitStatus& status) {
         running_.erase(*pid);
         events_.exited(index, status);
       }});
  running_.insert(*pid);
  return {*pid, children_.host()};
}

void LocalCluster::Stop() {
  children_.Stop(running_);
}

void LocalCluster::Kill() {
  children_.Kill(running_);
}

ClusterEntry LocalEntry() {
  ClusterEntry entry;
  entry.name = "local";
  entry.where = "this machine";
  entry.make = [](ClusterContext context) -> std::unique_ptr<Cluster> {
    return std::make_unique<LocalCluster>(context.children, std::move(context.events));
  };
  entry.show = [](const Options&, const std::vector<PlannedProcess>& plan, const std::string&) {
    return ShowPlan(plan);
  };
  entry.host = [](const Options&) { return JobHost{kLoopback}; };
  entry.known_hosts = [](const Options&) { return std::vector<std::string>{kLoopback}; };
  entry.runs_here = true;
  entry.shared_options = {"--bind"};
  entry.core_sharing = CoreSharing::kHere;
  return entry;
}

}  // namespace warren::submit
