// The state machine of --cluster ssh, rule by rule; ssh_simulation_test.cc runs whole jobs.
#include "submit/cluster/ssh_controller.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>

#include "submit/cluster/ssh_places.h"

namespace warren::submit {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class SshControllerTest : public testing::Test {
 protected:
  /// Takes the pending actions. Returns them in short form, without log lines and other events that the tests
  /// ignore.
  std::vector<std::string> Settle() {
    std::vector<std::string> wanted;
    for (const SshAction& action : controller_->TakeActions()) {
      if (const auto* connect = std::get_if<ConnectSsh>(&action)) {
        wanted.push_back(fmt::format("connect {} to {}", connect->script, connect->host));
        ssh_ = connect->ssh;
      } else if (const auto* copy = std::get_if<CopyToHost>(&action)) {
        wanted.push_back(fmt::format("copy to {}", copy->host));
      } else if (const auto* send = std::get_if<SendLine>(&action)) {
        wanted.push_back(fmt::format("send {}", send->line.substr(0, send->line.size() - 1)));
      } else if (std::holds_alternative<StopSsh>(action)) {
        wanted.emplace_back("stop ssh");
      } else if (std::holds_alternative<HostsReady>(action)) {
        wanted.emplace_back("ready");
      } else if (const auto* event = std::get_if<ClusterEvent>(&action)) {
        if (const auto* exited = std::get_if<ProcessExited>(event)) {
          wanted.push_back(fmt::format("{} {}{}", exited->index, exited->status.Describe(),
                                       exited->status.host_lost ? ", host lost" : ""));
        } else if (const auto* line = std::get_if<LogLine>(event)) {
          said_ = line->text;
        }
      }
    }
    return wanted;
  }

  void Start(std::size_t index, std::size_t host) {
    controller_->Start(index, host, std::to_string(index), now_);
  }
  void Say(std::size_t index, const std::string& words) {
    controller_->Wrote(ssh_, Stream::kErr, fmt::format("\036mark {} {}\036\n", index, words));
  }
  void Kill(std::size_t index, int signal) {
    Say(index, fmt::format("exit 0 {}", 128 + signal));
    controller_->Exited(ssh_, {}, now_);
    Settle();
  }

