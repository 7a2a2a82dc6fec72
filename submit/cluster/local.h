// --cluster local: runs the processes of a job on this machine.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <set>

#include "submit/cluster/cluster.h"
#include "submit/process/children.h"

namespace warren::submit {

class LocalCluster : public Cluster {
 public:
  LocalCluster(boost::asio::io_context& io, Children& children, ClusterEvents events)
      : io_(io), children_(children), events_(std::move(events)) {}

  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;
  void Dump(std::size_t index, std::function<void(std::string text)> done) override;

 private:
  std::set<pid_t> Running() const;

  boost::asio::io_context& io_;
  Children& children_;
  ClusterEvents events_;
  std::map<std::size_t, pid_t> running_;  ///< by process index
};

/// The cluster's row in the registry.
ClusterEntry LocalEntry();

}  // namespace warren::submit
