// Reactions of --cluster kubernetes to the pods of a job, in cases that its simulation reaches too rarely.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "submit/cluster/kubernetes/controller.h"
#include "tests/submit/cluster/actions_of.h"

namespace warren::submit {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr char kPodMark[] = "wmark";

/// A job that consists of workers only. Tests report its pods to the controller.
class KubernetesControllerTest : public testing::Test {
 protected:
  /// Starts a job whose objects kubectl is still applying.
  void MakeJob(std::size_t num_workers, bool is_elastic = false) {
    controller_.emplace(KubernetesSetting{.job_name = "job",
                                          .kube_namespace = "",
                                          .job_mark = kPodMark,
                                          .host_role = "",
                                          .num_workers = num_workers,
                                          .num_processes = num_workers,
                                          .delete_command = "delete",
                                          .is_elastic = is_elastic});
    for (std::size_t i = 0; i < num_workers; ++i) controller_->Start(i, "worker", 0, now_);
    controller_->Made(1);
    Take();
  }

  void StartJob(std::size_t num_workers, bool is_elastic = false) {
    MakeJob(num_workers, is_elastic);
    controller_->Applied("", {}, now_);
    Take();
  }

  void Report(const std::vector<PodReport>& pods, const std::vector<GivenUp>& given_up = {}) {
    KubeReport report;
    report.jobs = 1;
    report.pods = pods;
    report.given_up = given_up;
    controller_->Reported(report, false, now_);
  }

  /// The report of a pod whose container is running.
  static PodReport Running(std::size_t rank, int replaced = 0) {
    PodReport pod;
    pod.name = fmt::format("worker-{}-{}", rank, replaced);
    pod.role = "worker";
    pod.rank = rank;
    pod.replaced = replaced;
    pod.has_begun = true;
    return pod;
  }

  /// Passes the controller a message with these words, as if the pod's script had just logged it.
  void Says(const PodReport& pod, const std::string& words) {
    const auto ms = std::chrono::duration_cast<milliseconds>(now_.time_since_epoch()).count();
    controller_->LogRead(pod.name,
                         fmt::format("2026-01-02T03:{:02}:{:02}.{:03}Z \036{} {} {}\036\n", ms / 60'000 % 60,
                                     ms / 1000 % 60, ms % 1000, kPodMark, pod.rank, words),
                         now_);
  }

  /// The controller's actions since the last call.
  std::vector<KubernetesAction> Take() { return controller_->TakeActions(); }

  static std::vector<ProcessExited> Exits(const std::vector<KubernetesAction>& actions) {
    return EventsAmong<ProcessExited>(actions);
  }

  template <typename Action>
  static bool Has(const std::vector<KubernetesAction>& actions) {
    return !ActionsOf<Action>(actions).empty();
  }

  TimePoint now_{std::chrono::hours(1)};
  std::optional<KubernetesController> controller_;
};

TEST_F(KubernetesControllerTest, ALogThatBrokeOffIsFollowedAgainSoonHoweverMuchOtherPodsSay) {
  StartJob(2);
  Report({Running(0), Running(1)});
  controller_->FollowerExited(Running(0).name, {1, 0, false, {}}, now_);
  Take();
  // Each message delays the next regular query.
  bool asked = false;
  for (int passed_ms = 0; passed_ms < 400 && !asked; passed_ms += 100) {
    now_ += milliseconds(100);
    Says(Running(1), fmt::format("start 0 {} node", passed_ms));
    controller_->Tick(now_);
    asked = Has<AskForPods>(Take());
  }
  EXPECT_TRUE(asked);
}

TEST_F(KubernetesControllerTest, WhatIsKnownOfAPodIsToldBeforeThePodThatReplacesItSpeaks) {
  StartJob(1);
  Report({Running(0)});
  Says(Running(0), "start 0 17 node");
  Take();
  Report({Running(0), Running(0, 1)});
  Says(Running(0, 1), "start 1 18 node");
  const auto exits = Exits(Take());
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_THAT(exits[0].status.story, HasSubstr("was lost: its pod worker-0-0"));
  controller_->Start(0, "worker", 1, now_);
  EXPECT_TRUE(Exits(Take()).empty());
}

TEST_F(KubernetesControllerTest, TheEndThatTheScriptToldOfCountsAndNotThatOfItsContainer) {
  StartJob(1);
  Report({Running(0)});
  Says(Running(0), "start 0 17 node");
  Says(Running(0), "exit 0 7");
  PodReport ended = Running(0);
  ended.ended = ExitStatus{1, 0, false, {}};
  Report({ended});
  EXPECT_TRUE(Exits(Take()).empty()) << "its log has not been read to the end";
  controller_->FollowerExited(ended.name, {}, now_);
  const auto exits = Exits(Take());
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].status.ShellCode(), 7);
}

