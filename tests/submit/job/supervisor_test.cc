// The supervisor, rule by rule: events in, actions out. supervisor_simulation_test.cc runs whole jobs.
#include "submit/job/supervisor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <string>
#include <vector>

namespace warren::submit {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A tracker and a cluster in the state that a test sets.
struct StandInView : JobView {
  bool has_tracker() const override { return tracker; }
  bool is_collective() const override { return collective; }
  bool all_assigned() const override { return assigned; }
  bool linked() const override { return all_linked; }
  bool finished() const override { return over; }
  bool work_is_done() const override { return done; }
  Task TaskOf(const std::string&) const override { return task; }
  bool cluster_is_busy() const override { return busy; }

  bool tracker = true, collective = false, assigned = false, all_linked = false, over = false, busy = false;
  bool done = false;
  Task task;
};

class SupervisorTest : public testing::Test {
 protected:
  /// Begins a job and starts all of its workers.
  void Begin(int workers, RestartPolicy policy = {}) {
    Plan(workers, std::move(policy));
    supervisor_->Begin(now_);
    StartAll();
  }

  void Plan(int workers, RestartPolicy policy) {
    std::vector<PlannedProcess> plan(static_cast<std::size_t>(workers));
    for (int i = 0; i < workers; ++i) plan[static_cast<std::size_t>(i)].task_id = i;
    supervisor_.emplace(std::move(policy), plan, view_);
    num_workers_ = plan.size();
  }

  void StartAll() {
    Settle();
    supervisor_->Prepared(now_);
    for (std::size_t i = 0; i < num_workers_; ++i) {
      EXPECT_THAT(Settle(), testing::Contains("start " + std::to_string(i)));
      supervisor_->Started(i, {static_cast<pid_t>(100 + i), "n1"}, now_);
      supervisor_->Resume(now_);
    }
    Settle();
  }

  void Exit(std::size_t index, int code) { supervisor_->Exited(index, {.code = code}, now_); }
  void Kill(std::size_t index, int signal) { supervisor_->Exited(index, {.signal = signal}, now_); }

  /// Takes the pending actions. Returns those that the tests compare, in short form. said_ becomes the last
  /// log line that is not a debug message, and warned_ the last warning.
  std::vector<std::string> Settle() {
    std::vector<std::string> wanted;
    while (const auto action = supervisor_->NextAction()) {
      if (const auto* start = std::get_if<StartProcess>(&*action)) {
        wanted.push_back("start " + std::to_string(start->index));
        attempt_ = start->attempt;
        last_start_ = *start;
      } else if (const auto* leave = std::get_if<AskToLeave>(&*action)) {
        wanted.push_back("leave " + std::to_string(leave->index));
      } else if (std::holds_alternative<StopAll>(*action)) {
        wanted.emplace_back("stop");
      } else if (std::holds_alternative<KillAll>(*action)) {
        wanted.emplace_back("kill");
      } else if (std::holds_alternative<Replan>(*action)) {
        wanted.emplace_back("replan");
        replan_ = std::get<Replan>(*action);
      } else if (const auto* report = std::get_if<ReportFailure>(&*action)) {
        wanted.push_back("report " + report->task_id);
      } else if (const auto* expected = std::get_if<ExpectWorkers>(&*action)) {
        wanted.push_back("expect " + std::to_string(expected->num_workers));
      } else if (const auto* error = std::get_if<ShowErrorOf>(&*action)) {
        wanted.push_back("error " + std::to_string(error->index));
      } else if (const auto* errors = std::get_if<ShowErrors>(&*action)) {
        wanted.push_back(std::string(errors->repeat_last_output ? "last words" : "errors") +
                         (errors->culprit ? " " + std::to_string(*errors->culprit) : ""));
      } else if (const auto* finish = std::get_if<FinishJob>(&*action)) {
        wanted.push_back("finish " + std::to_string(finish->result.exit_code));
      } else if (const auto* separate = std::get_if<TellOfSeparatePrograms>(&*action)) {
        wanted.push_back("separate " + std::to_string(separate->num_workers));
      } else if (const auto* say = std::get_if<LogLine>(&*action)) {
        if (say->severity != Severity::kDebug) said_ = say->text;
        if (say->severity == Severity::kWarning) warned_ = say->text;
      }
    }
    return wanted;
  }

