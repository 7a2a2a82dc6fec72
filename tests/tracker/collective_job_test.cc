// Jobs of XGBoost 2.1 and later, message by message, without sockets or clocks.
#include "tracker/collective_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/tracker/driven_job.h"

namespace warren::tracker {
namespace {

namespace collective = wire::collective;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class CollectiveJobTest : public ::testing::Test, public DrivenJob {
 protected:
  void Start(int num_workers, SortBy sort_by = SortBy::kHost, milliseconds timeout = milliseconds(0)) {
    job.emplace(JobOptions{num_workers, sort_by, true, timeout, true}, now);
  }

  template <typename Command>
  ConnectionId Say(const std::string& task, const Command& command, int rank = -1, int world = -1,
                   const std::string& host = "10.0.0.1") {
    return Connect(wire::Writer().Int(wire::kMagic).Take() +
                       collective::Encode(collective::Hello{world, rank, task}) + collective::Encode(command),
                   host);
  }
  /// Starts a worker whose error port is 9100 + `task`.
  ConnectionId Come(int task, const std::string& host = "10.0.0.1") {
    return Say(std::to_string(task), collective::Start{9000 + task, 9100 + task}, -1, -1, host);
  }
  /// Sends shutdown and then closes the connection, as a worker does once it has notified its own error port.
  void Leave(int task, int world) {
    const ConnectionId id = Say(std::to_string(task), collective::Shutdown{}, task, world);
    Close(id);
  }
  void Run(int num_workers) {
    Start(num_workers);
    for (int task = 0; task < num_workers; ++task) Come(task);
    for (const auto& [port, line] : lines) job->Connected(line);
    ASSERT_THAT(lines, SizeIs(num_workers));
  }
  void LoseLine(int task) { Close(lines.at(static_cast<std::uint16_t>(9100 + task))); }
  /// The tasks whose error ports were sent an error.
  std::vector<int> Told() const {
    std::vector<int> tasks;
    for (const auto& [port, line] : lines) {
      const auto sent = received.find(line);
      if (sent != received.end() && sent->second == collective::Encode(collective::Signal::kError))
        tasks.push_back(port - 9100);
    }
    return tasks;
  }
  std::optional<collective::Next> NextPeerOf(ConnectionId id) {
    collective::TrackerStream stream;
    stream.Append(received[id]);
    if (!stream.NextMagic() || !stream.NextWorld()) return std::nullopt;
    return stream.NextPeer();
  }
};

TEST_F(CollectiveJobTest, TellsTheWorldAtOnceAndTheNextPeerWhenAllHaveCome) {
  Start(3);
  const ConnectionId second = Come(1);
  const ConnectionId first = Come(0);
  EXPECT_EQ(received[first],
            wire::Writer().Int(wire::kMagic).Take() + collective::Encode(collective::World{3}));
  EXPECT_FALSE(job->linked());
  const ConnectionId third = Come(2);
  EXPECT_TRUE(job->linked());
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"0", 0}, {"1", 1}, {"2", 2}}));
  const auto next_of_second = NextPeerOf(second);
  ASSERT_TRUE(next_of_second);
  EXPECT_EQ(next_of_second->rank, 2);
  EXPECT_EQ(next_of_second->host, "10.0.0.1");
  EXPECT_EQ(next_of_second->port, 9002);
  EXPECT_EQ(NextPeerOf(third)->rank, 0);
  EXPECT_TRUE(IsClosed(first) && IsClosed(second) && IsClosed(third));
}

TEST_F(CollectiveJobTest, AWorldOfOneIsItsOwnNext) {
  Start(1);
  EXPECT_EQ(NextPeerOf(Come(0))->rank, 0);
}

TEST_F(CollectiveJobTest, RanksAreInTheOrderOfHostsAndThenOfTaskNumbers) {
  Start(4);
  Come(10, "10.0.0.2");
  Come(9, "10.0.0.2");
  Come(12, "10.0.0.1");
  Come(11, "10.0.0.1");
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"11", 0}, {"12", 1}, {"9", 2}, {"10", 3}}));
}

