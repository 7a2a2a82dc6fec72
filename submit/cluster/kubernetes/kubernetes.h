// --cluster kubernetes: the processes run in the pods of Indexed Jobs, and the tracker in a pod beside them,
// by means of kubectl alone (kubectl.h): it makes the objects (manifest.h), tells what became of the pods
// (pods.h), follows their logs (log_reader.h), which carry the notes of the scripts in them (scripts/pod.sh),
// and deletes everything at the end. When dmlc-submit dies, its guardian deletes it.
//
// A process that fails is started again by its script, in its pod; a pod that is lost is replaced by
// Kubernetes.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/cluster/kubernetes/kubectl.h"
#include "submit/cluster/kubernetes/pods.h"
#include "submit/cluster/notes.h"
#include "submit/options.h"
#include "submit/process/children.h"

namespace warren::submit {

class KubernetesCluster : public Cluster {
 public:
  /// Throws std::runtime_error when there is no kubectl.
  KubernetesCluster(boost::asio::io_context& io, Children& children, const Options& options,
                    ClusterEvents events);
  ~KubernetesCluster() override;

  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;
  bool busy() const override;
  bool runs_scheduler() const override { return true; }

 private:
  struct Place;
  struct Pod;
  using Clock = std::chrono::steady_clock;

  void CatchUp(std::size_t index);
  void Launch();
  void Apply(const std::string& manifest, bool with_processes);

  void Changed();
  void AskLater();
  void Ask();
  void StopAsking();
  void OnFailedAsk(const std::string& why);
  void OnReport(const KubeReport& report);
  void TellOfMissingPods();
  Pod& PodOf(const PodReport& report);
  void OnPod(const PodReport& report);
  void TellWhatItWaitsFor(const PodReport& report);
  void Follow(Pod& pod);
  void OnLog(Pod& pod, std::string_view bytes);
  void OnFollowerExit(Pod& pod, const ExitStatus& status);
  bool Adopt(Place& place, Pod& pod);
  void OnNote(Pod& pod, const Note& note);
  void Settle(Pod& pod);
  void SettleTracker(Pod& pod);
  void EndAttempt(std::size_t index, const ExitStatus& status);
  void End(std::size_t index, const ExitStatus& status);

  void Delete();
  void TryToDelete(int attempt);
  void OnDeleted();
  bool IsFollowed(std::size_t index) const;
  void FollowAll(const std::string& printed);
  void DeleteAndHear();
  void KillFollowers();
  void EndAllPlaces();
  void TellWhenIdle();

  boost::asio::io_context& io_;
  Children& children_;
  const Options& options_;
  ClusterEvents events_;
  Kubectl kubectl_;
  std::string job_mark_;
  pid_t applier_ = -1;  ///< the kubectl that makes objects
  pid_t asker_ = -1;    ///< the one that asks what became of the pods

  // Of this start of the job:
  int start_ = -1;  ///< which it is, from 0
  std::vector<PlannedProcess> plan_;
  std::map<std::size_t, Place> places_;  ///< by index in the plan
  std::map<std::string, std::unique_ptr<Pod>> pods_;
  bool launched_ = false;  ///< there may be something to delete
  bool processes_launched_ = false;
  Clock::time_point launched_at_;
  std::string processes_;       ///< the manifest of those that wait for the tracker; empty: none do
  std::size_t num_jobs_ = 0;    ///< that there are when all is launched
  std::string tracker_words_;   ///< its last line
  std::set<std::string> told_;  ///< what pods wait for
  bool complained_of_pods_ = false;
  std::string failed_job_;
  int asks_since_failure_ = 0;

  boost::asio::steady_timer ask_timer_;
  std::chrono::milliseconds ask_pause_{0};
  int failed_asks_ = 0;

  boost::asio::steady_timer end_timer_;
  boost::asio::steady_timer delete_timer_;
  bool stopping_ = false;
  bool deleting_ = false;
  std::optional<std::size_t> held_;  ///< the last process that ended well, until all is deleted
};

/// What --dry-run and --kube-manifest show.
std::string ShowKubernetes(const Options& options, const std::vector<PlannedProcess>& plan);

}  // namespace warren::submit