  std::optional<SshController> controller_;
  SshId ssh_ = 0;
  TimePoint now_{1h};
  std::string said_;
};

TEST_F(SshControllerTest, ASlotMovesFromAHostThatKillsItsProcessToOneWithAFreeSlot) {
  controller_.emplace(std::vector<SshHost>{{"a", 1}, {"b", 1}, {"c", 1}}, std::vector<std::size_t>{0, 1},
                      "mark", "");
  for (int kills = 0; kills < 3; ++kills) {
    EXPECT_EQ(controller_->HostFor(1, now_), 1);
    Start(1, 1);
    Settle();
    Say(1, "start 0 17 b");
    Kill(1, SIGSEGV);
  }
  EXPECT_EQ(controller_->HostFor(1, now_), 2);
  Settle();
  EXPECT_EQ(said_, "b has lost 3 workers within 10 minutes: one of them moves to c");
  EXPECT_EQ(controller_->HostFor(1, now_ + 1h), 2) << "it stays there";
  EXPECT_EQ(controller_->HostFor(0, now_), 0);
}

TEST_F(SshControllerTest, ASlotStaysOnAHostThatKillsIfNoOtherHasRoom) {
  controller_.emplace(std::vector<SshHost>{{"a", 1}, {"b", 1}}, std::vector<std::size_t>{0, 1}, "mark", "");
  for (int kills = 0; kills < 4; ++kills) {
    EXPECT_EQ(controller_->HostFor(1, now_), 1);
    Start(1, 1);
    Settle();
    Say(1, "start 0 17 b");
    Kill(1, SIGKILL);
  }
}

TEST_F(SshControllerTest, ErrorsOfAProgramDoNotCountAgainstItsHost) {
  controller_.emplace(std::vector<SshHost>{{"a", 1}, {"b", 1}}, std::vector<std::size_t>{0}, "mark", "");
  for (int errors = 0; errors < 4; ++errors) {
    EXPECT_EQ(controller_->HostFor(0, now_), 0);
    Start(0, 0);
    Settle();
    Say(0, "start 0 17 a");
    Say(0, "exit 0 3");
    controller_->Exited(ssh_, {}, now_);
  }
}

TEST_F(SshControllerTest, AProcessThatRunsIsAskedToLeaveByALine) {
  controller_.emplace(std::vector<SshHost>{{"a", 1}}, std::vector<std::size_t>{}, "mark", "", true);
  Start(0, 0);
  Settle();
  Say(0, "start 0 17 a");
  Settle();
  controller_->AskToLeave(0);
  EXPECT_THAT(Settle(), ElementsAre("send leave"));
}

TEST_F(SshControllerTest, AProcessThatHasNotStartedDoesNotStartIfItIsToLeave) {
  controller_.emplace(std::vector<SshHost>{{"a", 1}}, std::vector<std::size_t>{}, "mark", "", true);
  Start(0, 0);
  EXPECT_THAT(Settle(), ElementsAre("connect 0 to 0"));
  controller_->AskToLeave(0);
  EXPECT_THAT(Settle(), ElementsAre("stop ssh"));
  for (std::size_t i = 1; i <= kConnectingAtOnce; ++i) Start(i, 0);
  Settle();
  controller_->AskToLeave(kConnectingAtOnce);
  EXPECT_THAT(Settle(), ElementsAre("8 was killed by signal 15 (SIGTERM)"));
}

TEST_F(SshControllerTest, InAnElasticJobFilesAreCopiedToAHostWhenItIsFirstUsed) {
  controller_.emplace(std::vector<SshHost>{{"a", 1}}, std::vector<std::size_t>{}, "mark", "/there", true);
  controller_->Prepare();
  EXPECT_THAT(Settle(), ElementsAre("ready"));
  controller_->AddHost({"b", 2});
  Start(0, 1);
  Start(1, 1);
  EXPECT_THAT(Settle(), ElementsAre("copy to 1"));
  controller_->CopyEnded(1, {}, "");
  EXPECT_THAT(Settle(), ElementsAre("connect 0 to 1", "connect 1 to 1"));
  Start(2, 1);
  EXPECT_THAT(Settle(), ElementsAre("connect 2 to 1")) << "once is enough";
}

TEST_F(SshControllerTest, InAnElasticJobAFailedCopyCostsOnlyTheProcessesOfItsHost) {
  controller_.emplace(std::vector<SshHost>{{"a", 1}, {"b", 1}}, std::vector<std::size_t>{}, "mark", "/there",
                      true);
  Start(0, 1);
  Settle();
  controller_->CopyEnded(1, {12, 0, false, {}}, "no space\n");
  EXPECT_THAT(
      Settle(),
      ElementsAre("0 could not be started: the current directory could not be copied to /there on b: rsync "
                  "exited with code 12: no space, host lost"));
  Start(0, 1);
  EXPECT_THAT(Settle(), ElementsAre("copy to 1")) << "another attempt";
}

/// "LOCAL_RANK of LOCAL_WORLD_SIZE" of the worker with this place, started on `host`.
std::string LocalRank(const std::vector<std::size_t>& places, MovedWorkers& moved, std::size_t place,
                      std::size_t host) {
  moved.Start(place, host, places[place] != host);
  PlannedProcess process;
  AddPlace(Options(), places, moved, place, host, "master", process);
  std::string rank, size;
  for (const auto& [name, value] : process.environment) {
    if (name == kLocalRankVariable.torch) rank = value;
    if (name == kLocalSizeVariable.torch) size = value;
  }
  return rank + " of " + size;
}

TEST(MovedWorkers, HaveLocalRanksThatNoOtherWorkerOfTheirHostHas) {
  const std::vector<std::size_t> places = {0, 0, 1, 1, 2};
  MovedWorkers moved;
  EXPECT_EQ(LocalRank(places, moved, 2, 1), "0 of 2");
  EXPECT_EQ(LocalRank(places, moved, 3, 1), "1 of 2");
  EXPECT_EQ(LocalRank(places, moved, 4, 1), "2 of 3");
  EXPECT_EQ(LocalRank(places, moved, 1, 1), "3 of 4");
  EXPECT_EQ(LocalRank(places, moved, 2, 1), "0 of 4") << "one of the host's own is started again";
  EXPECT_EQ(LocalRank(places, moved, 4, 2), "0 of 1") << "it is back on its host";
  EXPECT_EQ(LocalRank(places, moved, 0, 1), "2 of 4") << "the number is free again";
  EXPECT_EQ(LocalRank(places, moved, 1, 2), "1 of 2") << "it is moved once more";
}

}  // namespace
}  // namespace warren::submit
