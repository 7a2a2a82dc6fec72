// The tracker's state machine with classic workers (rabit, XGBoost up to 2.0), message by message, without
// sockets or clocks.
#include "tracker/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracker/driven_job.h"

namespace warren::tracker {
namespace {

namespace classic = wire::classic;
using classic::Command;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobTest : public ::testing::Test, public DrivenJob {
 protected:
  void Start(int num_workers, SortBy sort_by = SortBy::kHost, milliseconds timeout = milliseconds(0)) {
    job.emplace(JobOptions{num_workers, sort_by, false, timeout}, now);
  }

  ConnectionId Hello(const std::string& task, Command command = Command::kStart, int rank = -1,
                     int world = -1, const std::string& host = "10.0.0.1") {
    return Connect(classic::EncodeMagic() + classic::Encode(classic::Hello{rank, world, task, command}),
                   host);
  }
  /// Completes a worker's exchange: sends its good links, no failed links, and its port.
  void Link(ConnectionId id, const std::vector<std::int32_t>& good = {}) {
    Say(id, classic::Encode(classic::GoodLinks{good}));
    Say(id, classic::Encode(classic::LinkErrors{0}) + classic::Encode(classic::ListenPort{9010}));
  }
  /// Starts a world with one worker per task 0..n-1, all of them linked.
  void StartLinked(int num_workers) {
    Start(num_workers);
    std::vector<ConnectionId> ids;
    for (int task = 0; task < num_workers; ++task) ids.push_back(Hello(std::to_string(task)));
    for (const ConnectionId id : ids) Say(id, classic::Encode(classic::GoodLinks{}));
    for (bool progress = true; progress;) {
      progress = false;
      for (const ConnectionId id : ids) {
        if (IsClosed(id) || !HasPlan(id)) continue;
        Say(id, classic::Encode(classic::LinkErrors{0}) + classic::Encode(classic::ListenPort{9010}));
        progress = true;
      }
    }
    ASSERT_EQ(times_linked, 1);
  }
  bool HasPlan(ConnectionId id) {
    classic::TrackerStream stream;
    stream.Append(received[id]);
    return stream.NextMagic() && stream.NextAssignment() && stream.NextLinkPlan();
  }
};

TEST_F(JobTest, GivesNoRankBeforeAllWorkersHaveCome) {
  Start(2);
  Hello("1");
  EXPECT_THAT(ranks, IsEmpty());
  EXPECT_EQ(joined, 1);
  Hello("0");
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"0", 0}, {"1", 1}}));
}

TEST_F(JobTest, SortsByHostThenByTaskNumber) {
  Start(4);
  Hello("10", Command::kStart, -1, -1, "10.0.0.2");
  Hello("9", Command::kStart, -1, -1, "10.0.0.2");
  Hello("12", Command::kStart, -1, -1, "10.0.0.1");
  Hello("11", Command::kStart, -1, -1, "10.0.0.1");
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"11", 0}, {"12", 1}, {"9", 2}, {"10", 3}}));
}

TEST_F(JobTest, SortsByTaskNumberAcrossHosts) {
  Start(3, SortBy::kTask);
  Hello("10", Command::kStart, -1, -1, "10.0.0.1");
  Hello("9", Command::kStart, -1, -1, "10.0.0.9");
  Hello("b", Command::kStart, -1, -1, "10.0.0.2");
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"9", 0}, {"10", 1}, {"b", 2}}));
}

TEST_F(JobTest, KeepsTheRankAWorkerBrings) {
  Start(3);
  Hello("a", Command::kStart, 2);
  EXPECT_EQ(ranks["a"], 2);
  Hello("b");
  Hello("c");
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"a", 2}, {"b", 0}, {"c", 1}}));
}

TEST_F(JobTest, TellsAWorkerItsPlaceInTreeAndRing) {
  Start(3);
  Hello("0");
  Hello("1");
  const ConnectionId last = Hello("2");
  classic::TrackerStream stream;
  stream.Append(received[last]);
  ASSERT_EQ(stream.NextMagic(), wire::kMagic);
  const auto assignment = stream.NextAssignment();
  ASSERT_TRUE(assignment);
  EXPECT_EQ(assignment->rank, 2);
  EXPECT_EQ(assignment->world_size, 3);
  EXPECT_EQ(assignment->parent, 0);
  EXPECT_THAT(assignment->tree_neighbors, ElementsAre(0));
  EXPECT_EQ(assignment->ring_prev, 1);
  EXPECT_EQ(assignment->ring_next, 0);
}

