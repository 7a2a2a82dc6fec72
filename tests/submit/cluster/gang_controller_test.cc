// Cases of the gang's state machine that its simulation does not check, or reaches only once in a million
// jobs.
#include "submit/cluster/gang_controller.h"

#include <gmock/gmock.h>

#include <tuple>

#include "tests/submit/cluster/actions_of.h"

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const TimePoint kNow{std::chrono::hours(1)};

/// Takes the controller's actions. Returns the indices of the processes whose end they report.
std::vector<std::size_t> Exited(GangController& controller) {
  std::vector<std::size_t> exited;
  for (const auto& one : EventsAmong<ProcessExited>(controller.TakeActions())) exited.push_back(one.index);
  return exited;
}

/// A gang of two workers whose launcher has failed twice. The agent of worker 1, which arrived during the
/// first launch, has outlived the second launch, and the job has started worker 1 again.
GangController WithAnAgentOfTheLauncherBefore() {
  GangController controller(0, 2, "host port 1");
  const Launch launch;
  const ExitStatus failure{1, 0, false, {}};
  for (const std::size_t index : {0, 1}) controller.Start(index, 0, 1, kNow);
  controller.Launched(0, launch);
  controller.Handle(AgentArrived{1, "host", "address"}, kNow);
  controller.LauncherExited(0, failure, kNow);
  EXPECT_THAT(Exited(controller), ElementsAre(0));
  controller.Start(0, 1, 1, kNow);
  controller.Tick(kNow);
  controller.Launched(0, launch);
  controller.LauncherExited(0, failure, kNow);
  EXPECT_THAT(Exited(controller), ElementsAre(0, 1));
  controller.Start(1, 2, 1, kNow);
  EXPECT_THAT(Exited(controller), IsEmpty());
  return controller;
}

TEST(GangController, AProcessWhoseAgentWasOfALauncherBeforeEndsWithAStop) {
  GangController controller = WithAnAgentOfTheLauncherBefore();
  controller.Stop(kNow);
  controller.Handle(AgentLeft{1}, kNow);
  EXPECT_THAT(Exited(controller), ElementsAre(1));
}

TEST(GangController, AProcessWhoseAgentWasOfALauncherBeforeIsNotWaitedForWhenThatLeaves) {
  GangController controller = WithAnAgentOfTheLauncherBefore();
  controller.Handle(AgentLeft{1}, kNow);
  controller.Tick(kNow);
  EXPECT_THAT(Exited(controller), ElementsAre(1));
}

TEST(GangController, WhatTheLauncherSaysIsToldButForItsNoise) {
  GangController controller(0, 1, "host port 1");
  Launch launch;
  launch.is_noise = [](std::string_view line) { return line.starts_with("noise"); };
  controller.Start(0, 0, 1, kNow);
  controller.Launched(0, launch);
  controller.LauncherWrote(0, Stream::kErr, "noi");
  controller.LauncherWrote(0, Stream::kErr, "se\nno route to host\nnoise at the end");
  controller.LauncherWrote(0, Stream::kOut, "last words");
  controller.LauncherExited(0, ExitStatus{1, 0, false, {}}, kNow);
  std::vector<std::string> said;
  std::vector<Stream> streams;
  for (const LauncherSaid& one : EventsAmong<LauncherSaid>(controller.TakeActions())) {
    said.push_back(one.piece);
    streams.push_back(one.stream);
  }
  EXPECT_THAT(said, ElementsAre("no route to host\n", testing::StartsWith("last words")));
  EXPECT_THAT(streams, ElementsAre(Stream::kErr, Stream::kOut));
}

TEST(GangController, SamplesOfARunningProcessAreHandedOn) {
  GangController controller(0, 1, "host port 1");
  controller.Start(0, 0, 1, kNow);
  controller.Launched(0, Launch());
  const AgentSaid sample{0, {0, "usage", "0 T 250 100 2048"}};
  const auto samples = [&] {
    std::vector<char> states;
    for (const auto& one : EventsAmong<ProcessSampled>(controller.TakeActions())) {
      states.push_back(one.sample.state);
    }
    return states;
  };
  controller.Handle(sample, kNow);
  EXPECT_THAT(samples(), IsEmpty()) << "of a process that does not run";
  controller.Handle(AgentArrived{0, "host", "address"}, kNow);
  controller.Handle(sample, kNow);
  EXPECT_THAT(samples(), ElementsAre('T'));
}

/// A launch that has put job 7 into a queue, which answers each query with `report`.
Launch InQueue(const std::optional<JobReport>& report) {
  Launch launch;
  launch.queue = Queue{.name = "the queue",
                       .returns = true,
                       .id = [](std::string_view) { return std::optional<std::string>("7"); },
                       .cancel = [](const std::string&) { return std::vector<std::string>{"cancel"}; },
                       .ask = [](const std::string&) { return std::vector<std::string>{"ask"}; },
                       .report = [report](const std::string&, std::string_view, int) { return report; }};
  return launch;
}

