// The generations of an elastic job, message by message and in simulations, without sockets or clocks.
#include "tracker/generations.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/tracker/driven_job.h"
#include "wire/collective.h"
#include "wire/membership.h"

namespace warren::tracker {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::GenerationMessage;
using wire::GenerationWord;
using wire::MemberWord;

/// An elastic job, its workers, and the messages that they have received.
class Elastic : public DrivenJob {
 public:
  Elastic(int min_workers, int max_workers, std::chrono::milliseconds replace_within = 30s,
          std::chrono::milliseconds timeout = 0ms) {
    options_ = {max_workers, SortBy::kTask, true, timeout};
    options_.elastic = {min_workers, max_workers, replace_within, timeout};
    options_.takes_notes = true;
    job.emplace(options_, now);
  }
  ~Elastic() { EXPECT_THAT(broken, IsEmpty()) << "a generation's end is not the job's"; }
  Elastic(const Elastic&) = delete;
  Elastic& operator=(const Elastic&) = delete;

  ConnectionId Come(const std::string& task) { return Begin(MemberWord::kCome, task); }
  /// Reconnects a worker that was a member of this generation.
  ConnectionId Return(const std::string& task, int generation, MemberWord word = MemberWord::kStay) {
    return Begin(word, wire::TaskInGeneration(task, generation));
  }
  ConnectionId Begin(MemberWord word, const std::string& first) {
    const ConnectionId id = Connect(wire::Writer().Int(wire::kMembershipMagic).Take());
    Say(id, word, first);
    return id;
  }
  /// Replaces the tracker with a new one, which takes the job over from the notes.
  void Restart() {
    job.emplace(options_, now);
    received.clear();
    job->TakeOver(WrittenNotes(), now);
    Collect();
  }
  void Say(ConnectionId worker, MemberWord word, const std::string& task = {}) {
    // A message may arrive in several pieces.
    const std::string bytes = Encode(wire::MemberMessage{word, task});
    DrivenJob::Say(worker, bytes.substr(0, 5));
    DrivenJob::Say(worker, bytes.substr(5));
  }
  void Expect(int workers) {
    job->Expect(workers, now);
    Collect();
  }
  void WaitAnew() {
    job->WaitAnew(now);
    Collect();
  }
  void Wait(std::chrono::milliseconds time) {
    const TimePoint end = now + time;
    for (auto next = job->NextDeadline(); next && *next <= end; next = job->NextDeadline()) {
      PassTime(std::max(now, *next) - now);
      if (job->NextDeadline() == next) break;  // an unchanged deadline would never end the loop
    }
    now = end;
  }
  /// Sends the hello and start of XGBoost for this task, on a new connection.
  ConnectionId Join(const std::string& task) {
    return Connect(wire::Writer().Int(wire::kMagic).Take() +
                   wire::collective::Encode(wire::collective::Hello{-1, -1, task}) +
                   wire::collective::Encode(wire::collective::Start{4000, 0}));
  }

  /// The messages that the worker has received since the last call.
  std::vector<GenerationMessage> Heard(ConnectionId worker) {
    wire::Reader reader;
    reader.Append(std::exchange(received[worker], {}));
    std::vector<GenerationMessage> found;
    while (auto message = wire::NextGenerationMessage(reader)) found.push_back(*message);
    return found;
  }
  GenerationMessage HeardOne(ConnectionId worker) {
    const auto found = Heard(worker);
    if (found.size() != 1) ADD_FAILURE() << "worker " << worker << " heard " << found.size() << " messages";
    return found.empty() ? GenerationMessage{} : found.back();
  }