TEST_F(CollectiveJobTest, RanksAreInTheOrderOfTasksWhenAsked) {
  Start(3, SortBy::kTask);
  Come(10, "10.0.0.1");
  Come(9, "10.0.0.9");
  Say("b", collective::Start{1, 2});
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"9", 0}, {"10", 1}, {"b", 2}}));
}

TEST_F(CollectiveJobTest, ATaskThatComesAgainBeforeAllHaveTakesItsOwnPlace) {
  Start(2);
  const ConnectionId before = Come(0);
  Come(0);
  EXPECT_TRUE(IsClosed(before));
  EXPECT_THAT(ranks, IsEmpty());
  Come(1);
  EXPECT_THAT(ranks, SizeIs(2));
}

TEST_F(CollectiveJobTest, AWorkerThatLeavesBeforeAllHaveComeIsForgotten) {
  Start(2);
  Close(Come(0));
  Come(1);
  EXPECT_THAT(ranks, IsEmpty());
  Come(2);
  EXPECT_THAT(ranks, SizeIs(2));
}

TEST_F(CollectiveJobTest, PrintsWhatItsWorkersSayAndNobodyElse) {
  Start(2);
  EXPECT_TRUE(IsClosed(Say("0", collective::Print{"too early"})));
  Run(2);
  Say("0", collective::Print{"not its rank"}, 1, 2);
  Say("1", collective::Print{"two"}, 1, 2);
  EXPECT_THAT(prints, ElementsAre("two"));
  EXPECT_THAT(print_ranks, ElementsAre(1));
}

TEST_F(CollectiveJobTest, FinishesWhenAllHaveShutDownAndClosed) {
  Run(2);
  Leave(0, 2);
  const ConnectionId last = Say("1", collective::Shutdown{}, 1, 2);
  EXPECT_EQ(finished, std::nullopt);
  EXPECT_FALSE(IsClosed(last));
  // The tracker notifies the worker only once the worker has closed its connection: the worker notifies its
  // own error port before that, and would otherwise find the port closed.
  EXPECT_EQ(received[lines[9101]], "");
  Close(last);
  EXPECT_EQ(received[lines[9101]], collective::Encode(collective::Signal::kEnd));
  EXPECT_EQ(finished, "");
  EXPECT_THAT(broken, IsEmpty());
}

TEST_F(CollectiveJobTest, AShutdownThatIsNeverClosedIsNotWaitedForLong) {
  Run(1);
  Say("0", collective::Shutdown{}, 0, 1);
  PassTime(kLeaveTimeout);
  EXPECT_EQ(finished, "");
}

TEST_F(CollectiveJobTest, FinishesThoughAWorkerSendsMoreAfterItsShutdown) {
  Run(2);
  const ConnectionId talkative = Say("0", collective::Shutdown{}, 0, 2);
  DrivenJob::Say(talkative, "x");
  EXPECT_TRUE(IsClosed(talkative));
  Leave(1, 2);
  EXPECT_EQ(finished, "");
}

TEST_F(CollectiveJobTest, OnlyTheOwnerOfARankShutsItDownAndOnlyOnce) {
  Run(2);
  EXPECT_TRUE(IsClosed(Say("0", collective::Shutdown{}, 1, 2)));
  EXPECT_TRUE(IsClosed(Say("x", collective::Shutdown{}, 7, 2)));
  Leave(0, 2);
  EXPECT_TRUE(IsClosed(Say("0", collective::Shutdown{}, 0, 2)));
  EXPECT_THAT(warnings, SizeIs(3));
  EXPECT_EQ(finished, std::nullopt);
}