TEST_F(JobTest, FinishesWhenEveryRankHasShutDown) {
  StartLinked(3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(finished, std::nullopt);
    Hello(std::to_string(rank), Command::kShutdown, rank, 3);
  }
  EXPECT_EQ(finished, "");
}

TEST_F(JobTest, ReleasesTheLastWorkerInWordsThoughItHasNotYetSaidThatItWaits) {
  StartLinked(2);
  const ConnectionId first = Hello("0", Command::kShutdown, 0);
  Say(first, classic::Encode(classic::WaitForOthers{}));
  const ConnectionId last = Hello("1", Command::kShutdown, 1);
  EXPECT_EQ(finished, "");
  EXPECT_THAT(received[first], EndsWith(classic::Encode(classic::TrackerWord::kReleased)));
  EXPECT_THAT(received[last], EndsWith(classic::Encode(classic::TrackerWord::kReleased)));
}

TEST_F(JobTest, TakesTheShutdownBackOfAWorkerThatSendsMoreWhileItWaits) {
  StartLinked(2);
  const ConnectionId waits = Hello("1", Command::kShutdown, 1);
  Say(waits, classic::Encode(classic::WaitForOthers{}) + "x");
  EXPECT_TRUE(IsClosed(waits));
  Hello("0", Command::kRecover, 0);  // calls back those who wait
  EXPECT_FALSE(job->TaskHasShutDown("1"));
  Hello("0", Command::kShutdown, 0);
  EXPECT_FALSE(finished);
}

TEST_F(JobTest, CountsARankOnceThatShutsDownBeforeItIsLinked) {
  Start(2);
  const ConnectionId start = Hello("a", Command::kStart, 1);
  Hello("a", Command::kShutdown, 1);
  Close(start);
  Hello("a", Command::kStart, 1);
  EXPECT_THAT(warnings.back(), HasSubstr("rank 1 has already shut down"));
}

TEST_F(JobTest, KeepsAShutdownAtATakeOverThoughTheRankHadNotBeenLinked) {
  Start(2);
  job->TakeOver({{.kind = Note::Kind::kWorld, .rank = 2},
                 {.kind = Note::Kind::kAssigned, .rank = 1, .task_id = "NULL", .host = "10.0.0.1"},
                 {.kind = Note::Kind::kShutDown, .rank = 1}},
                now);
  Hello("NULL", Command::kShutdown, 1);  // the worker was not released, and repeats its shutdown
  EXPECT_THAT(warnings, IsEmpty());
  Hello("NULL", Command::kShutdown, 1);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("rank 1 has already shut down")));
}

TEST_F(JobTest, TellsWorkersWithoutATaskApartHoweverTheySayThatTheyHaveNone) {
  Start(3);
  const std::vector<ConnectionId> workers = {Hello(""), Hello(""), Hello("NULL")};
  EXPECT_EQ(joined, 3);
  EXPECT_THAT(closed, IsEmpty());
  for (const ConnectionId worker : workers) EXPECT_FALSE(received[worker].empty());
}

TEST_F(JobTest, HearsWhatWasPrintedBeforeTheLastShutdownThoughItComesAfterIt) {
  StartLinked(1);
  const ConnectionId print = Hello("0", Command::kPrint, 0, 1);
  Hello("0", Command::kShutdown, 0, 1);
  EXPECT_EQ(finished, std::nullopt);
  Say(print, classic::Encode(classic::PrintText{"the last words"}));
  EXPECT_THAT(prints, ElementsAre("the last words"));
  EXPECT_THAT(print_ranks, ElementsAre(0));
  EXPECT_EQ(finished, "");
}

TEST_F(JobTest, EndsWithoutAPrintThatDoesNotCome) {
  StartLinked(1);
  Hello("0", Command::kPrint, 0, 1);
  Hello("0", Command::kShutdown, 0, 1);
  EXPECT_EQ(finished, std::nullopt);
  ASSERT_TRUE(job->NextDeadline());
  EXPECT_LE(*job->NextDeadline() - now, milliseconds(500));
  PassTime(*job->NextDeadline() - now);
  EXPECT_EQ(finished, "");
}

