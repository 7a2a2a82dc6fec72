// Many simulated jobs run against the state machine of --cluster kubernetes. The pods of a simulated API
// server start, fail, vanish and are replaced at random moments; logs break off, and answers are late or
// missing. A simulated job restarts and stops its processes as JobRun does. In an elastic job, some pods
// never start, the job goes on without processes that Kubernetes gives up on, and the tracker's pod reports
// when the work is done. Failure messages include the seed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "submit/cluster/kubernetes/controller.h"
#include "tests/random_cases.h"
#include "tests/submit/cluster/simulated_world.h"
#include "tracker/log_lines.h"

namespace warren::submit {
namespace {

using std::chrono::milliseconds;

constexpr char kMark[] = "wmark";

class KubernetesWorld : public SimulatedWorld<KubernetesWorld, KubernetesController> {
 public:
  explicit KubernetesWorld(unsigned seed) : SimulatedWorld(seed), servers_(Chance(25) ? 1 : 0) {
    trouble_ = Between(0, 2) * 3;
    restarts_ = Between(0, 2);
    job_restarts_ = Between(0, 2);
    if (servers_ > 0) roles_ = {"scheduler", "server"};
    for (int i = Between(1, 3); i > 0; --i) roles_.emplace_back("worker");
    end_ = roles_.size();
    host_role_ = servers_ > 0 ? "scheduler" : Chance(70) ? "tracker" : "";
    elastic_ = host_role_ == "tracker" && Chance(40);
    pod_restarts_ = restarts_;
    if (elastic_) restarts_ = std::numeric_limits<int>::max();
    controller_.emplace(
        KubernetesSetting{.job_name = "job",
                          .kube_namespace = "",
                          .job_mark = kMark,
                          .host_role = host_role_,
                          .num_workers = roles_.size() - 2 * static_cast<std::size_t>(servers_),
                          .num_processes = roles_.size(),
                          .delete_command = "delete",
                          .is_elastic = elastic_});
  }

 private:
  friend SimulatedWorld;

  /// A pod and the script in it (scripts/pod.sh).
  struct Pod {
    std::string role;
    std::size_t rank = 0;
    int replaced = 0;
    int start = 0;
    bool has_begun = false;
    std::optional<ExitStatus> ended = {};
    bool is_followed = false;
    std::vector<std::pair<std::string, std::string>> log = {};  ///< time and line
    std::string said = {};                                      ///< the output of the pod's processes
    int restarts = 0;
    int attempt = 0;
  };

  // --- the simulated job ---------------------------------------------------------------------------------

  void PrepareStart() {
    pods_of_.clear();
    base_attempt_ = ++attempt_;
    StartProcesses();
  }

  void StartProcess(std::size_t index) { controller_->Start(index, roles_[index], attempt_, now_); }
  bool MayRestart(std::size_t index) const { return roles_[index] != "scheduler"; }
  static bool MayBeLeftOut(const ExitStatus& status) { return status.place_lost; }
  bool IsBusy() const { return commands_ > 0 || controller_->busy(); }
  /// A command that follows a log may deliver lines until it has been killed; these lines are dropped.
  bool MayFollowTheEnd(const ClusterEvent& event) const {
    return std::holds_alternative<ProcessWrote>(event) || SimulatedWorld::MayFollowTheEnd(event);
  }

  void CheckStop() {
    ASSERT_TRUE(running_.empty() || now_ < stopped_at_ + std::chrono::seconds(7))
        << "a stop does not end it" << Describe();
    ASSERT_LT(now_, stopped_at_ + std::chrono::minutes(5)) << "it stays busy" << Describe();
  }
  void CheckEnd() { EXPECT_TRUE(jobs_.empty() || deletion_is_left_) << "objects are left" << Describe(); }
  void CheckActions() {
    EXPECT_TRUE(jobs_.empty() || deletion_is_left_)
        << "nothing would delete them if dmlc-submit died" << Describe();
  }

  void CheckExit(const ProcessExited& exited) {
    const std::vector<std::string>& pods = pods_of_[exited.index];
    EXPECT_TRUE(!exited.status.place_lost || elastic_);
    if (exited.status.ok()) {
      const bool did_well = did_well_.contains({start_, exited.index});
      EXPECT_TRUE(did_well || workers_finished_)
          << "process " << exited.index << " did not end well" << Describe();
      if (did_well && pods.size() == 1 && pods_.contains(pods.front()) && !gives_up_.contains(pods.front())) {
        EXPECT_EQ(OutputOf(exited.index), pods_[pods.front()].said) << pods.front();
      }
    }
    for (const auto& [name, pod] : pods_) {
      EXPECT_FALSE(exited.status.story.find(fmt::format("pod {} was deleted", name)) != std::string::npos)
          << "a pod that is there is called lost" << Describe();
    }
  }