TEST_F(CollectiveJobTest, AReportedErrorTellsAllOthersOnTheSameHostToo) {
  Run(3);
  Say("1", collective::Failure{"no memory\nstack trace", 12}, 1, 3);
  EXPECT_EQ(job->NextDeadline(), now + kSilentFailureGrace);
  PassTime(kSilentFailureGrace);
  EXPECT_THAT(Told(), ElementsAre(0, 2));
  ASSERT_THAT(broken, SizeIs(1));
  EXPECT_EQ(broken[0].task_id, "1");
  EXPECT_EQ(broken[0].story, "rank 1 (task 1, host 10.0.0.1) reported an error: no memory");
  EXPECT_FALSE(IsClosed(lines[9101]));  // closing it would disturb the worker's exit
  EXPECT_THAT(warnings,
              ElementsAre(AllOf(HasSubstr("reported an error: no memory"), HasSubstr("told 2 others"))));
}

TEST_F(CollectiveJobTest, OnlyTheFirstFailureCounts) {
  Run(3);
  Say("1", collective::Failure{"first", 1}, 1, 3);
  PassTime(kSilentFailureGrace);
  Say("2", collective::Failure{"second", 1}, 2, 3);
  LoseLine(0);
  PassTime(milliseconds(1000));
  EXPECT_THAT(broken, SizeIs(1));
}

TEST_F(CollectiveJobTest, AProcessThatIsGoneWithoutAWordIsNoticed) {
  Run(3);
  LoseLine(2);
  EXPECT_EQ(job->NextDeadline(), now + kShutdownGrace);
  PassTime(kShutdownGrace - milliseconds(1));
  EXPECT_THAT(broken, IsEmpty());
  PassTime(milliseconds(1));
  EXPECT_THAT(Told(), ElementsAre(0, 1));
  EXPECT_THAT(broken.at(0).story, HasSubstr("rank 2 (task 2, host 10.0.0.1) was lost"));
}

TEST_F(CollectiveJobTest, WithTheOneThatIsGoneWithoutAWordItBegan) {
  Run(4);
  LoseLine(2);
  PassTime(milliseconds(5));
  LoseLine(3);
  Say("1", collective::Failure{"the connection to rank 2 is gone", 1}, 1, 4);
  EXPECT_THAT(broken.at(0).story, HasSubstr("rank 2 (task 2, host 10.0.0.1) was lost"));
  EXPECT_EQ(broken.at(0).task_id, "2");
  EXPECT_THAT(Told(), ElementsAre(0, 1));
  EXPECT_EQ(job->GoneAfter("2"), 0);
  EXPECT_EQ(job->GoneAfter("3"), 1);
  EXPECT_EQ(job->GoneAfter("1"), std::nullopt);
}

TEST_F(CollectiveJobTest, WhoseErrorIsHeardAfterItsEndIsNotCalledLost) {
  Run(2);
  LoseLine(1);
  Say("1", collective::Failure{"no memory", 1}, 1, 2);
  PassTime(kSilentFailureGrace);
  EXPECT_THAT(broken.at(0).story, HasSubstr("rank 1 (task 1, host 10.0.0.1) reported an error: no memory"));
}

TEST_F(CollectiveJobTest, ErrorsMayBeHeardBeforeTheEndOfTheOneThatCausedThem) {
  Run(4);
  Say("1", collective::Failure{"the connection to rank 2 is gone", 1}, 1, 4);
  Say("3", collective::Failure{"the connection to rank 2 is gone", 1}, 3, 4);
  LoseLine(1);
  Fail("3", "exited with code 1");
  EXPECT_THAT(broken, IsEmpty());
  LoseLine(2);
  ASSERT_THAT(broken, SizeIs(1));
  EXPECT_THAT(broken[0].story, HasSubstr("rank 2 (task 2, host 10.0.0.1) was lost"));
}

TEST_F(CollectiveJobTest, WhoSpokeAndEndsSoonerThanTheFirstIsNotTakenForIt) {
  Run(4);
  Say("1", collective::Failure{"bad luck", 1}, 1, 4);
  Say("3", collective::Failure{"the connection to rank 1 is gone", 1}, 3, 4);
  LoseLine(3);
  PassTime(kSilentFailureGrace);
  EXPECT_EQ(broken.at(0).task_id, "1");
  EXPECT_EQ(job->GoneAfter("3"), std::nullopt);
}

