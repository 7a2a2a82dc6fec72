#include "submit/cluster/gang_entry.h"

#include <memory>
#include <utility>

namespace warren::submit {

void LaunchTogether(ClusterEntry& entry, std::function<GangCluster::MakeLaunch(const Options&)> launches) {
  entry.make = [launches](ClusterContext context) -> std::unique_ptr<Cluster> {
    return std::make_unique<GangCluster>(context.io, context.children, context.options, context.host,
                                         std::move(context.events), launches(context.options));
  };
  entry.show = [launches = std::move(launches)](
                   const Options& options, const std::vector<PlannedProcess>& plan, const std::string& host) {
    return ShowGangs(options, plan, host, launches(options));
  };
}

}  // namespace warren::submit