  using SimulatedWorld::Do;
  void Do(const ProcessWrote& output) { OutputOf(output.index) += output.bytes; }
  std::string& OutputOf(std::size_t index) { return came_[{start_, index}]; }
  void Do(const ProcessLocated& located) {
    EXPECT_TRUE(running_.contains(located.index))
        << "process " << located.index << " is not wanted" << Describe();
  }
  void Do(const TrackerFailed&) {
    EXPECT_EQ(host_role_, "tracker");
    BeginAgainOrStop();
  }
  void Do(const JobWaits&) { FAIL(); }

  // --- objects -------------------------------------------------------------------------------------------

  void Do(const MakeObjects& make) {
    ASSERT_EQ(make.start, start_ + 1);
    start_ = make.start;
    failed_job_.clear();
    given_up_.clear();
    work_is_done_ = workers_finished_ = false;
    if (Trouble()) return controller_->NotMade("a file is not there");
    std::set<std::string> jobs(roles_.begin(), roles_.end());
    if (host_role_ == "tracker") jobs.insert(host_role_);
    controller_->Made(jobs.size());
  }

  /// Simulates a kubectl command and sets kill_ to a function that kills it. Calls `end` once, when the
  /// command ends or has been killed. Returns a flag that is true while the command is running.
  std::shared_ptr<bool> RunCommand(int least_ms, int most_ms, const std::function<void(bool killed)>& end) {
    ++commands_;
    const auto runs = std::make_shared<bool>(true);
    const auto end_once = [this, runs, end](bool killed) {
      if (!std::exchange(*runs, false)) return;
      --commands_;
      end(killed);
    };
    After(Trouble() ? 20'000 : Between(least_ms, most_ms), [end_once] { end_once(false); });
    kill_ = [this, end_once] { After(Between(0, 20), [end_once] { end_once(true); }); };
    return runs;
  }

  void Do(const ApplyObjects& apply) {
    ASSERT_FALSE(applying_) << "two at once make objects" << Describe();
    if (apply.processes && !host_role_.empty()) {
      EXPECT_TRUE(std::any_of(pods_.begin(), pods_.end(),
                              [this](const auto& pod) {
                                return pod.second.start == start_ && pod.second.role == host_role_ &&
                                       pod.second.has_begun;
                              }))
          << "processes before the pod that they are told about" << Describe();
    }
    applying_ = true;
    RunCommand(100, 3000, [this, apply, start = start_](bool killed) {
      applying_ = false;
      if (killed) return controller_->Applied("", {0, SIGKILL, false, {}}, now_);
      if (Trouble()) return controller_->Applied("forbidden", {1, 0, false, {}}, now_);
      const bool apart = !host_role_.empty();
      for (const std::string& role : std::set<std::string>(roles_.begin(), roles_.end())) {
        if (apart && role == host_role_ ? apply.before : apply.processes) MakeJob(role, start);
      }
      if (host_role_ == "tracker" && apply.before) MakeJob(host_role_, start);
      controller_->Applied("", {}, now_);
    });
    kill_apply_ = kill_;
  }

  void MakeJob(const std::string& role, int start) {
    jobs_.insert(role);
    const auto count = std::max<std::ptrdiff_t>(1, std::count(roles_.begin(), roles_.end(), role));
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(count); ++rank) {
      After(Between(0, 3000), [this, role, rank, start] { MakePod(role, rank, 0, start); });
    }
  }