TEST_F(KubernetesControllerTest, WhoKilledAProcessOrToldItToEndIsToldByItsPod) {
  const auto story = [this](const std::string& said, const ExitStatus& of_container) {
    StartJob(2);
    Report({Running(0), Running(1)});
    Says(Running(0), "start 0 17 node");
    Says(Running(0), said);
    PodReport ended = Running(0);
    ended.ended = of_container;
    Report({ended, Running(1)});
    controller_->FollowerExited(ended.name, {}, now_);
    const auto exits = Exits(Take());
    return exits.size() == 1 ? exits[0].status.Describe() : "";
  };
  // With cgroups v1, only the process that used the memory is killed, not its script.
  EXPECT_THAT(story("exit 0 137", {137, 0, false, "took too much memory (OOMKilled)"}),
              HasSubstr("OOMKilled"));
  EXPECT_THAT(story("exit 0 137", {137, 0, false, {}}), HasSubstr("SIGKILL"));
  EXPECT_THAT(story("exit 0 3", {3, 0, false, "took too much memory (OOMKilled)"}), HasSubstr("code 3"));
  EXPECT_THAT(story("stopped 0 143", {143, 0, false, "was ended by Kubernetes (Evicted)"}),
              HasSubstr("Evicted"));
  EXPECT_THAT(story("stopped 0 143", {143, 0, false, {}}), HasSubstr("its pod worker-0-0 was deleted"));
}

TEST_F(KubernetesControllerTest, WhatAProcessSaysWhenItIsAskedToEndIsHeardAlsoWhileOthersAreBeingMade) {
  MakeJob(1);
  controller_->Stop(now_);
  EXPECT_TRUE(Exits(Take()).empty());
  controller_->Applied("", {}, now_);
  EXPECT_TRUE(Has<AskForPods>(Take()));
  KubeReport report;
  report.jobs = 1;
  report.pods = {Running(0)};
  controller_->Reported(report, true, now_);
  EXPECT_TRUE(Exits(Take()).empty());
  Says(Running(0), "exit 0 143");
  controller_->FollowerExited(Running(0).name, {}, now_);
  EXPECT_EQ(Exits(Take()).size(), 1U);
}

TEST_F(KubernetesControllerTest, APodThatWasEndedBecauseOfAnotherIsToldOfAfterIt) {
  StartJob(3);
  Report({Running(0), Running(1), Running(2)});
  for (int rank = 0; rank < 3; ++rank) Says(Running(rank), "start 0 17 node");
  // Worker 1 is killed without a message, and Kubernetes ends the others.
  PodReport killed = Running(1);
  killed.ended = ExitStatus{137, 0, false, {}};
  controller_->FollowerExited(killed.name, {}, now_);
  std::vector<PodReport> stopped = {Running(0), Running(2)};
  for (PodReport& pod : stopped) {
    Says(pod, "stopped 0 143");
    pod.ended = ExitStatus{143, 0, false, {}};
  }
  Report({stopped[0], killed, stopped[1]});
  controller_->FollowerExited(stopped[0].name, {}, now_);
  controller_->FollowerExited(stopped[1].name, {}, now_);
  EXPECT_TRUE(Exits(Take()).empty()) << "not all that 1 wrote has been read";
  for (int times = 0; times < 3; ++times) {
    Report({stopped[0], killed, stopped[1]});
    controller_->FollowerExited(killed.name, {}, now_);
  }
  const auto exits = Exits(Take());
  ASSERT_EQ(exits.size(), 3U);
  EXPECT_EQ(exits[0].index, 1U);
  EXPECT_EQ(exits[0].status.ShellCode(), 137);
}

