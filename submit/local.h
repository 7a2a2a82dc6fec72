// --cluster local: the processes of a job on this machine.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "submit/cluster.h"
#include "submit/guardian.h"

namespace warren::submit {

/// How long what a process leaves behind may go on writing its last output (as `> >(tee log)` in bash does)
/// before it is killed.
inline constexpr std::chrono::milliseconds kLeftoverGrace{150};
/// Descriptors that a process of a local job needs: two pipes, its log, its connection to the tracker.
inline constexpr std::size_t kDescriptorsPerProcess = 4;
/// Those that are needed anyway: dmlc-submit's own, those of a start, strangers at the tracker.
inline constexpr std::size_t kDescriptorsBeside = 128;

class LocalCluster : public Cluster {
 public:
  /// Raises the limit on open files when `num_processes` need that, and starts the guardian. Throws
  /// std::runtime_error.
  LocalCluster(boost::asio::io_context& io, std::size_t num_processes, ClusterEvents events);
  ~LocalCluster() override;

  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;
  void EndLeftovers() override;
  void PauseOutput() override;
  void ResumeOutput() override;

 private:
  class Child;

  std::set<pid_t> KnownChildren() const;
  void WaitForChildren();
  void LookAtChildren();
  void Listen(const std::shared_ptr<Child>& child, Stream stream);
  bool ReadOnce(Child& child, Stream stream);
  void ReadAll(Child& child);
  void Settle(const std::shared_ptr<Child>& child);
  void Finish(Child& child);

  boost::asio::io_context& io_;
  ClusterEvents events_;
  Guardian guardian_;
  Spawner spawner_;
  std::string host_;
  boost::asio::signal_set child_signal_;
  boost::asio::steady_timer grace_timer_;
  std::map<std::size_t, std::shared_ptr<Child>> children_;  ///< by index
  bool paused_ = false;
};

}  // namespace warren::submit