 private:
  JobOptions options_;
};

TEST(Generations, FormWhenAllHaveCome) {
  Elastic job(1, 3);
  const ConnectionId a = job.Come("0"), b = job.Come("1");
  EXPECT_THAT(job.Heard(a), IsEmpty());
  const ConnectionId c = job.Come("2");
  for (const ConnectionId one : {a, b, c}) {
    const auto told = job.HeardOne(one);
    EXPECT_EQ(told.word, GenerationWord::kFormed);
    EXPECT_EQ(told.generation, 1);
    EXPECT_EQ(told.size, 3);
  }
}

TEST(Generations, FormWithoutThoseThatAreLateIfThereAreEnough) {
  Elastic job(2, 3);
  const ConnectionId a = job.Come("0");
  job.Wait(100s);
  EXPECT_THAT(job.Heard(a), IsEmpty());
  const ConnectionId b = job.Come("1");
  EXPECT_EQ(job.HeardOne(b).size, 2);
  EXPECT_EQ(job.HeardOne(a).size, 2);
}

TEST(Generations, GoOnWithTheProcessThatReplacesALostOne) {
  Elastic job(1, 2);
  const ConnectionId a = job.Come("0"), b = job.Come("1");
  job.Heard(a), job.Heard(b);
  job.Close(b);
  const auto told = job.HeardOne(a);
  EXPECT_EQ(told.word, GenerationWord::kBroken);
  EXPECT_THAT(told.story, HasSubstr("task 1 (host 10.0.0.1) was lost"));
  job.Say(a, MemberWord::kCome);
  EXPECT_THAT(job.Heard(a), IsEmpty());  // a replacement may still arrive
  job.Wait(2s);
  const ConnectionId c = job.Come("1");
  EXPECT_EQ(job.HeardOne(c).generation, 2);
  EXPECT_EQ(job.HeardOne(a).size, 2);
  EXPECT_THAT(job.log, Contains("generation 2 begins with 2 workers (task 0, 1), 2.0 s after task 1 "
                                "(host 10.0.0.1) was lost"));
}

TEST(Generations, SayWhyTheOneBeforeHasEnded) {
  Elastic job(1, 3, 0s);
  job.Expect(2);
  const ConnectionId a = job.Come("0"), b = job.Come("1");
  job.Join("0@1"), job.Join("1@1");
  job.Wait(3s);
  const ConnectionId c = job.Come("2");
  job.Wait(1s);
  for (const ConnectionId one : {a, b}) job.Say(one, MemberWord::kCome);
  for (const char* task : {"0@2", "1@2", "2@2"}) job.Join(task);
  job.Wait(5s);
  job.Say(b, MemberWord::kCome);
  job.Say(a, MemberWord::kLeave);
  job.Wait(2s);
  job.Say(c, MemberWord::kCome);
  ASSERT_THAT(job.begun, SizeIs(3));
  const std::vector<std::string> texts = {
      "generation 1 begins with 2 workers (task 0, 1)",
      "generation 2 begins with 3 workers (task 0, 1, 2), 1.0 s after task 2 came",
      "generation 3 begins with 2 workers (task 1, 2), 2.0 s after task 0 left"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(job.begun[i].number, static_cast<int>(i) + 1);
    EXPECT_EQ(job.begun[i].text, texts[i]);
  }
  EXPECT_EQ(job.begun[1].seconds, 1);
  EXPECT_EQ(job.begun[2].seconds, 2);
}

TEST(Generations, GoOnWithoutALostWorkerWhenNoOtherComesInTime) {
  Elastic job(1, 3, 5s);
  const ConnectionId a = job.Come("0"), b = job.Come("1"), c = job.Come("2");
  for (const ConnectionId one : {a, b, c}) job.Heard(one);
  job.Close(c);
  job.Say(a, MemberWord::kCome);
  job.Say(b, MemberWord::kCome);
  job.Heard(a), job.Heard(b);
  job.Wait(4s);
  EXPECT_THAT(job.Heard(a), IsEmpty());
  job.Wait(1s);
  EXPECT_EQ(job.HeardOne(a).size, 2);
}

TEST(Generations, DoNotWaitForAWorkerThatTheLauncherDoesNotExpect) {
  Elastic job(1, 2);
  const ConnectionId a = job.Come("0"), b = job.Come("1");
  job.Heard(a), job.Heard(b);
  job.Fail("1", "was killed by signal 9 (SIGKILL)");
  EXPECT_THAT(job.HeardOne(a).story, HasSubstr("killed by signal 9"));
  job.Say(a, MemberWord::kCome);
  job.Expect(1);
  EXPECT_EQ(job.HeardOne(a).size, 1);
}

TEST(Generations, WaitForNoMoreThanTheOneBeforeHadWithoutALauncher) {
  Elastic job(1, 3, 60s);
  const ConnectionId a = job.Come("0"), b = job.Come("1");
  job.Wait(60s);
  EXPECT_EQ(job.HeardOne(a).size, 2);
  job.Heard(b);
  job.Close(b);
  job.Say(a, MemberWord::kCome);
  job.Heard(a);
  const ConnectionId again = job.Come("1");  // the third worker has never arrived
  EXPECT_EQ(job.HeardOne(a).size, 2);
  EXPECT_EQ(job.HeardOne(again).generation, 2);
}

TEST(Generations, EndTogetherForAWorkerThatComesLater) {
  Elastic job(1, 3, 0s);
  job.Expect(1);
  const ConnectionId a = job.Come("0");
  EXPECT_EQ(job.HeardOne(a).generation, 1);
  const ConnectionId b = job.Come("1");
  EXPECT_EQ(job.HeardOne(a).word, GenerationWord::kChange);
  EXPECT_THAT(job.Heard(b), IsEmpty());
  job.Say(a, MemberWord::kCome);
  EXPECT_EQ(job.HeardOne(a).generation, 2);
  EXPECT_EQ(job.HeardOne(b).size, 2);
}

TEST(Generations, AreNotBrokenByAWorkerThatLeavesWithTheOthers) {
  Elastic job(1, 2, 0s);
  const ConnectionId a = job.Come("0");
  const ConnectionId b = job.Come("1");
  job.Say(a, MemberWord::kCome);
  job.Heard(a), job.Heard(b);
  job.Join("0@2"), job.Join("1@2");
  job.Say(a, MemberWord::kLeave);
  EXPECT_THAT(job.closed, Contains(a));
  EXPECT_THAT(job.Heard(b), IsEmpty());
  job.Say(b, MemberWord::kCome);
  EXPECT_EQ(job.HeardOne(b).size, 1);
}

TEST(Generations, TakeTheNewProcessOfATaskWhoseOldOneIsNotKnownToBeLost) {
  Elastic job(1, 2);
  const ConnectionId a = job.Come("0"), b = job.Come("1");
  job.Heard(a), job.Heard(b);
  const ConnectionId again = job.Come("1");
  EXPECT_THAT(job.HeardOne(a).story, HasSubstr("task 1 (host 10.0.0.1) was started again"));
  job.Say(a, MemberWord::kCome);
  EXPECT_EQ(job.HeardOne(again).generation, 2);
}

TEST(Generations, GiveUpMembersThatDoNotLeaveABrokenOne) {
  Elastic job(1, 3, 1s);
  const ConnectionId a = job.Come("0"), b = job.Come("1"), c = job.Come("2");
  for (const ConnectionId one : {a, b, c}) job.Heard(one);
  job.Close(c);
  job.Say(a, MemberWord::kCome);
  job.Wait(kLeavePatience - 1s);
  job.Heard(a);
  EXPECT_THAT(job.Heard(b), SizeIs(1));
  job.Wait(2s);
  EXPECT_EQ(job.HeardOne(a).size, 1);
  job.Say(b, MemberWord::kCome);  // b was given up, and is now treated like a new worker
  EXPECT_EQ(job.HeardOne(a).word, GenerationWord::kChange);
}

TEST(Generations, GiveUpAMemberThatDoesNotLeaveAnUnbrokenOneWithTheOthers) {
  Elastic job(1, 3, 0s);
  const ConnectionId a = job.Come("0"), b = job.Come("1"), c = job.Come("2");
  for (const char* task : {"0@1", "1@1", "2@1"}) job.Join(task);
  for (const ConnectionId one : {a, b, c}) job.Heard(one);
  for (const ConnectionId one : {a, b})
    job.Say(one, MemberWord::kCome);  // the network of task 2's host fails
  job.Wait(kLeaveTogether - 1s);
  EXPECT_THAT(job.Heard(c), IsEmpty());
  job.Wait(1s);
  EXPECT_THAT(job.HeardOne(c).story,
              HasSubstr("task 2 (host 10.0.0.1) did not leave generation 1 with the others"));
  job.Wait(kLeavePatience - 1s);
  EXPECT_THAT(job.Heard(a), IsEmpty());
  job.Wait(1s);
  EXPECT_EQ(job.HeardOne(a).size, 2);
  EXPECT_EQ(job.HeardOne(b).generation, 2);
}

TEST(Generations, TellGivenUpMembersThatTheWorkIsDone) {
  Elastic job(1, 3, 1s);
  const ConnectionId a = job.Come("0"), b = job.Come("1"), c = job.Come("2");
  job.Close(c);
  job.Say(a, MemberWord::kCome);
  job.Wait(kLeavePatience + 1s);
  job.Heard(b);
  job.Say(a, MemberWord::kDone);
  EXPECT_EQ(job.HeardOne(b).word, GenerationWord::kOver);
}

TEST(Generations, BeginWithAllWhateverThePatienceForReplacements) {
  Elastic job(1, 2, 0s);
  const ConnectionId a = job.Come("0");
  job.Wait(kLeavePatience - 1s);
  EXPECT_THAT(job.Heard(a), IsEmpty());
  job.Wait(1s);
  EXPECT_EQ(job.HeardOne(a).size, 1);
}

TEST(Generations, EndWithTheWorkOfTheJob) {
  Elastic job(1, 2, 0s);
  job.Expect(1);
  const ConnectionId a = job.Come("0");
  job.Say(a, MemberWord::kDone);
  const ConnectionId late = job.Come("1");
  EXPECT_EQ(job.Heard(late).back().word, GenerationWord::kOver);
  EXPECT_FALSE(job.finished);
  job.Close(a);
  EXPECT_EQ(job.finished, "");
  const ConnectionId later = job.Come("2");
  EXPECT_EQ(job.HeardOne(later).word, GenerationWord::kOver);
}

TEST(Generations, GoOnWithWorkersThatComeAgainAfterTheWorkWasDone) {
  Elastic job(1, 2);
  const ConnectionId a = job.Come("0"), b = job.Come("1");
  job.Heard(a), job.Heard(b);
  job.Join("0@1"), job.Join("1@1");
  job.Say(a, MemberWord::kDone);
  job.Say(a, MemberWord::kCome);  // before the other worker has reported that it is done
  job.Say(b, MemberWord::kDone);
  EXPECT_THAT(job.Heard(a), IsEmpty());
  job.Say(b, MemberWord::kCome);
  EXPECT_EQ(job.HeardOne(a).generation, 2);
  EXPECT_EQ(job.HeardOne(b).size, 2);
  for (const ConnectionId one : {a, b}) job.Say(one, MemberWord::kDone);
  job.Close(b);  // its process ends
  job.Say(a, MemberWord::kCome);
  job.Expect(1);
  EXPECT_EQ(job.HeardOne(a).size, 1);
  EXPECT_EQ(job.finished, std::nullopt);
  job.Say(a, MemberWord::kDone);
  job.Close(a);
  EXPECT_EQ(job.finished, "");
  EXPECT_THAT(job.done, ElementsAre(true, false, true, false, true));
}

TEST(Generations, ChangeForAWorkerThatTakesTheWorkUpLaterThanOthers) {
  Elastic job(1, 2);
  const ConnectionId a = job.Come("0"), b = job.Come("1");
  job.Join("0@1"), job.Join("1@1");
  for (const ConnectionId one : {a, b}) job.Say(one, MemberWord::kDone);
  job.Expect(1);
  job.Say(b, MemberWord::kCome);
  EXPECT_EQ(job.Heard(b).back().generation, 2);
  job.Say(a, MemberWord::kCome);
  EXPECT_EQ(job.HeardOne(b).word, GenerationWord::kChange);
}

TEST(Generations, EndTheJobIfTooFewComeInTime) {
  Elastic job(2, 3, 1s, 10s);
  job.Come("5");
  job.Wait(9s);
  EXPECT_FALSE(job.finished);
  job.Wait(1s);
  EXPECT_THAT(
      *job.finished,
      HasSubstr("workers are missing after 10 s: 1 worker waits (task 5), expected 3, and at least 2"));
}

TEST(Generations, CountTheTimeForMissingWorkersFromWhenTheLastMemberLeft) {
  Elastic job(1, 2, 0s, 10s);
  job.Expect(1);
  const ConnectionId a = job.Come("0");
  job.Join("0@1");
  job.Wait(60s);
  job.Say(a, MemberWord::kLeave);
  job.Wait(9s);
  EXPECT_FALSE(job.finished);
  job.Wait(1s);
  EXPECT_THAT(*job.finished, HasSubstr("workers are missing after 10 s"));
}

TEST(Generations, HaveTheirTimeLimitRestartedWhileTheJobIsQueued) {
  Elastic job(1, 2, 0s, 10s);
  job.Wait(9s);
  job.WaitAnew();
  job.Wait(9s);
  EXPECT_FALSE(job.finished);
  job.Wait(1s);
  EXPECT_TRUE(job.finished);
}

TEST(Generations, BeginWithEnoughWorkersEvenIfTheTimeIsShorterThanThePatience) {
  Elastic job(2, 4, 30s, 10s);
  job.Come("0");
  job.Wait(5s);
  job.Come("1");
  job.Wait(10s);
  job.PassTime(0s);  // the timer still has the time that was set while one worker waited
  EXPECT_FALSE(job.finished);
  job.Wait(40s);
  EXPECT_FALSE(job.finished);
  job.Expect(1);
}

TEST(Generations, RefuseWorkersOfAnotherOneAndThoseWithoutAny) {
  Elastic job(1, 2, 0s);
  job.Expect(1);
  job.Join("0");
  EXPECT_THAT(job.log.back(), HasSubstr("it names no generation"));
  const ConnectionId a = job.Come("0");
  job.Come("1");
  job.Say(a, MemberWord::kCome);
  job.Join("0@1");
  EXPECT_THAT(job.log.back(),
              HasSubstr("it belongs to generation 1 of this job, and generation 2 has begun"));
  job.Join("0@2");
  job.Join("1@2");
  EXPECT_EQ(job.ranks.size(), 2u);
  EXPECT_EQ(job.ranks["1"], 1);
}

TEST(Generations, DoNotLetMembersWaitForOneThatIsLostBeforeItJoins) {
  Elastic job(1, 3);
  const ConnectionId a = job.Come("0"), b = job.Come("1"), c = job.Come("2");
  const ConnectionId joining = job.Join("0@1");
  job.Close(c);
  EXPECT_THAT(job.closed, Contains(joining));
  EXPECT_EQ(job.Heard(a).back().word, GenerationWord::kBroken);
  const ConnectionId late = job.Join("1@1");
  EXPECT_THAT(job.closed, Contains(late));
  EXPECT_THAT(
      job.log.back(),
      HasSubstr("it belongs to generation 1 of this job, and its workers have not come together yet"));
  job.Say(a, MemberWord::kCome);
  job.Say(b, MemberWord::kCome);
  job.Expect(2);
  job.Join("0@2");
  job.Join("1@2");
  EXPECT_EQ(job.ranks.size(), 2u);
}

TEST(Generations, DoNotLetMembersWaitForOneThatLeavesBeforeItJoins) {
  for (const MemberWord word : {MemberWord::kLeave, MemberWord::kCome}) {
    Elastic job(1, 2, 0s);
    const ConnectionId a = job.Come("0"), b = job.Come("1");
    const ConnectionId joining = job.Join("0@1");
    job.Heard(a);
    job.Say(b, word);
    EXPECT_THAT(job.closed, Contains(joining));
    EXPECT_THAT(job.HeardOne(a).story, HasSubstr("before all had joined"));
    job.Say(a, MemberWord::kCome);
    EXPECT_EQ(job.HeardOne(a).generation, 2);
  }
}

TEST(Generations, RefuseMessagesThatNoMemberSends) {
  Elastic job(1, 2, 0s);
  const ConnectionId silent = job.Come("");
  EXPECT_THAT(job.closed, Contains(silent));
  EXPECT_THAT(job.log.back(), HasSubstr("does not begin with its task id"));
  const ConnectionId odd = job.Come("3");
  job.Say(odd, static_cast<MemberWord>(9));
  EXPECT_THAT(job.log, Contains(HasSubstr("unknown word, 9")));
}

TEST(Generations, AreRefusedByAJobWithAFixedNumberOfWorkers) {
  DrivenJob driven;
  driven.job.emplace(JobOptions{2, SortBy::kTask, true, 0ms}, TimePoint());
  driven.Connect(wire::Writer().Int(wire::kMembershipMagic).Take());
  EXPECT_THAT(
      driven.log,
      Contains(HasSubstr("this job has a fixed number of workers: start it with --num-workers MIN:MAX")));
}

TEST(Generations, KeepAPlaceForAMemberWhoseConnectionBroke) {
  Elastic job(1, 2);
  const ConnectionId a = job.Come("0"), b = job.Come("1");
  job.Heard(a);
  const ConnectionId back = job.Return("1", 1);  // the loss of the old connection has not been noticed
  EXPECT_THAT(job.closed, Contains(b));
  EXPECT_THAT(job.Heard(a), IsEmpty());
  EXPECT_THAT(job.Heard(back), IsEmpty());
  job.Close(back);
  EXPECT_EQ(job.HeardOne(a).word, GenerationWord::kBroken);
  const ConnectionId late = job.Return("1", 1);
  const auto told = job.HeardOne(late);
  EXPECT_EQ(told.word, GenerationWord::kBroken);
  EXPECT_EQ(told.generation, 1);
}

TEST(Generations, TellWorkersThatTheirPlaceOrTheJobIsLost) {
  Elastic job(2, 2, 1s, 10s);
  const ConnectionId a = job.Come("0");
  const ConnectionId again = job.Come("0");
  EXPECT_EQ(job.HeardOne(a).word, GenerationWord::kFailed);
  const ConnectionId old = job.Return("0", 1);
  EXPECT_EQ(job.HeardOne(old).word, GenerationWord::kFailed);
  EXPECT_THAT(job.closed, Contains(old));
  EXPECT_THAT(job.Heard(again), IsEmpty());
  job.Wait(10s);
  const auto told = job.HeardOne(again);
  EXPECT_EQ(told.word, GenerationWord::kFailed);
  EXPECT_THAT(told.story, HasSubstr("workers are missing after 10 s"));
}

/// Lets two workers join a generation and then restarts the tracker.
void JoinAndRestart(Elastic& job) {
  job.Come("0"), job.Come("1");
  job.Join("0@1"), job.Join("1@1");
  job.Restart();
}

TEST(Generations, AreKeptByATrackerThatTakesOver) {
  Elastic job(1, 2);
  JoinAndRestart(job);
  const ConnectionId a = job.Return("0", 1), b = job.Return("1", 1);
  EXPECT_THAT(job.Heard(a), IsEmpty());
  EXPECT_THAT(job.Heard(b), IsEmpty());
  job.Wait(100s);
  EXPECT_THAT(job.Heard(a), IsEmpty());
  job.Close(b);
  const auto told = job.HeardOne(a);
  EXPECT_EQ(told.word, GenerationWord::kBroken);
  EXPECT_EQ(told.generation, 1);
  job.Say(a, MemberWord::kCome);
  const ConnectionId c = job.Come("1");
  EXPECT_EQ(job.HeardOne(c).generation, 2);
  EXPECT_EQ(job.HeardOne(a).size, 2);
  job.Join("0@1");
  EXPECT_THAT(job.log.back(),
              HasSubstr("it belongs to generation 1 of this job, and generation 2 has begun"));
}

TEST(Generations, OfRabitsDialectAreNotBrokenAfterATakeOverByAMemberThatLeaves) {
  Elastic job(1, 2);
  job.Come("0"), job.Come("1");
  job.notes.push_back({.kind = Note::Kind::kWorld, .rank = 2});
  for (const int rank : {0, 1}) {
    job.notes.push_back({.kind = Note::Kind::kAssigned,
                         .rank = rank,
                         .task_id = fmt::format("{}@1", rank),
                         .host = "10.0.0.1"});
  }
  job.notes.push_back({.kind = Note::Kind::kListens, .rank = 0, .port = 4000, .peers = {1}});
  job.notes.push_back({.kind = Note::Kind::kLinked, .rank = 1, .peers = {0}});
  job.notes.push_back({.kind = Note::Kind::kListens, .rank = 1, .port = 4001});
  job.Restart();
  const ConnectionId a = job.Return("0", 1), b = job.Return("1", 1);
  job.Say(a, MemberWord::kLeave);
  EXPECT_THAT(job.Heard(b), IsEmpty());
}

TEST(Generations, EndByTheLossOfAMemberWhileTheTrackerIsAway) {
  Elastic job(1, 2, 0s);
  JoinAndRestart(job);
  const ConnectionId a = job.Return("0", 1);
  job.Wait(kLeavePatience - 1s);
  EXPECT_THAT(job.Heard(a), IsEmpty());
  job.Wait(1s);
  EXPECT_THAT(job.HeardOne(a).story, HasSubstr("task 1 (host 10.0.0.1) had not returned"));
  job.Say(a, MemberWord::kCome);
  EXPECT_EQ(job.HeardOne(a).generation, 2);
}

TEST(Generations, EndAtOnceForTheNewProcessOfAMemberThatIsAway) {
  Elastic job(1, 2);
  JoinAndRestart(job);
  const ConnectionId a = job.Return("0", 1), b = job.Come("1");
  EXPECT_EQ(job.HeardOne(a).word, GenerationWord::kBroken);
  job.Say(a, MemberWord::kCome);
  EXPECT_EQ(job.HeardOne(b).generation, 2);
}

TEST(Generations, ThatWereBrokenOrNotJoinedYetAreReplacedAfterATakeOver) {
  for (const bool have_joined : {false, true}) {
    Elastic job(1, 2);
    job.Come("0");
    const ConnectionId b = job.Come("1");
    job.Join("0@1");
    if (have_joined) job.Join("1@1"), job.Close(b);
    job.Restart();
    const ConnectionId a = job.Return("0", 1);
    EXPECT_EQ(job.HeardOne(a).word, GenerationWord::kBroken);
    const ConnectionId late = job.Join("0@1");
    EXPECT_EQ(!have_joined, std::count(job.closed.begin(), job.closed.end(), late) > 0);
    job.Say(a, MemberWord::kCome);
    const ConnectionId again = job.Come("1");
    EXPECT_EQ(job.HeardOne(again).generation, 2);
  }
}

TEST(Generations, ThatWereNotedInPartCannotBeJoined) {
  Elastic job(1, 2);
  job.Come("0"), job.Come("1");
  job.Join("0@1"), job.Join("1@1");
  ASSERT_EQ(job.notes.back().kind, Note::Kind::kMember);
  job.notes.pop_back();
  job.Restart();
  const ConnectionId late = job.Join("0@1");
  EXPECT_THAT(job.closed, Contains(late));
  EXPECT_EQ(job.HeardOne(job.Return("0", 1)).word, GenerationWord::kBroken);
}

TEST(Generations, TellMembersThatReturnOfAWorkerThatWaits) {
  Elastic job(1, 3, 0s);
  job.Expect(2);
  JoinAndRestart(job);
  const ConnectionId a = job.Return("0", 1), c = job.Come("2"), b = job.Return("1", 1);
  EXPECT_EQ(job.HeardOne(a).word, GenerationWord::kChange);
  EXPECT_EQ(job.HeardOne(b).word, GenerationWord::kChange);
  job.Say(a, MemberWord::kCome), job.Say(b, MemberWord::kCome);
  EXPECT_EQ(job.HeardOne(c).size, 3);
}

TEST(Generations, TakeTheirNumbersFromBeforeATakeOver) {
  Elastic job(1, 1);
  for (int number = 1; number <= 3; ++number) {
    const ConnectionId a = job.Come("0");
    EXPECT_EQ(job.Heard(a).back().generation, number);
    job.Restart();
  }
  const ConnectionId old = job.Return("0", 2);
  EXPECT_EQ(job.HeardOne(old).generation, 2);
  job.Say(old, MemberWord::kCome);
  EXPECT_THAT(job.Heard(old), IsEmpty());
  job.Wait(kLeavePatience);
  EXPECT_EQ(job.HeardOne(old).generation, 4);
}

TEST(Generations, EndWithTheWorkAlsoAfterATakeOver) {
  Elastic job(1, 2);
  job.Come("0");
  const ConnectionId b = job.Come("1");
  job.Join("0@1"), job.Join("1@1");
  job.Say(b, MemberWord::kDone);
  job.Restart();
  const ConnectionId c = job.Come("2"), given_up = job.Return("3", 1);
  EXPECT_EQ(job.HeardOne(c).word, GenerationWord::kOver);
  EXPECT_EQ(job.HeardOne(given_up).word, GenerationWord::kOver);
  job.Close(job.Return("0", 1, MemberWord::kDone));
  EXPECT_FALSE(job.finished);
  job.Wait(kLeavePatience);
  EXPECT_EQ(job.finished, "");
}

TEST(Generations, LearnOfTheEndOfTheWorkFromMembersThatReturn) {
  Elastic job(1, 2);
  JoinAndRestart(job);
  const ConnectionId a = job.Return("0", 1, MemberWord::kDone), b = job.Return("1", 1, MemberWord::kDone);
  job.Close(a), job.Close(b);
  EXPECT_EQ(job.finished, "");
}

TEST(Generations, GoOnAfterATakeOverWithWorkThatWasTakenUpAgain) {
  for (const bool is_noted : {false, true}) {
    Elastic job(1, 3);
    job.Expect(2);
    ConnectionId a = job.Come("0"), b = job.Come("1");
    job.Join("0@1"), job.Join("1@1");
    for (const ConnectionId one : {a, b}) job.Say(one, MemberWord::kDone);
    if (is_noted) {
      job.Expect(3);  // so that both wait for a third worker
      job.Say(a, MemberWord::kCome), job.Say(b, MemberWord::kCome);
    }
    job.Restart();
    const ConnectionId c = job.Come("2");
    // The tracker tells c that the work is done, unless it noted that the work was resumed.
    EXPECT_THAT(job.Heard(c), SizeIs(is_noted ? 0 : 1));
    job.Close(c);
    a = job.Return("0", 1, MemberWord::kDone), b = job.Return("1", 1, MemberWord::kDone);
    for (const ConnectionId one : {a, b}) job.Say(one, MemberWord::kCome);
    job.Expect(2);
    EXPECT_EQ(job.HeardOne(a).generation, 2);
    EXPECT_EQ(job.HeardOne(b).size, 2);
  }
}

TEST(Generations, RefuseNotesThatNoTrackerWrites) {
  JobOptions options{2, SortBy::kTask, true, 0ms};
  const Note first{.kind = Note::Kind::kGeneration, .rank = 1};
  const auto take_over = [&](const std::vector<Note>& notes) { Job(options, {}).TakeOver(notes, {}); };
  EXPECT_THROW(take_over({first}), std::invalid_argument);  // the job has a fixed number of workers
  options.elastic = {1, 2};
  take_over({first});
  EXPECT_THROW(take_over({first, first}), std::invalid_argument);
  EXPECT_THROW(take_over({{.kind = Note::Kind::kEntered, .task_id = "0"}}), std::invalid_argument);
  EXPECT_THROW(take_over({first, {.kind = Note::Kind::kEnded, .rank = 2}}), std::invalid_argument);
}

// Workers arrive, leave and are lost at random, sometimes without the tracker noticing, and trackers die.
// Nevertheless, each worker is told of generations in order, all members of a generation are told the same
// size, and once the faults stop, all workers are in one generation together.
TEST(GenerationsSimulation, AlwaysComeTogether) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    const auto chance = [&](int of) { return static_cast<int>(random() % static_cast<unsigned>(of)); };
    const int most = 1 + chance(5), least = 1 + chance(most);
    Elastic job(least, most, std::chrono::milliseconds(chance(3) * 500));
    struct Worker {
      ConnectionId connection = 0;
      int generation = 0;
      bool member = false;
      bool must_leave = false;
      std::string task;
    };
    std::vector<std::optional<Worker>> workers(static_cast<std::size_t>(most));
    std::map<int, std::pair<int, int>> seen;  // by generation: its size and the number of workers told of it
    int joined = 0;
    // Usually lets those members of a generation join it that have not been told to leave it.
    const auto join = [&](int generation) {
      if (chance(4) == 0) return;
      for (const auto& worker : workers) {
        if (worker && worker->generation == generation && worker->member && !worker->must_leave)
          job.Join(wire::TaskInGeneration(worker->task, generation));
      }
    };
    const auto listen = [&] {
      for (auto& worker : workers) {
        if (!worker) continue;
        for (const auto& message : job.Heard(worker->connection)) {
          if (message.word == GenerationWord::kFormed) {
            ASSERT_GT(message.generation, worker->generation) << "seed " << seed;
            ASSERT_FALSE(worker->member) << "seed " << seed;
            auto& [size, heard] = seen.try_emplace(message.generation, message.size, 0).first->second;
            ASSERT_EQ(size, message.size) << "seed " << seed;
            ASSERT_LE(++heard, size) << "seed " << seed;
            ASSERT_GE(size, least) << "seed " << seed;
            *worker = {worker->connection, message.generation, true, false, worker->task};
            for (const auto& other : workers) {
              if (other && other->generation == message.generation) joined += other->member ? 1 : 0;
            }
            if (joined == message.size) join(message.generation);
            joined = 0;
          } else if (message.generation == worker->generation) {
            worker->must_leave = true;
          }
        }
      }
    };
    const auto step = [&](bool may_disturb) {
      const auto place = static_cast<std::size_t>(chance(most));
      auto& worker = workers[place];
      if (!worker) {
        worker = Worker{job.Come(std::to_string(place)), 0, false, false, std::to_string(place)};
      } else if (worker->must_leave) {
        // The worker leaves its generation and waits for the next one.
        worker->member = worker->must_leave = false;
        job.Say(worker->connection, MemberWord::kCome);
      } else if (may_disturb && chance(4) == 0) {
        if (chance(2) == 0) job.Close(worker->connection);
        worker.reset();  // if its connection is not lost, the tracker notices when the next process arrives
      } else if (may_disturb && chance(8) == 0) {
        job.Restart();
        for (auto& one : workers) {
          if (!one || chance(6) == 0) {
            one.reset();
          } else if (one->member) {
            one->connection = job.Return(one->task, one->generation);
          } else {
            one->connection = job.Come(one->task);
          }
        }
      }
      job.Wait(std::chrono::milliseconds(chance(300)));
      listen();
    };
    for (int steps = 20 + chance(40); steps > 0; --steps) step(true);
    for (int steps = 0; steps < 100 * most; ++steps) step(false);
    job.Wait(100s);
    listen();
    for (int steps = 0; steps < 100 * most; ++steps) step(false);
    for (const auto& worker : workers) {
      ASSERT_TRUE(worker && worker->member) << "seed " << seed;
      ASSERT_EQ(worker->generation, workers[0]->generation) << "seed " << seed;
      ASSERT_EQ(seen[worker->generation].first, most) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace warren::tracker