TEST_F(CollectiveJobTest, WhoIsStartedAgainBecauseOfAnErrorIsNotTheFirstToFail) {
  Run(2);
  Say("1", collective::Failure{"bad luck", 1}, 1, 2);
  Come(0);
  EXPECT_THAT(broken.at(0).story, HasSubstr("rank 1 (task 1, host 10.0.0.1) reported an error: bad luck"));
  Come(1);
  EXPECT_TRUE(job->linked());
}

TEST_F(CollectiveJobTest, TheLauncherMayKnowOfTheCauseSooner) {
  Run(3);
  Say("1", collective::Failure{"the connection to rank 2 is gone", 1}, 1, 3);
  Fail("2", "was killed by signal 9");
  EXPECT_EQ(broken.at(0).story, "rank 2 (task 2, host 10.0.0.1) was killed by signal 9");
}

TEST_F(CollectiveJobTest, AShutdownAfterAnErrorIsNoEndOfTheJob) {
  Run(1);
  Say("0", collective::Failure{"no memory", 1}, 0, 1);
  EXPECT_TRUE(IsClosed(Say("0", collective::Shutdown{}, 0, 1)));
  EXPECT_EQ(finished, std::nullopt);
  PassTime(kSilentFailureGrace);
  EXPECT_THAT(broken, SizeIs(1));
}

TEST_F(CollectiveJobTest, WhoHasLeftCannotJoinAgain) {
  Run(2);
  Leave(0, 2);
  Come(0);
  EXPECT_THAT(broken.at(0).story,
              HasSubstr("wants to join again after leaving: a job has only one communicator"));
}

TEST_F(CollectiveJobTest, AShutdownThatComesAfterTheEndOfItsProcessIsOne) {
  Run(2);
  LoseLine(1);
  Leave(1, 2);
  PassTime(kShutdownGrace);
  EXPECT_THAT(broken, IsEmpty());
  Leave(0, 2);
  EXPECT_EQ(finished, "");
}

TEST_F(CollectiveJobTest, AnErrorPortThatCannotBeReachedIsNoFailure) {
  Start(2);
  Come(0);
  Come(1);
  LoseLine(0);
  PassTime(kShutdownGrace);
  EXPECT_THAT(broken, IsEmpty());
}

TEST_F(CollectiveJobTest, AnErrorPortIsCalledAsSoonAsItsWorkerHasCome) {
  Start(2);
  Come(0);
  ASSERT_THAT(lines, SizeIs(1));
  const ConnectionId line = lines.at(9100);
  job->Connected(line);
  EXPECT_EQ(received[line], "");
  Come(1);
  EXPECT_EQ(lines.at(9100), line) << "it is called twice, and listens once";
  job->Connected(lines.at(9101));
  LoseLine(0);
  PassTime(kShutdownGrace);
  EXPECT_THAT(broken.at(0).story, HasSubstr("rank 0 (task 0, host 10.0.0.1) was lost"));
  EXPECT_THAT(Told(), ElementsAre(1));
}

TEST_F(CollectiveJobTest, AnErrorPortThatCouldNotBeReachedIsCalledOnceMoreWhenAllHaveCome) {
  Start(2);
  Come(0);
  const ConnectionId line = lines.at(9100);
  LoseLine(0);
  EXPECT_THAT(ranks, IsEmpty());
  Come(1);
  EXPECT_NE(lines.at(9100), line);
  EXPECT_THAT(ranks, SizeIs(2));
}