  void PassTime(std::chrono::milliseconds time) {
    now_ += time;
    supervisor_->Tick(now_);
  }

  StandInView view_;
  std::optional<Supervisor> supervisor_;
  std::size_t num_workers_ = 0;
  TimePoint now_{};
  int attempt_ = -1;
  StartProcess last_start_{};
  std::string said_, warned_;
  Replan replan_;
};

TEST_F(SupervisorTest, AJobWhoseProcessesSucceedIsOver) {
  view_.assigned = true;
  Begin(2);
  supervisor_->Joined(2, 2, now_);
  Settle();
  Exit(0, 0);
  EXPECT_THAT(Settle(), IsEmpty());
  Exit(1, 0);
  EXPECT_THAT(Settle(), ElementsAre("finish 0"));
  EXPECT_EQ(supervisor_->NextDeadline(), std::nullopt);
}

RestartPolicy Elastic(int min_workers) {
  return {0, 0, min_workers, false};
}

TEST_F(SupervisorTest, AnElasticJobStartsAKilledWorkerAgain) {
  Begin(3, Elastic(1));
  Kill(1, SIGKILL);
  EXPECT_THAT(Settle(), ElementsAre("report 1", "start 1", "expect 3"));
  EXPECT_THAT(
      said_,
      HasSubstr(
          "worker 1 (host n1, pid 101) was killed by signal 9 (SIGKILL); the other 2 go on, and it is started again"));
}

TEST_F(SupervisorTest, AnElasticJobTakesTheExitCodeOfSigtermForAKill) {
  Begin(2, Elastic(1));
  Exit(1, 128 + SIGTERM);
  EXPECT_THAT(Settle(), ElementsAre("report 1", "start 1", "expect 2"));
}

TEST_F(SupervisorTest, AnElasticJobStartsTheWorkerOfALostHostAgain) {
  Begin(2, Elastic(1));
  supervisor_->Exited(1, {.code = 255, .story = "was lost with the connection to n1", .host_lost = true},
                      now_);
  EXPECT_THAT(Settle(), ElementsAre("report 1", "start 1", "expect 2"));
}

TEST_F(SupervisorTest, AnElasticJobIsCompleteAlthoughAWorkerWithoutAPartInItIsLost) {
  Begin(2, Elastic(1));
  supervisor_->Joined(2, 2, now_);
  for (const int task : {0, 1}) supervisor_->Assigned(std::to_string(task), task, now_);
  Kill(1, SIGKILL);
  Settle();
  supervisor_->Started(1, {102, "n1"}, now_);
  view_.done = true;
  Kill(1, SIGKILL);
  EXPECT_THAT(Settle(), IsEmpty());
  EXPECT_EQ(said_,
            "worker 1 (host n1, pid 102) was killed by signal 9 (SIGKILL) after the job's work was done, in "
            "which it took no part");
  Exit(0, 0);
  EXPECT_THAT(Settle(), ElementsAre("finish 0"));
}

TEST_F(SupervisorTest, AnElasticJobFailsByAnErrorOfItsProgram) {
  Begin(2, Elastic(1));
  Exit(1, 3);
  EXPECT_THAT(Settle(), testing::Contains("stop"));
}

TEST_F(SupervisorTest, AnElasticJobGoesOnWithoutAWorkerThatIsLostAgainAndAgain) {
  Begin(2, Elastic(1));
  view_.assigned = true;
  supervisor_->Joined(2, 2, now_);
  for (int losses = 1; losses < 3; ++losses) {
    Kill(1, SIGSEGV);
    EXPECT_THAT(Settle(), ElementsAre("report 1", "start 1", "expect 2"));
    supervisor_->Started(1, {200, "n1"}, now_);
    PassTime(60s);
  }
  Kill(1, SIGSEGV);
  EXPECT_THAT(Settle(), ElementsAre("report 1", "expect 1"));
  EXPECT_THAT(said_,
              HasSubstr("the other one goes on without it: worker 1 has lost 3 workers within 10 minutes"));
  view_.done = true;
  Exit(0, 0);
  EXPECT_THAT(Settle(), ElementsAre("finish 0"));
}

TEST_F(SupervisorTest, AnElasticJobLeavesReplacementsToAClusterThatMakesThem) {
  view_.tracker = false;
  RestartPolicy policy = Elastic(1);
  policy.cluster_replaces = true;
  Begin(2, policy);
  for (int losses = 0; losses < 5; ++losses) {
    Kill(1, SIGSEGV);
    EXPECT_THAT(Settle(), ElementsAre("report 1", "start 1"));
    supervisor_->Started(1, {200, "pod"}, now_);
  }
  supervisor_->Exited(1, {.signal = SIGSEGV, .place_lost = true}, now_);
  EXPECT_THAT(Settle(), ElementsAre("report 1"));
  EXPECT_THAT(said_, HasSubstr("the other one goes on without it"));
  view_.done = true;
  Exit(0, 0);
  EXPECT_THAT(Settle(), ElementsAre("finish 0"));
}

TEST_F(SupervisorTest, AnElasticJobForgetsLossesAfterTenMinutes) {
  Begin(2, Elastic(1));
  for (int losses = 0; losses < 9; ++losses) {
    Kill(1, SIGKILL);
    EXPECT_THAT(Settle(), ElementsAre("report 1", "start 1", "expect 2"));
    supervisor_->Started(1, {200, "n1"}, now_);
    PassTime(6min);
  }
}

TEST_F(SupervisorTest, AnElasticJobNeedsItsLeastNumberOfWorkers) {
  Begin(2, Elastic(2));
  for (int losses = 0; losses < 3; ++losses) {
    Kill(1, SIGKILL);
    supervisor_->Started(1, {200, "n1"}, now_);
  }
  EXPECT_THAT(Settle(), testing::Contains("stop"));
  Kill(0, SIGTERM);
  Kill(1, SIGTERM);
  Settle();
  EXPECT_THAT(said_, HasSubstr("was killed by signal 9 (SIGKILL); 1 of at least 2 workers are left"));
}

TEST_F(SupervisorTest, AnElasticJobFailsIfAWorkerIsKilledAfterItsWorkWasDone) {
  Begin(2, Elastic(1));
  supervisor_->Assigned("1", 1, now_);
  view_.done = true;
  Kill(1, SIGKILL);
  EXPECT_THAT(Settle(), testing::Contains("stop"));
}

TEST_F(SupervisorTest, AnElasticJobFailsIfAProgramEndsBeforeTheWorkIsDone) {
  Begin(2, Elastic(1));
  view_.assigned = true;
  supervisor_->Joined(2, 2, now_);
  supervisor_->Linked(now_);
  Exit(1, 0);
  Settle();
  PassTime(1s);
  EXPECT_THAT(Settle(), testing::Contains("stop"));
  Exit(0, 1);
  Settle();
  EXPECT_THAT(
      said_,
      HasSubstr(
          "worker 1 (host n1, pid 101) exited with code 0 before the job's work was done while others wait for it"));
}

// --- hosts that come and go --------------------------------------------------------------------------------

class SeatedJobTest : public SupervisorTest {
 protected:
  void BeginSeated(int min, int max, const std::vector<HostRoom>& hosts, RestartPolicy policy = {}) {
    policy.min_workers = min;
    policy.places_are_hosts = true;
    policy.hosts_from = "the host file";
    Plan(max, std::move(policy));
    supervisor_->Begin(now_);
    supervisor_->HostsChanged(hosts, now_);
    supervisor_->Prepared(now_);
  }