  void MakePod(const std::string& role, std::size_t rank, int replaced, int start) {
    if (!jobs_.contains(role) || start != start_) return;
    const std::string name = fmt::format("{}-{}-{}-{}", role, rank, replaced, ++num_pods_);
    Pod& pod = pods_[name];
    pod = {.role = role, .rank = rank, .replaced = replaced, .start = start};
    pod.restarts = role == "scheduler" || role == "tracker" ? 0 : pod_restarts_ - replaced;
    pod.attempt = base_attempt_ + replaced;
    if (role != "tracker") pods_of_[IndexOf(pod)].push_back(name);
    const bool has_room = !elastic_ || role == "tracker" || Chance(80);
    if (has_room) After(Between(0, 5000), [this, name] { Begin(name); });
    if (Trouble()) After(Between(0, 20'000), [this, name] { Lose(name); });
  }

  std::size_t IndexOf(const Pod& pod) const {
    for (std::size_t i = 0, rank = 0; i < roles_.size(); ++i) {
      if (roles_[i] == pod.role && rank++ == pod.rank) return i;
    }
    return roles_.size();
  }

  /// Makes a pod vanish, as if it had been deleted or its node had failed. Kubernetes replaces it or gives up
  /// on it.
  void Lose(const std::string& name) {
    const auto found = pods_.find(name);
    if (found == pods_.end() || found->second.ended) return;
    const Pod lost = found->second;
    gives_up_.insert(name);
    pods_.erase(name);
    logs_[name] = lost;
    After(Between(0, 10'000), [this, name] {
      logs_.erase(name);
      EndFollower(name, 1);
    });
    Replace(lost);
    FinishIfAllHaveEnded();
  }

  void Replace(const Pod& pod) {
    if (!jobs_.contains(pod.role)) return;
    if (pod.replaced >= pod_restarts_ || pod.role == "tracker" || pod.role == "scheduler") {
      if (elastic_ && pod.role != "tracker") {
        given_up_.push_back({pod.role, pod.rank});
      } else {
        failed_job_ = "BackoffLimitExceeded";
      }
      return;
    }
    After(Between(100, 3000), [this, pod] { MakePod(pod.role, pod.rank, pod.replaced + 1, pod.start); });
  }

  // --- inside a pod ----------------------------------------------------------------------------------------

  /// Calls `what` after `ms`, unless the pod has ended by then.
  void InPod(const std::string& name, int ms, const std::function<void(Pod&)>& what) {
    After(ms, [this, name, what] {
      const auto found = pods_.find(name);
      if (found != pods_.end() && !found->second.ended) what(found->second);
    });
  }

  void Write(Pod& pod, const std::string& line) {
    const auto ms = std::chrono::duration_cast<milliseconds>(now_.time_since_epoch()).count();
    pod.log.emplace_back(fmt::format("2026-01-02T{:02}:{:02}:{:02}.{:03}Z", ms / 3'600'000 % 24,
                                     ms / 60'000 % 60, ms / 1000 % 60, ms % 1000),
                         line);
  }

  void Tell(Pod& pod, const std::string& words) {
    Write(pod, fmt::format("\036{} {} {}\036\n", kMark, IndexOf(pod), words));
  }

  void Begin(const std::string& name) {
    const auto found = pods_.find(name);
    if (found == pods_.end() || found->second.ended) return;
    found->second.has_begun = true;
    if (workers_finished_) gives_up_.insert(name);  // the job no longer waits for this pod
    if (found->second.role != "tracker") return RunAttempt(name);
    Write(found->second, "the tracker listens\n");
    if (elastic_) {
      InPod(name, 600'000, [this, name](Pod& pod) {
        if (workers_finished_) return;
        Write(pod, "workers are missing\n");
        EndContainer(name, 1);
      });
    }
    if (!Trouble()) return;
    InPod(name, Between(0, 20'000), [this, name](Pod& pod) {
      Write(pod, "the tracker has failed\n");
      EndContainer(name, 1);
    });
  }

  void RunAttempt(const std::string& name) {
    InPod(name, 0, [this, name](Pod& pod) {
      Tell(pod, fmt::format("start {} 17 {}", pod.attempt, name));
      const int duration = Chance(30) ? Between(1, 300) : Between(300, 20'000);
      const int lines = Between(0, 5);
      for (int i = 0; i < lines; ++i) {
        InPod(name, Between(0, duration - 1), [this, i](Pod& one) {
          const std::string line = fmt::format("line {} of attempt {}\n", i, one.attempt);
          Write(one, line);
          one.said += line;
        });
      }
      if (Trouble()) return InPod(name, duration, [this, name](Pod&) { EndContainer(name, 137); });
      InPod(name, duration, [this, name](Pod& one) {
        EndAttempt(one, name, !Trouble(3) || work_is_done_ ? 0 : elastic_ ? 137 : 3);
      });
    });
  }

  void EndAttempt(Pod& pod, const std::string& name, int code) {
    if (code != 0 && pod.restarts > 0) {
      Tell(pod, fmt::format("again {} {}", pod.attempt, code));
      ++pod.attempt;
      --pod.restarts;
      return RunAttempt(name);
    }
    Tell(pod, fmt::format("exit {} {}", pod.attempt, code));
    if (code == 0) did_well_.insert({pod.start, IndexOf(pod)});
    if (code == 0 && elastic_ && !std::exchange(work_is_done_, true)) TrackerSays(tracker::kWorkIsDone);
    EndContainer(name, code);
  }

  void TrackerSays(std::string_view line) {
    for (auto& [name, pod] : pods_) {
      if (pod.role == "tracker" && pod.start == start_ && !pod.ended)
        Write(pod, fmt::format("info {}\n", line));
    }
  }

  void FinishIfAllHaveEnded() {
    const bool any_runs = std::any_of(pods_.begin(), pods_.end(), [this](const auto& entry) {
      const Pod& pod = entry.second;
      return pod.role != "tracker" && pod.start == start_ && pod.has_begun && !pod.ended;
    });
    if (!work_is_done_ || any_runs || std::exchange(workers_finished_, true)) return;
    TrackerSays(tracker::kAllHaveFinished);
  }

  void EndContainer(const std::string& name, int code) {
    Pod& pod = pods_[name];
    pod.ended = FromShellCode(code);
    if (code != 0) Replace(pod);
    FinishIfAllHaveEnded();
  }

  // --- logs ----------------------------------------------------------------------------------------------

  void Do(const FollowLog& follow) {
    const auto found = pods_.find(follow.pod);
    if (Trouble()) return controller_->NotFollowed(follow.pod, "cannot fork");
    ASSERT_TRUE(followed_.insert(follow.pod).second) << "a log is followed twice" << Describe();
    ++followers_;
    const int number = followers_;
    follower_of_[follow.pod] = number;
    if (found == pods_.end() || Trouble()) {
      gives_up_.insert(follow.pod);  // if following keeps failing, the log may be read only in part
      return After(Between(50, 1000), [this, pod = follow.pod, number] {
        if (follower_of_[pod] == number) EndFollower(pod, 1);
      });
    }
    std::size_t first = 0;
    while (first < found->second.log.size() && !follow.since.empty() &&
           found->second.log[first].first.substr(0, 19) < follow.since.substr(0, 19)) {
      ++first;
    }
    After(Between(50, 1000), [this, pod = follow.pod, number, first] { Bring(pod, number, first, ""); });
  }

  /// Delivers part of the log, the end of the log, or the end of the connection.
  void Bring(const std::string& name, int number, std::size_t next, std::string rest) {
    if (!followed_.contains(name) || follower_of_[name] != number) return;
    if (!pods_.contains(name) && !logs_.contains(name)) return EndFollower(name, 1);
    const Pod& pod = pods_.contains(name) ? pods_.at(name) : logs_.at(name);
    while (next < pod.log.size()) {
      rest += pod.log[next].first + " " + pod.log[next].second;
      ++next;
    }
    if (Trouble()) {
      if (pod.ended) gives_up_.insert(name);  // the connection's end may look like the log's end
      return EndFollower(name, Chance(50) ? 0 : 1);
    }
    if (rest.empty() && pod.ended) return EndFollower(name, 0);
    // Logs are sometimes delivered in small pieces, those of lost pods always.
    const bool drops = logs_.contains(name) || Chance(30);
    const std::size_t count =
        drops ? std::min<std::size_t>(rest.size(), static_cast<std::size_t>(Between(1, 60))) : rest.size();
    if (count > 0) controller_->LogRead(name, std::string_view(rest).substr(0, count), now_);
    rest.erase(0, count);
    After(Between(10, logs_.contains(name) ? 2000 : 500),
          [this, name, number, next, rest] { Bring(name, number, next, rest); });
  }

  void EndFollower(const std::string& name, int code) {
    if (followed_.erase(name) == 0) return;
    if (code != 0) controller_->LogComplained(name, "the connection is lost\n");
    controller_->FollowerExited(name, FromShellCode(code), now_);
  }

  void Do(const KillFollower& kill) {
    ASSERT_TRUE(followed_.contains(kill.pod)) << Describe();
    After(Between(0, 20), [this, pod = kill.pod, number = follower_of_[kill.pod]] {
      if (follower_of_[pod] == number) EndFollower(pod, 137);
    });
  }

  // --- queries and deletion --------------------------------------------------------------------------------

  void Do(const AskForPods& ask) {
    ASSERT_EQ(ask.start, start_);
    if (!ask.at_the_end) {
      ASSERT_FALSE(asking_) << "two questions at once" << Describe();
      asking_ = true;
    }
    RunCommand(50, ask.at_the_end ? 2000 : 3000, [this, ask](bool killed) {
      if (!ask.at_the_end) asking_ = false;
      if (killed || Trouble()) {
        const bool forbidden = !killed && Chance(5);
        return controller_->NotReported(forbidden ? "Error from server (Forbidden)" : "no route",
                                        ask.at_the_end, now_);
      }
      controller_->Reported(Report(), ask.at_the_end, now_);
    });
    if (!ask.at_the_end) kill_ask_ = kill_;
  }

  KubeReport Report() const {
    KubeReport report;
    report.jobs = jobs_.size();
    report.failed_job = failed_job_;
    report.given_up = given_up_;
    for (const auto& [name, pod] : pods_) {
      if (pod.start != start_) continue;
      PodReport one;
      one.name = name;
      one.role = pod.role;
      one.rank = pod.rank;
      one.replaced = pod.replaced;
      one.has_begun = pod.has_begun;
      one.ended = pod.ended;
      if (!pod.has_begun) one.waits_for = "Unschedulable: no room";
      report.pods.push_back(std::move(one));
    }
    return report;
  }

  void Do(const DeleteObjects&) {
    ASSERT_FALSE(deleting_) << "two deletes at once" << Describe();
    deleting_ = true;
    RunCommand(100, 3000, [this](bool) {
      deleting_ = false;
      if (Trouble(3)) return controller_->Deleted("no route", {1, 0, false, {}}, now_);
      jobs_.clear();
      std::vector<std::string> names;
      for (const auto& [name, pod] : pods_) names.push_back(name);
      for (const std::string& name : names) Terminate(name);
      controller_->Deleted("", {}, now_);
    });
  }

  /// Asks the pod to end, and later removes it.
  void Terminate(const std::string& name) {
    InPod(name, Between(0, 2000), [this, name](Pod& pod) {
      if (pod.has_begun && pod.role != "tracker") Tell(pod, fmt::format("exit {} 143", pod.attempt));
      EndContainer(name, 143);
    });
    After(Between(2001, 6000), [this, name] {
      EndFollower(name, 1);
      pods_.erase(name);
    });
  }

  void Do(const SetDeletion& deletion) { deletion_is_left_ = deletion.left; }
  void Do(const KillAsk&) {
    ASSERT_TRUE(asking_) << Describe();
    kill_ask_();
  }
  void Do(const KillApply&) {
    ASSERT_TRUE(applying_) << Describe();
    kill_apply_();
  }

  // --- invariants ----------------------------------------------------------------------------------------

  std::string Describe() const {
    std::string text = DescribeJob() + fmt::format("; start {}, {} commands", start_, commands_);
    text += "; jobs";
    for (const std::string& job : jobs_) text += " " + job;
    for (const auto& [name, pod] : pods_) {
      text += fmt::format("\n  pod {} of start {}: begun {}, ended {}, followed {}", name, pod.start,
                          pod.has_begun, pod.ended ? pod.ended->Describe() : "no", followed_.contains(name));
    }
    return text;
  }

  int servers_;
  bool elastic_ = false;
  int pod_restarts_ = 0;
  std::vector<std::string> roles_;
  std::string host_role_;

  // The state of the cluster.
  std::set<std::string> jobs_;  ///< the roles whose Jobs exist
  std::map<std::string, Pod> pods_;
  std::map<std::string, Pod> logs_;  ///< logs of lost pods, which stay readable for a while
  int num_pods_ = 0;
  std::string failed_job_;
  std::vector<GivenUp> given_up_;
  bool work_is_done_ = false;
  bool workers_finished_ = false;
  std::set<std::string> followed_;
  std::map<std::string, int> follower_of_;
  int followers_ = 0;
  int commands_ = 0;  ///< the number of running commands
  bool applying_ = false;
  bool asking_ = false;
  bool deleting_ = false;
  bool deletion_is_left_ = false;
  std::function<void()> kill_, kill_ask_, kill_apply_;

  // The state of the job.
  int attempt_ = -1;
  int base_attempt_ = 0;
  int start_ = -1;
  std::map<std::size_t, std::vector<std::string>> pods_of_;  ///< pods of the current start
  std::set<std::pair<int, std::size_t>> did_well_;           ///< (start, index) of processes that succeeded
  std::map<std::pair<int, std::size_t>, std::string> came_;
  std::set<std::string> gives_up_;  ///< pods whose logs may be read only in part
};

TEST(KubernetesSimulation, EveryProcessEndsOnceAndNothingIsLeftWhateverFails) {
  const unsigned jobs = RandomCases(5000);
  const unsigned first = std::random_device{}();
  for (unsigned i = 0; i < jobs && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("seed {}", first + i));
    KubernetesWorld(first + i).Run();
  }
}

}  // namespace
}  // namespace warren::submit
