// Processes that one launcher starts all at once: mpirun, srun, or the queue of a cluster. What differs
// between them is in a Launch (launch.h); the rest is here. Each process calls home (home.h) and is started,
// watched and stopped from there, so that a worker that fails can be started again in its place, and all end
// with the job.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/cluster/home.h"
#include "submit/cluster/launch.h"
#include "submit/options.h"
#include "submit/process/children.h"

namespace warren::submit {

class GangCluster : public Cluster {
 public:
  using MakeLaunch = std::function<Launch(const GangPlan&)>;

  /// `host`: where processes reach this machine. Throws std::runtime_error.
  GangCluster(boost::asio::io_context& io, Children& children, const Options& options,
              const std::string& host, ClusterEvents events, MakeLaunch make_launch);
  ~GangCluster() override;

  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;
  bool busy() const override;
  void PauseOutput() override { home_.PauseOutput(); }
  void ResumeOutput() override { home_.ResumeOutput(); }

 private:
  struct Place;
  struct Gang;

  HomeEvents EventsOfHome();
  Gang& GangOf(std::size_t index);
  bool NothingIsLeft(const Gang& gang) const;

  void LaunchIfAllAreWanted(Gang& gang);
  void LaunchGang(Gang& gang);
  void LeaveFarewell(const Gang& gang);
  void OnSaid(Gang& gang, Stream stream, std::string_view bytes);
  void OnLauncherExit(Gang& gang, const ExitStatus& status);
  void EndGang(Gang& gang, const ExitStatus& status);
  void Run(const std::vector<std::string>& words,
           const std::function<void(const std::string& printed, const ExitStatus& status)>& done);
  void AskLater(Gang& gang);
  void Ask(Gang& gang);
  void OnReport(Gang& gang, const JobReport& report);
  void CancelJob(Gang& gang);

  void OnArrived(std::size_t index, const std::string& host);
  void OnNote(std::size_t index, const Note& note);
  void OnLeft(std::size_t index);
  void OnKeyless(std::size_t index, const std::string& host);
  void GoIfWanted(std::size_t index);
  void End(std::size_t index, const ExitStatus& status);
  void Report(std::size_t index, const ExitStatus& status);
  void StopLauncher(Gang& gang);
  void TellWhenIdle();

  boost::asio::io_context& io_;
  Children& children_;
  const Options& options_;
  ClusterEvents events_;
  MakeLaunch make_launch_;
  std::string host_;
  std::string job_mark_;
  std::string home_key_;
  std::set<std::size_t> keyless_;  ///< of which the user was told
  Home home_;
  std::vector<std::unique_ptr<Gang>> gangs_;
  std::map<std::size_t, Place> places_;  ///< by index
  std::set<pid_t> commands_;             ///< that ask or cancel
  bool stopping_ = false;
};

/// What --dry-run prints.
std::string ShowGangs(const Options& options, const std::vector<PlannedProcess>& plan,
                      const std::string& host, const GangCluster::MakeLaunch& make_launch);

}  // namespace warren::submit