  /// Carries out all actions; processes start at once. Returns the actions in short form, with the seats of
  /// started processes.
  std::vector<std::string> Run() {
    std::vector<std::string> wanted;
    for (int quiet = 0; quiet < 2; ++quiet) {  // until Resume leads to no further action
      for (std::string& one : Settle()) {
        if (one.starts_with("start ")) {
          const std::size_t index = last_start_.index;
          one += fmt::format(" on {} {}", last_start_.seat->host, last_start_.seat->slot);
          supervisor_->Started(index, {-1, last_start_.seat->host}, now_);
        }
        wanted.push_back(std::move(one));
        quiet = -1;
      }
      supervisor_->Resume(now_);
    }
    return wanted;
  }

  void Join(std::size_t index) { supervisor_->Assigned(std::to_string(index), 0, now_); }
  void LoseHost(std::size_t index) {
    supervisor_->Exited(index, {.code = 255, .story = "was lost with its host", .host_lost = true}, now_);
  }
};

TEST_F(SeatedJobTest, AsManyWorkersStartAsThereAreSlots) {
  BeginSeated(1, 3, {{"a", 1}, {"b", 1}});
  EXPECT_THAT(Run(), ElementsAre("expect 2", "start 0 on a 0", "start 1 on b 0"));
  EXPECT_EQ(said_, "2 of at most 3 workers start: the host file has no more slots");
}

TEST_F(SeatedJobTest, AHostThatComesGetsWorkers) {
  BeginSeated(1, 3, {{"a", 1}});
  Run();
  supervisor_->HostsChanged({{"a", 1}, {"b", 4}}, now_);
  EXPECT_THAT(Run(), ElementsAre("expect 3", "start 1 on b 0", "start 2 on b 1"));
  EXPECT_EQ(said_, "the host file: b has come (4 slots)");
}

TEST_F(SeatedJobTest, WorkersOfAHostThatGoesLeaveAndStartElsewhere) {
  BeginSeated(1, 2, {{"a", 1}, {"b", 1}});
  Run();
  supervisor_->HostsChanged({{"a", 1}, {"c", 1}}, now_);
  EXPECT_THAT(Run(), ElementsAre("leave 1", "expect 1"));
  EXPECT_EQ(said_, "worker 1 (host b) is asked to leave b");
  Exit(1, 128 + SIGTERM);
  EXPECT_THAT(Run(), ElementsAre("report 1", "expect 2", "start 1 on c 0"));
  EXPECT_EQ(
      said_,
      "worker 1 (host b) exited with code 143, as it was asked to leave; the other one goes on, and it is "
      "started again on c");
}

TEST_F(SeatedJobTest, AWorkerThatLeavesMayEndWithAnyCode) {
  for (const int code : {0, 1}) {
    BeginSeated(1, 2, {{"a", 1}, {"b", 1}});
    Run();
    supervisor_->HostsChanged({{"a", 1}}, now_);
    Run();
    Exit(1, code);
    EXPECT_THAT(Run(), ElementsAre("report 1"));
    supervisor_->Joined(1, 1, now_);
    view_.done = true;
    Exit(0, 0);
    EXPECT_THAT(Run(), ElementsAre("finish 0"));
    view_.done = false;
  }
}

TEST_F(SeatedJobTest, AWorkerThatHasLeftMayEndAfterTheWorkIsDone) {
  BeginSeated(1, 2, {{"a", 1}, {"b", 1}});
  Run();
  supervisor_->Joined(2, 2, now_);
  supervisor_->HostsChanged({{"a", 1}}, now_);
  Run();
  view_.done = true;
  Exit(0, 0);
  Exit(1, 128 + SIGTERM);
  EXPECT_THAT(Run(), ElementsAre("report 1", "finish 0"));
}

TEST_F(SeatedJobTest, TheLastWorkerThatHasTheStateStaysUntilAnotherHasJoined) {
  BeginSeated(1, 2, {{"a", 1}});
  Run();
  Join(0);
  Run();
  supervisor_->HostsChanged({{"b", 1}}, now_);
  EXPECT_THAT(Run(), ElementsAre("expect 2", "start 1 on b 0"));
  EXPECT_THAT(said_, HasSubstr("worker 0 (rank 0, host a) stays on a, which has gone, until another worker"));
  Join(1);
  EXPECT_THAT(Run(), ElementsAre("leave 0", "expect 1"));
}

TEST_F(SeatedJobTest, AWorkerOfALostHostStartsOnAnotherOneOrWaitsForItsOwn) {
  BeginSeated(1, 2, {{"a", 1}, {"b", 1}, {"c", 1}});
  Run();
  LoseHost(1);
  EXPECT_THAT(Run(), ElementsAre("report 1", "start 1 on c 0"));
  supervisor_->HostsChanged({{"a", 1}, {"c", 1}}, now_);
  LoseHost(1);
  EXPECT_THAT(Run(), ElementsAre("report 1", "expect 1"));
  EXPECT_EQ(
      said_,
      "worker 1 (host c) was lost with its host; the other one goes on without it until a host has room");
  ASSERT_EQ(supervisor_->NextDeadline(), now_ + kHostRest);
  PassTime(kHostRest);
  EXPECT_THAT(Run(), ElementsAre("expect 2", "start 1 on c 0"));
}

TEST_F(SeatedJobTest, AJobWhoseOnlyWorkerIsLostIsNotOver) {
  BeginSeated(1, 1, {{"a", 1}});
  Run();
  LoseHost(0);
  EXPECT_THAT(Run(), ElementsAre("report 0", "expect 0"));
  EXPECT_EQ(said_, "worker 0 (host a) was lost with its host; no other one runs");
  PassTime(kHostRest);
  EXPECT_THAT(Run(), ElementsAre("expect 1", "start 0 on a 0"));
}

TEST_F(SeatedJobTest, AHostThatAlwaysFailsIsNamedOnceAndLeftOut) {
  BeginSeated(1, 3, {{"a", 1}, {"b", 2}});
  Run();
  for (int losses = 1; losses < 3; ++losses) {
    Kill(2, SIGSEGV);
    EXPECT_THAT(Run(), ElementsAre("report 2", "start 2 on b 1"));
  }
  Kill(2, SIGSEGV);
  EXPECT_THAT(Run(), ElementsAre("report 2", "expect 2"));
  EXPECT_EQ(
      said_,
      "b has lost 3 workers within 10 minutes, and gets no more until 10 minutes have passed without a loss");
  Kill(1, SIGSEGV);
  EXPECT_THAT(Run(), ElementsAre("report 1", "expect 1"));
  EXPECT_THAT(said_, HasSubstr("the other one goes on without it until a host has room"));
  supervisor_->HostsChanged({{"a", 1}, {"b", 2}, {"c", 1}}, now_);
  EXPECT_THAT(Run(), ElementsAre("expect 2", "start 1 on c 0"));
  PassTime(kLossMemory);
  EXPECT_THAT(Run(), ElementsAre("expect 3", "start 2 on b 0"));
}

TEST_F(SeatedJobTest, AJobFailsWhenTheHostsThatAreLeftHaveNoRoomForItsLeastNumber) {
  BeginSeated(2, 2, {{"a", 1}, {"b", 1}});
  Run();
  for (int losses = 0; losses < 3; ++losses) {
    Kill(1, SIGKILL);
    if (losses < 2) Run();
  }
  EXPECT_THAT(Settle(), testing::Contains("stop"));
  Kill(0, SIGTERM);
  Settle();
  supervisor_->Resume(now_);
  Settle();
  EXPECT_THAT(said_, HasSubstr("was killed by signal 9 (SIGKILL); 1 of at least 2 workers are left"));
}

TEST_F(SeatedJobTest, WithDiscoveryItWaitsForHostsUnlessAllHaveFailed) {
  RestartPolicy policy;
  policy.awaits_hosts = true;
  BeginSeated(2, 2, {{"a", 1}, {"b", 1}}, policy);
  for (int losses = 0; losses < 3; ++losses) {
    Run();
    Kill(1, SIGKILL);
  }
  EXPECT_THAT(Run(), ElementsAre("report 1", "expect 1"));
  EXPECT_THAT(said_, HasSubstr("1 of at least 2 workers can run: waiting for hosts from the host file"));
  for (int losses = 0; losses < 3; ++losses) {
    Run();
    Kill(0, SIGKILL);
  }
  EXPECT_THAT(Settle(), testing::Contains("stop"));
}

TEST_F(SeatedJobTest, AJobWithoutHostsWaitsForThem) {
  BeginSeated(1, 2, {});
  EXPECT_THAT(Run(), IsEmpty());
  EXPECT_EQ(
      said_,
      "0 of at least 1 workers can run: waiting for hosts from the host file (--timeout says how long)");
  said_.clear();
  supervisor_->HostsChanged({}, now_);
  EXPECT_THAT(Run(), IsEmpty());
  EXPECT_EQ(said_, "") << "it has been told once";
  supervisor_->HostsChanged({{"a", 1}}, now_);
  EXPECT_THAT(Run(), ElementsAre("expect 1", "start 0 on a 0"));
}

TEST_F(SeatedJobTest, ARestartOfTheJobLeavesAHostOutUnlessItIsNeeded) {
  for (const bool is_needed : {false, true}) {
    RestartPolicy policy;
    policy.max_restarts = 1;
    BeginSeated(2, 2, {{"a", 1}, {"b", 1}, {"c", is_needed ? 0 : 1}}, policy);
    for (int losses = 0; losses < 3; ++losses) {
      Run();
      if (losses == 2) supervisor_->HostsChanged({{"a", 1}, {"b", 1}}, now_);
      Kill(1, SIGKILL);
    }
    EXPECT_THAT(Settle(), testing::Contains("stop"));
    Kill(0, SIGTERM);
    supervisor_->Resume(now_);
    EXPECT_THAT(Settle(), testing::Contains("replan"));
    supervisor_->Replanned(now_);
    Settle();
    supervisor_->HostsChanged({{"a", 1}, {"b", 1}, {"c", is_needed ? 0 : 1}}, now_);
    supervisor_->Prepared(now_);
    EXPECT_THAT(Run(), testing::UnorderedElementsAre("expect 2", "start 0 on a 0",
                                                     is_needed ? "start 1 on b 0" : "start 1 on c 0"));
  }
}

TEST_F(SupervisorTest, AJobThatNoWorkerJoinedIsToldOf) {
  Begin(2);
  Exit(0, 0);
  Exit(1, 0);
  EXPECT_THAT(Settle(), ElementsAre("separate 2", "finish 0"));
}

TEST_F(SupervisorTest, OneProgramIsNotSeparateAndWithoutATrackerAllAre) {
  Begin(1);
  Exit(0, 0);
  EXPECT_THAT(Settle(), ElementsAre("finish 0"));
  view_.tracker = false;
  Begin(2);
  Exit(0, 0);
  Exit(1, 0);
  EXPECT_THAT(Settle(), ElementsAre("finish 0"));
}

TEST_F(SupervisorTest, AJobThatFailsIsNotToldToHaveBeenSeparate) {
  Begin(2);
  Exit(0, 0);
  Exit(1, 3);
  EXPECT_THAT(Settle(), testing::Not(testing::Contains("separate 2")));
}

TEST_F(SupervisorTest, WhoJoinedAnEarlierStartOfTheJobDoesNotCount) {
  Begin(2, {.num_restarts = 0, .max_restarts = 1});
  supervisor_->Joined(1, 2, now_);
  Exit(1, 9);
  Settle();
  Exit(0, 143);
  EXPECT_THAT(Settle(), testing::Contains("replan"));
  EXPECT_EQ(replan_.why, "worker 1 (host n1, pid 101) exited with code 9 on attempt 1 of 1");
  EXPECT_EQ(replan_.culprit, 1U);
  supervisor_->Replanned(now_);
  StartAll();
  Exit(0, 0);
  Exit(1, 0);
  EXPECT_THAT(Settle(), ElementsAre("separate 2", "finish 0"));
}

TEST_F(SupervisorTest, AFailureStopsTheOthersAndIsToldWhenTheyAreGone) {
  Begin(3);
  Exit(1, 9);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
  Exit(0, 143);
  EXPECT_THAT(Settle(), IsEmpty());
  Exit(2, 143);
  EXPECT_THAT(Settle(), ElementsAre("last words 1", "finish 9"));
  EXPECT_EQ(
      said_,
      "worker 1 (host n1, pid 101) exited with code 9 on attempt 1 of 1; the other 2 processes were stopped");
}

TEST_F(SupervisorTest, AProcessIsStartedAgainAsOftenAsItMayBe) {
  Begin(2, {.num_restarts = 1});
  Exit(1, 9);
  EXPECT_THAT(Settle(), ElementsAre("error 1", "start 1"));
  EXPECT_EQ(attempt_, 1);
  supervisor_->Started(1, {}, now_);
  Exit(1, 8);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
}

TEST_F(SupervisorTest, AWorkerThatHasLeftTheJobIsNotStartedAgain) {
  view_.assigned = view_.all_linked = true;
  view_.task = {.has_linked = true, .has_shut_down = true};
  Begin(2, {.num_restarts = 5});
  Exit(1, 9);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
  Exit(0, 0);
  Settle();
  EXPECT_THAT(said_, HasSubstr("not started again because it had already left the job"));
}

TEST_F(SupervisorTest, TheWholeJobBeginsAnewWhenAllOfItIsGone) {
  Begin(2, {.num_restarts = 0, .max_restarts = 1});
  Exit(0, 9);
  EXPECT_THAT(Settle(), ElementsAre("error 0", "stop"));
  view_.busy = true;
  Exit(1, 0);
  EXPECT_THAT(Settle(), IsEmpty()) << "the launcher still runs";
  view_.busy = false;
  supervisor_->ClusterIdle(now_);
  EXPECT_THAT(Settle(), ElementsAre("errors 0", "replan"));
  supervisor_->ClusterIdle(now_);
  EXPECT_THAT(Settle(), IsEmpty()) << "once is enough";
  supervisor_->Replanned(now_);
  StartAll();
  EXPECT_EQ(attempt_, 1);
  Exit(0, 9);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
  Exit(1, 0);
  EXPECT_THAT(Settle(), ElementsAre("last words 0", "finish 9"));
  EXPECT_THAT(said_, HasSubstr("after the job had been started again once"));
}

TEST_F(SupervisorTest, AWorkerThatWentWithoutJoiningEndsAJobInWhichOthersWaitForIt) {
  Begin(2);
  Exit(0, 0);
  EXPECT_THAT(Settle(), IsEmpty());
  supervisor_->Joined(1, 2, now_);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
  Exit(1, 0);
  EXPECT_THAT(Settle(), ElementsAre("last words", "finish 1"));
  EXPECT_THAT(said_, HasSubstr("worker 0 (host n1, pid 100) exited with code 0 without joining the job"));
}

TEST_F(SupervisorTest, AWorkerThatWentBeforeItsLinksWereMadeIsGivenTimeUntilTheTrackerHasHeardIt) {
  view_.assigned = true;
  Begin(2);
  Exit(0, 0);
  PassTime(kSettleTime - 1ms);
  EXPECT_THAT(Settle(), IsEmpty());
  PassTime(1ms);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
}

TEST_F(SupervisorTest, ASecondCtrlCKills) {
  Begin(1);
  supervisor_->Signalled(SIGINT, now_);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
  supervisor_->Signalled(SIGTERM, now_);
  EXPECT_THAT(Settle(), IsEmpty());
  supervisor_->Signalled(SIGINT, now_);
  EXPECT_THAT(Settle(), ElementsAre("kill"));
  Exit(0, 137);
  EXPECT_THAT(Settle(), ElementsAre("last words", "finish 130"));
}

TEST_F(SupervisorTest, AProcessThatDoesNotEndIsLeftBehind) {
  Begin(1);
  supervisor_->Trouble("no disk", now_);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
  PassTime(6s);
  EXPECT_THAT(Settle(), ElementsAre("last words", "finish 1"));
  EXPECT_EQ(said_, "no disk; the other process was stopped");
}

TEST_F(SupervisorTest, AClusterThatIsBusyGetsMoreTimeThanAProcess) {
  view_.busy = true;
  Begin(1);
  Exit(0, 3);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
  PassTime(6s);
  EXPECT_THAT(Settle(), IsEmpty());
  PassTime(kClusterPatience - 1s);
  EXPECT_THAT(Settle(), IsEmpty());
  PassTime(1s);
  EXPECT_THAT(Settle(), ElementsAre("last words 0", "finish 3"));
  EXPECT_THAT(warned_, HasSubstr("commands that stop the job have not ended within 25 s"));
}

TEST_F(SupervisorTest, ProcessesThatEndOnlyWithACommandOfTheClusterGetTheTimeOfTheCluster) {
  view_.busy = true;
  Begin(2);
  Exit(0, 3);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
  PassTime(6s);
  EXPECT_THAT(Settle(), IsEmpty());
  view_.busy = false;
  Kill(1, SIGTERM);
  EXPECT_THAT(Settle(), ElementsAre("last words 0", "finish 3"));
  EXPECT_THAT(warned_, IsEmpty());
}

TEST_F(SupervisorTest, WorkersThatFailTogetherAreDealtWithInTheOrderOfTheTracker) {
  view_.assigned = view_.all_linked = view_.collective = true;
  Begin(3);
  Exit(2, 255);
  EXPECT_THAT(Settle(), ElementsAre("report 2"));
  supervisor_->Broken("1", "worker 1 failed", now_);
  Exit(0, 255);
  Settle();
  PassTime(kSettleTime);
  EXPECT_THAT(Settle(), IsEmpty()) << "the first has not said its last words";
  Exit(1, 7);
  Settle();
  supervisor_->Resume(now_);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
  supervisor_->Resume(now_);
  EXPECT_THAT(Settle(), ElementsAre("last words 1", "finish 7"));
}

TEST_F(SupervisorTest, TheFirstThatNeverEndsIsNotWaitedForLongerThanPatienceLasts) {
  view_.assigned = view_.all_linked = view_.collective = true;
  Begin(2);
  supervisor_->Broken("1", "worker 1 failed", now_);
  for (auto passed = 0ms; passed < kPatienceWithFirst - kSettleTime; passed += kSettleTime) {
    PassTime(kSettleTime);
    EXPECT_THAT(Settle(), IsEmpty());
  }
  PassTime(kSettleTime);
  EXPECT_THAT(Settle(), ElementsAre("stop"));
  Exit(0, 143);
  Exit(1, 143);
  supervisor_->Resume(now_);
  EXPECT_THAT(Settle(), ElementsAre("last words 1", "finish 1"));
}

TEST_F(SupervisorTest, AWorkerThatWasTakenAwayAfterAllHadFinishedHasDoneItsPart) {
  view_.assigned = view_.all_linked = view_.over = true;
  Begin(1);
  Kill(0, SIGKILL);
  EXPECT_THAT(Settle(), ElementsAre("finish 0"));
}

}  // namespace
}  // namespace warren::submit