class JobInAQueue : public testing::TestWithParam<JobState> {};

/// Some queues report an error when a job that has already ended is canceled.
TEST_P(JobInAQueue, ThatCannotBeCancelledIsReportedUnlessItIsOver) {
  GangController controller(0, 1, "host port 1");
  controller.Start(0, 0, 1, kNow);
  controller.Launched(0, InQueue(JobReport{GetParam(), "state"}));
  controller.LauncherExited(0, ExitStatus{}, kNow);
  controller.Handle(AgentArrived{0, "host", "address"}, kNow);
  controller.TakeActions();

  controller.Stop(kNow);
  EXPECT_THAT(ActionsOf<RunCommand>(controller.TakeActions()), IsEmpty()) << "the agent has not left";
  EXPECT_TRUE(controller.busy());
  controller.Handle(AgentLeft{0}, kNow);
  auto commands = ActionsOf<RunCommand>(controller.TakeActions());
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].words.front(), "cancel");
  controller.CommandEnded(commands[0].command, "no such job\n", ExitStatus{1, 0, false, {}}, kNow);
  commands = ActionsOf<RunCommand>(controller.TakeActions());
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].words.front(), "ask");
  controller.CommandEnded(commands[0].command, "", ExitStatus{}, kNow);
  EXPECT_FALSE(controller.busy());
  std::vector<std::string> warnings;
  if (GetParam() != JobState::kOver) warnings = {"job 7 of the queue could not be cancelled: no such job"};
  EXPECT_EQ(WarningsAmong(controller.TakeActions()), warnings);
}

TEST(GangController, ALostProcessEndsAlthoughTheQueueNeverAnswers) {
  GangController controller(0, 1, "host port 1");
  controller.Start(0, 0, 1, kNow);
  controller.Launched(0, InQueue(std::nullopt));
  controller.LauncherExited(0, ExitStatus{}, kNow);
  controller.Handle(AgentArrived{0, "host", "address"}, kNow);
  controller.Handle(AgentLeft{0}, kNow);
  int asked = 0;
  bool has_ended = false;
  std::vector<std::string> warnings;
  for (TimePoint now = kNow; now < kNow + std::chrono::hours(1); now += std::chrono::seconds(1)) {
    controller.Tick(now);
    const std::vector<GangAction> actions = controller.TakeActions();
    for (const std::string& text : WarningsAmong(actions)) warnings.push_back(text);
    has_ended = !EventsAmong<ProcessExited>(actions).empty();
    if (has_ended) break;
    for (const RunCommand& command : ActionsOf<RunCommand>(actions)) {
      ++asked;
      controller.CommandEnded(command.command, "no\nanswer\n", ExitStatus{1, 0, false, {}}, now);
    }
  }
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(asked, 240);
  EXPECT_THAT(warnings, ElementsAre("the queue does not report the state of job 7: answer"));
}

TEST(GangController, AnAgentWithoutTheTokenIsNamedWithItsRole) {
  GangController controller(1, 1, "host port 1");
  for (const std::size_t index : {1, 2}) controller.Handle(AgentKeyless{index, "node"}, kNow);
  EXPECT_THAT(WarningsAmong(controller.TakeActions()),
              ElementsAre(testing::StartsWith("server 0: node cannot read the job's token"),
                          testing::StartsWith("worker 0: node cannot read the job's token")));
}

/// An agent ends after these messages, and a new attempt would be lost without a report.
TEST(GangController, AProcessWhoseAgentEndsIsNotStartedAgainThereAndTheCauseIsRepeated) {
  for (const auto& [kind, text, cause] :
       {std::tuple("fail", "there is no 'x'", "could not be started: there is no 'x'"),
        std::tuple("stopped", "0 143", "was killed by signal 15 (SIGTERM)")}) {
    GangController controller(0, 2, "host port 1");
    Launch launch;
    launch.name = "mpirun";
    for (const std::size_t index : {0, 1}) controller.Start(index, 0, 1, kNow);
    controller.Launched(0, launch);
    for (const std::size_t index : {0, 1}) controller.Handle(AgentArrived{index, "host", "address"}, kNow);
    controller.Handle(AgentSaid{1, {1, kind, text}}, kNow);
    EXPECT_THAT(Exited(controller), ElementsAre(1));
    for (const int attempt : {1, 2}) {
      controller.Start(1, attempt, 1, kNow);
      const std::vector<GangAction> actions = controller.TakeActions();
      EXPECT_THAT(ActionsOf<LaunchProcess>(actions), IsEmpty()) << kind;
      const auto exits = EventsAmong<ProcessExited>(actions);
      ASSERT_EQ(exits.size(), 1U);
      EXPECT_EQ(exits[0].status.Describe(),
                std::string("cannot be started again: its slot under mpirun is gone; before, it ") + cause);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Reported, JobInAQueue, testing::Values(JobState::kRunning, JobState::kOver),
                         [](const auto& state) {
                           return state.param == JobState::kOver ? "Over" : "Running";
                         });

}  // namespace
}  // namespace warren::submit