TEST_F(KubernetesControllerTest, APodThatIsGoneBecauseOfAnotherIsToldOfAfterIt) {
  StartJob(2);
  PodReport begins = Running(0);
  begins.has_begun = false;
  Report({begins, Running(1)});
  Says(Running(1), "start 0 17 node");
  PodReport failed = Running(1);
  failed.ended = ExitStatus{3, 0, false, {}};
  Report({failed});
  EXPECT_TRUE(Exits(Take()).empty()) << "not all that 1 wrote has been read";
  Says(Running(1), "exit 0 3");
  controller_->FollowerExited(failed.name, {}, now_);
  Report({failed});
  const auto exits = Exits(Take());
  ASSERT_EQ(exits.size(), 2U);
  EXPECT_EQ(exits[0].index, 1U);
  EXPECT_EQ(exits[0].status.ShellCode(), 3);
}

TEST_F(KubernetesControllerTest, APodThatWasEndedByItselfIsToldOfAtOnce) {
  StartJob(2);
  Report({Running(0), Running(1)});
  Says(Running(0), "start 0 17 node");
  Says(Running(0), "stopped 0 143");
  PodReport stopped = Running(0);
  stopped.ended = ExitStatus{143, 0, false, {}};
  Report({stopped, Running(1)});
  controller_->FollowerExited(stopped.name, {}, now_);
  EXPECT_EQ(Exits(Take()).size(), 1U);
}

TEST_F(KubernetesControllerTest, AJobThatTookTooLongIsToldOfBeforeItsPods) {
  StartJob(1);
  Report({Running(0)});
  Says(Running(0), "start 0 17 node");
  Says(Running(0), "stopped 0 143");
  Take();
  KubeReport report;
  report.jobs = 1;
  report.failed_job = "DeadlineExceeded: it was active too long";
  report.pods = {Running(0)};
  report.pods[0].ended = ExitStatus{143, 0, false, {}};
  controller_->Reported(report, false, now_);
  const auto actions = Take();
  ASSERT_FALSE(actions.empty());
  const auto* event = std::get_if<ClusterEvent>(&actions[0]);
  ASSERT_NE(event, nullptr);
  EXPECT_TRUE(std::holds_alternative<JobTroubled>(*event));
}

TEST_F(KubernetesControllerTest, AWorkerThatIsNotReplacedAnyMoreIsToldOf) {
  StartJob(2, true);
  PodReport killed = Running(1);
  Report({Running(0), killed});
  Says(killed, "start 0 17 node");
  Says(killed, "exit 0 137");
  controller_->FollowerExited(killed.name, {}, now_);
  killed.ended = ExitStatus{137, 0, false, {}};
  Report({Running(0), killed}, {{"worker", 1}});
  controller_->FollowerExited(killed.name, {}, now_);
  const auto exits = Exits(Take());
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_TRUE(exits[0].status.place_lost);
  EXPECT_THAT(exits[0].status.Describe(), HasSubstr("SIGKILL), and Kubernetes does not replace its pod"));
}

TEST_F(KubernetesControllerTest, AWorkerThatWaitsForAReplacementThatNeverComesIsToldOf) {
  StartJob(2, true);
  PodReport killed = Running(1);
  killed.ended = ExitStatus{0, 9, false, {}};
  Report({Running(0), killed});
  for (int times = 0; times < 2; ++times) {
    controller_->FollowerExited(killed.name, {}, now_);
    Report({Running(0), killed});
  }
  auto exits = Exits(Take());
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_FALSE(exits[0].status.place_lost);
  controller_->Start(1, "worker", 1, now_);
  Report({Running(0), killed});
  EXPECT_TRUE(Exits(Take()).empty());
  Report({Running(0), killed}, {{"worker", 1}});
  exits = Exits(Take());
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_TRUE(exits[0].status.place_lost);
}

TEST_F(KubernetesControllerTest, AnErrorOfTheLastPodIsNoLossOfItsPlace) {
  StartJob(1, true);
  PodReport failed = Running(0);
  Report({failed});
  Says(failed, "start 2 17 node");
  Says(failed, "exit 2 3");
  failed.ended = ExitStatus{3, 0, false, {}};
  Report({failed}, {{"worker", 0}});
  controller_->FollowerExited(failed.name, {}, now_);
  const auto exits = Exits(Take());
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_FALSE(exits[0].status.place_lost);
}

/// A job of two workers whose tracker is a pod. The second worker's pod has not begun.
class KubernetesControllerWithTrackerTest : public KubernetesControllerTest {
 protected:
  void SetUp() override {
    StartJob(2, true);
    tracker_.name = tracker_.role = "tracker";
    tracker_.has_begun = true;
    waits_.has_begun = false;
    Report({tracker_, Running(0), waits_});
    Says(Running(0), "start 0 17 node");
    Take();
  }

