// --cluster local: the processes of a job on this machine.
#pragma once

#include <map>

#include "submit/cluster/cluster.h"
#include "submit/process/children.h"

namespace warren::submit {

class LocalCluster : public Cluster {
 public:
  LocalCluster(Children& children, ClusterEvents events) : children_(children), events_(std::move(events)) {}

  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;

 private:
  Children& children_;
  ClusterEvents events_;
  std::set<pid_t> running_;
};

/// Its row in the registry of clusters.
ClusterEntry LocalEntry();

}  // namespace warren::submit