TEST_F(JobTest, TakesTheWorldSizeOfTheFirstWorkerOnly) {
  Start(7);
  Hello("0", Command::kStart, -1, 2);
  Hello("1", Command::kStart, -1, 5);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("it expects 5 workers, but this job has 2"));
  Hello("1", Command::kStart, -1, 2);
  EXPECT_EQ(ranks.size(), 2U);
}

TEST_F(JobTest, ForgetsTheWorldSizeOfAFirstWorkerThatLeft) {
  Start(2);
  const ConnectionId first = Hello("0", Command::kStart, -1, 9);
  Close(first);
  Hello("0");
  Hello("1");
  EXPECT_EQ(ranks.size(), 2U);
}

TEST_F(JobTest, ForgetsTheWorldSizeOfAWorkerThatLeftWhileAnotherWaits) {
  Start(2);
  const ConnectionId first = Hello("x", Command::kStart, -1, 9);
  Hello("0");
  Close(first);
  Hello("1");
  EXPECT_EQ(ranks.size(), 2U);
}

TEST_F(JobTest, KeepsItsWorldSizeWhereTheLauncherHasFixedIt) {
  job.emplace(JobOptions{2, SortBy::kHost, true, milliseconds(0)}, now);
  Hello("0", Command::kStart, -1, 1);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("it expects 1 workers, but this job has 2"));
  Hello("0", Command::kStart, -1, 2);
  Hello("1");
  EXPECT_EQ(ranks.size(), 2U);
}

TEST_F(JobTest, GivesARankAwayAgainWhenItsHolderLeavesBeforeItEverLinked) {
  Start(2);
  const ConnectionId impostor = Hello("x", Command::kStart, 0);
  Close(impostor);
  Hello("0");
  Hello("1");
  EXPECT_EQ(ranks["0"], 0);
  EXPECT_EQ(ranks["1"], 1);
}

TEST_F(JobTest, LetsNobodyShutDownOrRecoverTheRankOfAnotherTask) {
  StartLinked(2);
  Hello("x", Command::kShutdown, 0, 2);
  Hello("x", Command::kRecover, 1, 2);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0], HasSubstr("rank 0 belongs to task 0"));
  EXPECT_THAT(warnings[1], HasSubstr("rank 1 belongs to task 1"));
  Hello("0", Command::kShutdown, 0, 2);
  Hello("1", Command::kShutdown, 1, 2);
  EXPECT_EQ(finished, "");
}

TEST_F(JobTest, GivesARestartedTaskItsOldRankBack) {
  StartLinked(3);
  const ConnectionId again = Hello("1");
  classic::TrackerStream stream;
  stream.Append(received[again]);
  stream.NextMagic();
  EXPECT_EQ(stream.NextAssignment()->rank, 1);
}

TEST_F(JobTest, LinksARestartedTaskAndItsRecoveringNeighborsAgain) {
  StartLinked(3);
  const ConnectionId again = Hello("1");
  const ConnectionId zero = Hello("0", Command::kRecover, 0, 3);
  const ConnectionId two = Hello("2", Command::kRecover, 2, 3);
  Link(zero, {2});
  Link(again, {});
  Link(two, {0});
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_EQ(times_linked, 2);
}

TEST_F(JobTest, DropsTheOlderConnectionOfATaskThatConnectsAgain) {
  Start(2);
  const ConnectionId first = Hello("0");
  const ConnectionId second = Hello("0");
  EXPECT_TRUE(IsClosed(first));
  EXPECT_FALSE(IsClosed(second));
  Hello("1");
  EXPECT_EQ(ranks.size(), 2U);
}

TEST_F(JobTest, ForgetsAWorkerThatLeavesWhileItWaits) {
  Start(2);
  Close(Hello("0"));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("10.0.0.1:40001, task 0: it closed the connection while it waited"));
  Hello("1");
  EXPECT_THAT(ranks, IsEmpty());
  Hello("0");
  EXPECT_EQ(ranks.size(), 2U);
}