  void TrackerSays(const std::string& line) {
    now_ += milliseconds(1);
    const auto ms = std::chrono::duration_cast<milliseconds>(now_.time_since_epoch()).count();
    controller_->LogRead(
        "tracker", fmt::format("2026-01-02T03:04:05.{:09}Z 2026-01-02 03:04:05 info tracker: {}\n", ms, line),
        now_);
  }
  /// Ends worker 0 successfully.
  void EndFirst() {
    Says(Running(0), "exit 0 0");
    PodReport ended = Running(0);
    ended.ended = ExitStatus{};
    Report({tracker_, ended, waits_});
    controller_->FollowerExited(ended.name, {}, now_);
  }

  PodReport tracker_;
  PodReport waits_ = Running(1);
};

TEST_F(KubernetesControllerWithTrackerTest, ItsWordsSayWhetherTheWorkIsDone) {
  EXPECT_FALSE(controller_->work_is_done());
  TrackerSays("the work is done");
  EXPECT_TRUE(controller_->work_is_done());
  TrackerSays("the work goes on");
  EXPECT_FALSE(controller_->work_is_done());
  TrackerSays("generation 2 begins");
  EXPECT_EQ(EventsAmong<LauncherSaid>(Take()).size(), 1U) << "words about the work are not shown";
}

TEST_F(KubernetesControllerWithTrackerTest, AWorkerThatHasNotBegunIsNotNeededAfterTheEndOfTheOthers) {
  EndFirst();
  ASSERT_EQ(Exits(Take()).size(), 1U);
  now_ += std::chrono::seconds(10);
  controller_->Tick(now_);
  Take();
  TrackerSays("the work is done");
  TrackerSays("all workers have finished");
  Report({tracker_, waits_});
  EXPECT_TRUE(Exits(Take()).empty()) << "this answer may be older than the end";
  now_ += std::chrono::seconds(1);
  controller_->Tick(now_);
  Report({tracker_, waits_});
  const auto actions = Take();
  EXPECT_TRUE(Exits(actions).empty()) << "the objects are not deleted yet";
  EXPECT_TRUE(Has<DeleteObjects>(actions));
  controller_->Deleted("", {}, now_);
  const auto exits = Exits(Take());
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].index, 1U);
  EXPECT_TRUE(exits[0].status.ok());
}

TEST_F(KubernetesControllerWithTrackerTest, ALossThatIsHeardOfAfterTheWorkIsNoFailure) {
  TrackerSays("the work is done");
  Says(Running(0), "again 0 137");
  const auto actions = Take();
  EXPECT_TRUE(Exits(actions).empty());
  EXPECT_THAT(WarningsAmong(actions),
              testing::Contains(HasSubstr("was killed by signal 9 (SIGKILL); by now the work")));
  Says(Running(0), "start 1 18 node");
  EndFirst();
  const auto exits = Exits(Take());
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_TRUE(exits[0].status.ok());
}

TEST_F(KubernetesControllerWithTrackerTest, AWorkerThatHasBegunIsHeardToItsEnd) {
  EndFirst();
  Take();
  TrackerSays("the work is done");
  TrackerSays("all workers have finished");
  for (int times = 0; times < 3; ++times) {
    now_ += std::chrono::seconds(1);
    controller_->Tick(now_);
    Report({tracker_, Running(1)});
  }
  const auto actions = Take();
  EXPECT_TRUE(Exits(actions).empty());
  EXPECT_FALSE(Has<DeleteObjects>(actions));
}

TEST_F(KubernetesControllerTest, WhoMayNotDeleteDoesNotTryAgain) {
  StartJob(1);
  controller_->Stop(now_);
  Take();
  controller_->Deleted("Error from server (Forbidden): jobs.batch is forbidden", {1, 0, false, {}}, now_);
  const auto deletions = ActionsOf<SetDeletion>(Take());
  ASSERT_EQ(deletions.size(), 1U);
  EXPECT_FALSE(deletions[0].left);
  EXPECT_FALSE(controller_->busy());
}

TEST_F(KubernetesControllerTest, AStopDoesNotWaitForObjectsThatAreNeverMade) {
  MakeJob(1);
  controller_->Stop(now_);
  now_ += std::chrono::seconds(5);
  controller_->Tick(now_);
  EXPECT_EQ(Exits(Take()).size(), 1U);
}

}  // namespace
}  // namespace warren::submit