TEST_F(CollectiveJobTest, WithAWorkerThatLeavesBeforeAllHaveComeGoesTheConnectionToItsErrorPort) {
  Start(2);
  const ConnectionId first = Come(0);
  const ConnectionId line = lines.at(9100);
  job->Connected(line);
  Close(first);
  EXPECT_TRUE(IsClosed(line));
  EXPECT_THAT(Told(), IsEmpty());
  Come(0);
  const ConnectionId second = lines.at(9100);
  Come(0);
  EXPECT_TRUE(IsClosed(second));
  EXPECT_FALSE(IsClosed(lines.at(9100)));
}

TEST_F(CollectiveJobTest, AWorkerWithoutAnErrorPortIsNotCalled) {
  Start(1);
  Say("0", collective::Start{9000, 0});
  EXPECT_THAT(lines, IsEmpty());
  EXPECT_TRUE(job->linked());
}

TEST_F(CollectiveJobTest, TheLauncherKnowsBest) {
  Run(3);
  Fail("0", "was killed by signal 9");
  EXPECT_THAT(Told(), ElementsAre(1, 2));
  EXPECT_EQ(broken.at(0).story, "rank 0 (task 0, host 10.0.0.1) was killed by signal 9");
  EXPECT_THAT(broken, SizeIs(1));
}

TEST_F(CollectiveJobTest, WhoHasShutDownBreaksNothing) {
  Run(2);
  Leave(0, 2);
  Fail("0", "exited with code 1");
  EXPECT_THAT(broken, IsEmpty());
  EXPECT_EQ(job->GoneAfter("0"), 0);
  EXPECT_EQ(job->GoneAfter("1"), std::nullopt);
}

TEST_F(CollectiveJobTest, AfterAFailureAllMayStartAnewInPlace) {
  Run(2);
  Fail("1", "was killed");
  EXPECT_FALSE(job->linked());
  // A survivor's late shutdown is not counted.
  EXPECT_TRUE(IsClosed(Say("0", collective::Shutdown{}, 0, 2)));
  lines.clear();
  Come(1);
  const ConnectionId first = Come(0);
  EXPECT_TRUE(job->linked());
  EXPECT_EQ(NextPeerOf(first)->rank, 1);
  Leave(0, 2);
  Leave(1, 2);
  EXPECT_EQ(finished, "");
}

TEST_F(CollectiveJobTest, WhoLeftTheRunBeforeIsNotCountedInThisOne) {
  Run(2);
  const ConnectionId leaving = Say("0", collective::Shutdown{}, 0, 2);
  Fail("1", "was killed");
  lines.clear();
  Come(0);
  Come(1);
  const ConnectionId first = Say("0", collective::Shutdown{}, 0, 2);
  Say("1", collective::Shutdown{}, 1, 2);
  Close(leaving);
  Close(first);
  EXPECT_EQ(finished, std::nullopt);  // one connection is still open
}

TEST_F(CollectiveJobTest, ATaskThatStartsAgainWhileTheOthersRunIsAFailure) {
  Run(3);
  const ConnectionId again = Come(1);
  EXPECT_THAT(broken.at(0).story, HasSubstr("was restarted while the others were running"));
  EXPECT_THAT(Told(), ElementsAre(0, 2));
  EXPECT_FALSE(IsClosed(again));
  Come(0);
  Come(2);
  EXPECT_TRUE(job->linked());
}

TEST_F(CollectiveJobTest, AnUnknownPeerBreaksNoRunningJob) {
  Run(2);
  EXPECT_TRUE(IsClosed(Come(7)));
  EXPECT_THAT(broken, IsEmpty());
  EXPECT_THAT(warnings.at(0), HasSubstr("all 2 workers of the job have already joined"));
}

TEST_F(CollectiveJobTest, AnotherWorldIsRefused) {
  Start(2);
  EXPECT_TRUE(IsClosed(Say("0", collective::Start{1, 2}, -1, 5)));
  EXPECT_THAT(warnings.at(0), HasSubstr("it expects 5 workers, but this job has 2"));
}