TEST_F(JobTest, ShowsWhatWorkersPrintAndNothingThatATerminalWouldObey) {
  Start(1);
  Hello("0");
  const ConnectionId id =
      Connect(classic::EncodeMagic() + classic::Encode(classic::Hello{0, 1, "0", Command::kPrint}) +
              classic::Encode(classic::PrintText{"[3]\ttrain-auc:0.9 \x1b]0;mine\a"}));
  EXPECT_THAT(prints, ElementsAre("[3]\ttrain-auc:0.9 \\x1b]0;mine\\x07"));
  EXPECT_TRUE(IsClosed(id));
}

TEST_F(JobTest, HandsOutAPortAgainAfterAFailedConnection) {
  Start(2);
  const ConnectionId zero = Hello("0");
  const ConnectionId one = Hello("1");
  Link(zero);
  Say(one, classic::Encode(classic::GoodLinks{}));
  received[one].clear();
  Say(one, classic::Encode(classic::LinkErrors{1}) + classic::Encode(classic::GoodLinks{}));
  EXPECT_EQ(received[one], "") << "not at once";
  ASSERT_TRUE(job->NextDeadline());
  PassTime(*job->NextDeadline() - now);
  EXPECT_EQ(received[one], classic::Encode(classic::LinkPlan{{{"10.0.0.1", 9010, 0}}, 0}));
}

struct Misdeed {
  const char* what;
  std::string bytes;
  const char* complaint;
};

TEST_F(JobTest, DropsMisbehavingPeersWithOneLineAndGoesOn) {
  const auto hello = [](int rank, int world, const std::string& task, Command command) {
    return classic::EncodeMagic() + classic::Encode(classic::Hello{rank, world, task, command});
  };
  const std::vector<Misdeed> misdeeds = {
      {"a web browser", "GET / HTTP/1.1\r\n\r\n", "not a worker"},
      {"a huge task id", classic::EncodeMagic() + wire::Writer().Int(-1).Int(-1).Int(1 << 30).Take(),
       "task id announces"},
      {"an unknown command",
       classic::EncodeMagic() + wire::Writer().Int(-1).Int(-1).String("0").String("stop").Take(),
       "the command is \"stop\""},
      {"XGBoost 2.1",
       classic::EncodeMagic() + wire::Writer().String(R"({"world_size":-1,"rank":-1,"task_id":"0"})").Take(),
       "collective dialect"},
      {"a rank outside the world", hello(3, -1, "9", Command::kStart), "its rank is 3, expected 0 to 2"},
      {"another world", hello(-1, 4, "9", Command::kStart), "it expects 4 workers, but this job has 3"},
      {"a recovery out of nothing", hello(1, 3, "9", Command::kRecover), "recover as rank 1"},
      {"a recovery without a rank", hello(-1, 3, "9", Command::kRecover), "recover as rank -1"},
      {"a shutdown out of nothing", hello(0, 3, "9", Command::kShutdown), "shuts down as rank 0"},
      {"a shutdown without a rank", hello(-1, 3, "9", Command::kShutdown), "shuts down as rank -1"},
      {"impatience", hello(-1, -1, "7", Command::kStart) + classic::Encode(classic::GoodLinks{}),
       "before it was given a rank"},
  };
  Start(3);
  Hello("0");
  for (const Misdeed& misdeed : misdeeds) {
    warnings.clear();
    const ConnectionId id = Connect(misdeed.bytes, "203.0.113.5");
    ASSERT_EQ(warnings.size(), 1U) << misdeed.what;
    EXPECT_THAT(warnings[0], HasSubstr(misdeed.complaint)) << misdeed.what;
    EXPECT_THAT(warnings[0], HasSubstr("203.0.113.5:")) << misdeed.what;
    EXPECT_TRUE(IsClosed(id)) << misdeed.what;
  }
  Hello("1");
  Hello("2");
  EXPECT_EQ(ranks.size(), 3U);
}

TEST_F(JobTest, DropsASecondShutdownAndAStartAfterIt) {
  StartLinked(2);
  Hello("1", Command::kShutdown, 1, 2);
  Hello("1", Command::kShutdown, 1, 2);
  Hello("1", Command::kStart);
  Hello("1", Command::kRecover, 1, 2);
  ASSERT_EQ(warnings.size(), 3U);
  EXPECT_THAT(warnings[0], HasSubstr("rank 1 has already shut down"));
  EXPECT_THAT(warnings[1], HasSubstr("cannot start again"));
  EXPECT_THAT(warnings[2], HasSubstr("cannot recover"));
  EXPECT_EQ(finished, std::nullopt);
  Hello("0", Command::kShutdown, 0, 2);
  EXPECT_EQ(finished, "");
}

TEST_F(JobTest, DropsAnUnknownTaskWhenAllRanksAreTakenAndAnImpostor) {
  StartLinked(2);
  Hello("unknown");
  Hello("impostor", Command::kStart, 0);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0], HasSubstr("task unknown is not known and all 2 ranks are taken"));
  EXPECT_THAT(warnings[1], HasSubstr("rank 0 belongs to task 0"));
}

TEST_F(JobTest, DropsALinkReportNobodyAskedForAndAGoodLinkToNobody) {
  Start(4);
  std::vector<ConnectionId> ids;
  for (int task = 0; task < 4; ++task) ids.push_back(Hello(std::to_string(task)));
  // Rank 3 must wait until a peer listens, so it has no plan yet.
  Say(ids[3], classic::Encode(classic::GoodLinks{}) + classic::Encode(classic::LinkErrors{0}));
  Say(ids[0], classic::Encode(classic::GoodLinks{{0}}));
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0], HasSubstr("before it was told which ranks to connect to"));
  EXPECT_THAT(warnings[1], HasSubstr("names rank 0 as a good link, but that rank is not its neighbour"));
}

TEST_F(JobTest, DropsAPeerThatSaysNothingWhenItsTimeIsUp) {
  Start(2);
  const ConnectionId silent = Connect("");
  const ConnectionId half = Connect(classic::EncodeMagic() + std::string("\xff\xff", 2));
  PassTime(kHelloTimeout - milliseconds(1));
  EXPECT_THAT(closed, IsEmpty());
  ASSERT_EQ(job->NextDeadline(), now + milliseconds(1));
  PassTime(milliseconds(1));
  EXPECT_THAT(closed, ElementsAre(silent, half));
  EXPECT_THAT(warnings[0], HasSubstr("was silent for too long, expected the magic number"));
  EXPECT_THAT(warnings[1], HasSubstr("expected the rank and world size"));
}

TEST_F(JobTest, DropsTheOldestPendingConnectionWhenThereAreTooMany) {
  Start(1);
  for (std::size_t i = 0; i < kMaxPendingConnections + 2; ++i) Connect("");
  EXPECT_THAT(closed, IsEmpty());
  Connect("");
  EXPECT_THAT(closed, ElementsAre(1));
}

TEST_F(JobTest, SaysWhoIsMissingWhenTheTimeIsUp) {
  Start(4, SortBy::kHost, seconds(30));
  Hello("2", Command::kStart, -1, -1, "10.0.0.7");
  Hello("0");
  PassTime(seconds(30));
  ASSERT_TRUE(finished);
  EXPECT_THAT(*finished, HasSubstr("workers are missing after 30 s: 2 of 4 workers joined: "));
  EXPECT_THAT(*finished, HasSubstr("task 2 (10.0.0.7)"));
  EXPECT_THAT(*finished, HasSubstr("task 0 (10.0.0.1)"));
  EXPECT_THAT(*finished, HasSubstr("; missing: task 1, 3"));
}

TEST_F(JobTest, SaysWhoseLinksAreMissingWhenASurvivorDoesNotRecover) {
  Start(2, SortBy::kHost, seconds(30));
  const ConnectionId zero = Hello("0");
  const ConnectionId one = Hello("1");
  Link(zero);
  Link(one);
  ASSERT_EQ(times_linked, 1);
  PassTime(seconds(1000));
  ASSERT_EQ(finished, std::nullopt) << "a linked job has no deadline";
  Say(Hello("1"), classic::Encode(classic::GoodLinks{}));
  PassTime(seconds(30));
  ASSERT_TRUE(finished);
  EXPECT_THAT(*finished, HasSubstr("not linked yet: task 1 (10.0.0.1, rank 1)"));
  EXPECT_THAT(*finished, HasSubstr("did not return to be linked again: task 0 (10.0.0.1, rank 0)"));
}

TEST_F(JobTest, RefusesAWorldOfNobody) {
  EXPECT_THROW(Start(0), std::invalid_argument);
}

}  // namespace
}  // namespace warren::tracker