TEST_F(CollectiveJobTest, TheTwoDialectsDoNotMix) {
  namespace classic = wire::classic;
  const std::string start = classic::EncodeMagic() + classic::Encode(classic::Hello{-1, -1, "1"});
  Start(2);
  Come(0);
  EXPECT_TRUE(IsClosed(Connect(start)));
  EXPECT_THAT(warnings.at(0),
              HasSubstr("speaks the classic dialect (rabit, XGBoost up to 2.0), but the other workers"));
  Start(2);
  const ConnectionId worker = Connect(start);
  EXPECT_TRUE(IsClosed(Come(0)));
  EXPECT_THAT(warnings.at(1), HasSubstr("speaks the collective dialect (XGBoost 2.1 and later), but"));
  // Once the last worker of the other dialect has left, workers of this dialect are accepted.
  Close(worker);
  Come(0);
  Come(1);
  EXPECT_TRUE(job->linked());
}

TEST_F(CollectiveJobTest, APendingConnectionOfTheOtherDialectIsRefusedWhenTheFirstWorkerComes) {
  Start(2);
  const ConnectionId pending = Connect(wire::classic::EncodeMagic() + wire::Writer().Int(-1).Int(-1).Take());
  EXPECT_FALSE(IsClosed(pending));
  Come(0);
  EXPECT_TRUE(IsClosed(pending));
  EXPECT_THAT(warnings.at(0), HasSubstr("speaks the classic dialect"));
}

TEST_F(CollectiveJobTest, WhoIsMissingIsNamedWhenTimeIsUp) {
  Start(3, SortBy::kHost, milliseconds(5000));
  Come(1);
  PassTime(milliseconds(5000));
  EXPECT_EQ(finished,
            "workers are missing after 5 s: 1 of 3 workers joined: task 1 (10.0.0.1); missing: task 0, 2");
}

TEST_F(CollectiveJobTest, AJobEndsOnlyOnce) {
  Start(3, SortBy::kHost, milliseconds(5000));
  const ConnectionId only = Come(1);
  PassTime(milliseconds(5000));
  ASSERT_TRUE(finished);
  finished.reset();
  Close(only);
  PassTime(milliseconds(5000));
  EXPECT_EQ(finished, std::nullopt);
  EXPECT_TRUE(job->finished());
}

TEST_F(CollectiveJobTest, ARunningJobHasNoTimeLimit) {
  Start(1, SortBy::kHost, milliseconds(5000));
  Come(0);
  PassTime(milliseconds(50000));
  EXPECT_EQ(finished, std::nullopt);
}

TEST_F(CollectiveJobTest, AnotherTrackerTakesTheJobOver) {
  Run(3);
  Leave(1, 3);
  const std::vector<Note> written = notes;
  Start(3);
  job->TakeOver(written, now);
  EXPECT_TRUE(job->linked());
  Leave(0, 3);
  Leave(2, 3);
  EXPECT_EQ(finished, "");
}

TEST_F(CollectiveJobTest, IsTakenOverThoughAWorkerOfTheOtherDialectHadComeAndGoneBefore) {
  namespace classic = wire::classic;
  Start(2);
  const ConnectionId other = Connect(classic::EncodeMagic() + classic::Encode(classic::Hello{1, -1, "1"}));
  Close(other);
  Come(0);
  Come(1);
  const std::vector<Note> written = notes;
  EXPECT_EQ(written.front().kind, Note::Kind::kWorld);
  Start(2);
  job->TakeOver(written, now);
  EXPECT_TRUE(job->linked());
  Leave(0, 2);
  Leave(1, 2);
  EXPECT_EQ(finished, "");
}

TEST_F(CollectiveJobTest, ABrokenJobIsTakenOverAsOne) {
  Run(2);
  Fail("0", "was killed");
  const std::vector<Note> written = notes;
  Start(2);
  job->TakeOver(written, now);
  EXPECT_FALSE(job->linked());
  Come(0);
  Come(1);
  EXPECT_TRUE(job->linked());
}

}  // namespace
}  // namespace warren::tracker
