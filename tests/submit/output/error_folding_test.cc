// The choice between showing and folding the errors of a failing job, without losing any output.
#include "submit/output/error_folding.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "submit/output/error_lines.h"

namespace warren::submit {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string> kTraceback = {"Traceback (most recent call last):\n",
                                             "  File \"train.py\", line 3, in <module>\n", "    fail()\n",
                                             "ValueError: no column 7\n"};
const std::vector<std::string> kEcho = {
    "terminate called after throwing an instance of 'dmlc::Error'\n",
    "  what():  [12:00:00] /src/learner.cc:12: rank 0 on vm lost rank 1 at 10.0.0.1:4000\n"};

struct Folding {
  std::map<std::size_t, std::string> shown;
  std::vector<std::size_t> order;  ///< the processes whose output was shown, without consecutive repetitions
  ErrorFolding::TimePoint now{};
  ErrorFolding folding;

  explicit Folding(std::size_t processes = 4)
      : folding(processes, [this](std::size_t index, std::string_view piece) {
          shown[index] += piece;
          if (order.empty() || order.back() != index) order.push_back(index);
        }) {}

  void Say(std::size_t index, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) folding.Append(index, line, now);
  }
  void Wait(std::chrono::milliseconds time) {
    now += time;
    folding.Tick(now);
  }
};

std::string Joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line;
  return all;
}

std::string Label(std::size_t index) {
  return std::to_string(index);
}

TEST(BeginsError, KnowsTheFirstLinesOfErrors) {
  for (const char* line :
       {"Traceback (most recent call last):\n",
        "  + Exception Group Traceback (most recent call last):\n",
        " 50%|###  | 5/10Traceback (most recent call last):\r\n",
        "terminate called after throwing an instance of 'std::bad_alloc'\n",
        "terminate called without an active exception\n",
        "Fatal Python error: Segmentation fault\n",
        "[12:00:00] /build/src/data.cc:123: Check failed: n > 0 (0 vs. 0) : no rows\n",
        "[12:00:00] src/data.cc:123: Check failed: n > 0\n",
        "rank 0 on vm lost rank 1 at 10.0.0.1:4000: reset. Look at what it printed last.\n",
        "rank 12: RabitAllreduce: rank 12: rank 1, on the same host, has ended before it was done\n",
        "AssertError:must not be negative\n",
        "==4242==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n",
        "free(): invalid pointer\n",
        "train: main.cc:3: int main(): Assertion `a == b' failed.\n",
        "  File \"train.py\", line 2\n",
        "  File \"<string>\", line 1\r\n",
        "SyntaxError: Non-UTF-8 code starting with '\\xff' in file a.py\n",
        "/usr/bin/python3: can't open file '/tmp/train.py': [Errno 2] No such file or directory\n",
        "/usr/bin/python3: No module named train\n",
        "usage: train.py [-h]\n",
        "./train: error while loading shared libraries: librabit.so: cannot open shared object file\n",
        "bash: line 1: pyhton: command not found\n"}) {
    EXPECT_TRUE(BeginsError(line)) << line;
  }
  for (const char* line :
       {"[12:00:00] INFO: src/learner.cc:123: rounds\n",
        "[12:00:00] WARNING: src/gbm.cc:5: Check your data\n", "[0]\ttrain-rmse:0.3\n",
        "ranking 3 on vm: yes\n", "rank 3 is ready\n", "rank 3: 1000 rows\n", "rank 3 on vm: up\n",
        "rabit: allreduce: ring\n", "\n", "I/O error: none\n", "ValueError: told by a logger\n",
        "Check failed: x\n", "  File \"train.py\", line 3, in <module>\n", "  File \"train.py\", line\n",
        "File \"train.py\", line 3\n", "usage of memory: 3 GB\n",
        "WARNING: No module named cupy; going on without it\n"}) {
    EXPECT_FALSE(BeginsError(line)) << line;
  }
}

TEST(ContinuesError, KnowsWhatFollows) {
  for (const char* line :
       {"  File \"a.py\", line 3\n", "\n", "ValueError: x\n", "xgboost.core.XGBoostError: [12:00:00] y\n",
        "KeyboardInterrupt\n", "During handling of the above exception, another exception occurred:\n",
        "The above exception was the direct cause of the following exception:\n", "Stack trace:\n",
        "  [bt] (0) libxgboost.so(+0x1)\n", "Thread 0x00007f (most recent call first):\n"}) {
    EXPECT_TRUE(ContinuesError(line)) << line;
  }
  for (const char* line :
       {"[0]\ttrain-rmse:0.3\n", "going on without it\n", "3 rows\n", "row\n", "INFO: x\n"}) {
    EXPECT_FALSE(ContinuesError(line)) << line;
  }
}

TEST(WithoutNumbers, IsTheSameForAllRanks) {
  EXPECT_EQ(WithoutNumbers("rank 12 at 10.0.0.1:80 [0x7fA3+0x1]"), "rank # at #.#.#.#:# [#+#]");
  EXPECT_EQ(WithoutNumbers("0x"), "#");
  EXPECT_NE(WithoutNumbers("no file a"), WithoutNumbers("no file b"));
}

TEST(ErrorFolding, LinesWithoutAnErrorPassAtOnce) {
  Folding job;
  job.Say(2, {"loading\n", "half"});
  EXPECT_EQ(job.shown[2], "loading\nhalf");
  EXPECT_FALSE(job.folding.NextDeadline());
}

TEST(ErrorFolding, OnlyTheWordsOfTheFirstAreShown) {
  Folding job;
  job.Say(0, kEcho);
  job.Say(1, kTraceback);
  job.Say(3, kEcho);
  for (const std::size_t index : {1U, 0U, 3U}) job.folding.Ended(index, false);
  job.Wait(1min);
  EXPECT_THAT(job.shown, IsEmpty());
  const FoldedErrors folded = job.folding.Fold(1);
  EXPECT_THAT(folded.others, ElementsAre(0, 3));
  EXPECT_TRUE(folded.has_words);
  EXPECT_EQ(Describe(folded, 4, "workers", Label),
            "[0] [3] failed as a consequence (--show-all-errors shows their output)");
  job.folding.ShowHeld(1);
  EXPECT_THAT(job.shown, ElementsAre(std::pair(1, Joined(kTraceback))));
  job.folding.ShowAllHeld();
  EXPECT_EQ(job.shown.size(), 1U);
}

TEST(ErrorFolding, WhoeverIsFoundToBeTheFirstInTheEndIsShown) {
  for (const std::size_t culprit : {0U, 1U, 2U}) {
    Folding job;
    for (const std::size_t index : {2U, 1U, 0U})
      job.Say(index, {kTraceback[0], "ValueError: " + std::string(index + 1, 'x') + "\n"});
    job.folding.StopBegins(job.now + 1s);
    EXPECT_EQ(job.folding.Fold(culprit).first, culprit);
    job.folding.ShowHeld(culprit);
    EXPECT_THAT(job.order, ElementsAre(culprit));
  }
}

TEST(ErrorFolding, TheReasonIsShownIfTheFirstErrorOnlySaysThatARankWasLost) {
  for (const char* lost :
       {"rank 0 on vm lost rank 1 at 10.0.0.1:4000: reset. Look at what it printed last.\n",
        "rank 0: rank 1 was lost, as rank 2 has noticed\n",
        "rank 0: rank 1, on the same host, has ended before it was done\n"}) {
    for (const bool gives_reason : {true, false}) {
      Folding job;
      job.Say(0, {kTraceback[0], lost});
      job.Wait(1ms);
      if (gives_reason) job.Say(1, kTraceback);
      job.Say(2, kEcho);
      job.Wait(1ms);
      job.folding.StopBegins(job.now);
      job.Say(3, {kTraceback[0], "KeyboardInterrupt\n"});
      EXPECT_EQ(job.folding.Fold(0).first, 0U);
      job.folding.ShowHeld(0);
      EXPECT_EQ(job.order, gives_reason ? std::vector<std::size_t>({1, 0}) : std::vector<std::size_t>({0}))
          << lost;
    }
  }
}

TEST(ErrorFolding, TheErrorWithTheReasonIsShownIfTheFirstOneOnlyPointsToIt) {
  Folding job;
  const std::string waits = "rank 1: the collective cannot end because rank 2 gave up after an error.\n";
  const std::string waits_too = "rank 3: the collective cannot end because rank 2 gave up after an error.\n";
  job.Say(1, {kTraceback[0], waits});
  job.Say(3, {kTraceback[0], waits_too});
  job.Wait(1ms);
  job.Say(2, kTraceback);
  job.folding.StopBegins(job.now);
  job.Wait(1ms);
  job.Say(0, {kTraceback[0], "KeyboardInterrupt\n"});
  const FoldedErrors folded = job.folding.Fold(1);
  EXPECT_EQ(folded.first, 1U);
  EXPECT_EQ(job.shown[2], Joined(kTraceback));
  EXPECT_EQ(
      Describe(folded, 4, "workers", Label),
      "[3] failed with the same error as the first, [0] failed as a consequence (--show-all-errors shows their output)");
  EXPECT_TRUE(job.folding.ShowHeld(1));
  EXPECT_EQ(job.shown[1], kTraceback[0] + waits);
}

TEST(ErrorFolding, AFirstWithoutWordsIsKnownAllTheSame) {
  Folding job;
  job.Say(0, kEcho);
  const FoldedErrors folded = job.folding.Fold(1);  // worker 1 ended without output, e.g. because of a signal
  EXPECT_FALSE(folded.has_words);
  EXPECT_EQ(Describe(folded, 4, "workers", Label),
            "[0] failed as a consequence (--show-all-errors shows their output)");
}

TEST(ErrorFolding, EqualWordsAreCounted) {
  Folding job(3);
  for (std::size_t index = 0; index < 3; ++index) {
    job.Say(index,
            {"Traceback (most recent call last):\n", "OSError: no part-" + Label(index) + " for pid 77\n"});
  }
  FoldedErrors folded = job.folding.Fold(0);
  EXPECT_THAT(folded.same, ElementsAre(1, 2));
  EXPECT_EQ(Describe(folded, 3, "workers", Label),
            "all 3 workers failed with the same error (--show-all-errors shows their output)");
  EXPECT_EQ(Describe(folded, 4, "workers", Label),
            "[1] [2] failed with the same error as the first (--show-all-errors shows their output)");
  folded.others = {3};
  EXPECT_EQ(
      Describe(folded, 5, "workers", Label),
      "[1] [2] failed with the same error as the first, [3] failed as a consequence (--show-all-errors shows their output)");
}

TEST(ErrorFolding, ASyntaxErrorOfAllIsShownOnce) {
  const std::vector<std::string> error = {"  File \"train.py\", line 2\n", "    with communicator()\n",
                                          "                       ^\n", "SyntaxError: expected ':'\n"};
  Folding job(3);
  for (std::size_t index = 0; index < 3; ++index) {
    job.Say(index, error);
    job.folding.Ended(index, false);
  }
  EXPECT_THAT(job.shown, IsEmpty());
  EXPECT_THAT(job.folding.Fold(1).same, ElementsAre(0, 2));
  job.folding.ShowHeld(1);
  job.folding.ShowAllHeld();
  EXPECT_THAT(job.shown, ElementsAre(std::pair(1, Joined(error))));
}

TEST(ErrorFolding, ManyProcessesAreCountedInsteadOfNamed) {
  FoldedErrors folded;
  folded.first = 0;
  for (std::size_t i = 1; i < 100; ++i) folded.others.push_back(i);
  const std::string story = Describe(folded, 100, "workers", Label);
  EXPECT_THAT(story, testing::HasSubstr("[15] [16] and 83 more failed as a consequence"));
}

TEST(ErrorFolding, WithoutACulpritTheFirstErrorBeforeTheStopIsShown) {
  Folding job;
  job.Wait(10ms);
  job.Say(2, kTraceback);
  job.Wait(10ms);
  job.Say(0, kEcho);
  job.Wait(10ms);
  job.folding.StopBegins(job.now);
  job.Say(3, kEcho);
  const FoldedErrors folded = job.folding.Fold(std::nullopt);
  EXPECT_EQ(folded.first, 2U);
  EXPECT_THAT(folded.others, ElementsAre(0, 3));
}

TEST(ErrorFolding, WhatComesFromTheStopAloneIsFoldedWhole) {
  Folding job(2);
  job.folding.StopBegins(job.now);
  for (const std::size_t index : {0U, 1U}) {
    job.Say(index, {"Traceback (most recent call last):\n", "KeyboardInterrupt\n"});
    job.folding.Ended(index, false);
  }
  const FoldedErrors folded = job.folding.Fold(std::nullopt);
  EXPECT_FALSE(folded.first);
  EXPECT_EQ(Describe(folded, 2, "workers", Label),
            "[0] [1] reported errors while they were stopped (--show-all-errors shows their output)");
}

TEST(ErrorFolding, AnErrorThatAProcessSurvivesIsShownInOrder) {
  Folding job;
  job.Say(0, kTraceback);
  job.Say(0, {"going on without it\n"});
  job.Wait(kPatienceWithTalkers - 1ms);
  EXPECT_THAT(job.shown, IsEmpty());
  EXPECT_EQ(job.folding.NextDeadline(), job.now + 1ms);
  job.Wait(1ms);
  job.Say(0, {"more\n"});
  EXPECT_EQ(job.shown[0], Joined(kTraceback) + "going on without it\nmore\n");
}

TEST(ErrorFolding, AProcessThatSaysNothingMoreHasTimeToEnd) {
  Folding job;
  job.Say(0, kTraceback);
  job.Wait(kPatienceWithSilent - 1ms);
  EXPECT_THAT(job.shown, IsEmpty());
  job.Wait(1ms);
  EXPECT_EQ(job.shown[0], Joined(kTraceback));
}

TEST(ErrorFolding, AnErrorBehindOneThatWasSurvivedIsHeldOnItsOwn) {
  Folding job;
  job.Say(0, kTraceback);
  job.Say(0, {"trying again\n"});
  job.Wait(kPatienceWithTalkers - 1ms);
  job.Say(0, kEcho);
  job.Wait(1ms);
  EXPECT_EQ(job.shown[0], Joined(kTraceback) + "trying again\n");
  job.folding.Ended(0, false);
  EXPECT_TRUE(job.folding.Fold(0).has_words);
  job.folding.ShowHeld(0);
  EXPECT_EQ(job.shown[0], Joined(kTraceback) + "trying again\n" + Joined(kEcho));
}

TEST(ErrorFolding, LinesThatFollowForeverDoNotHoldItForever) {
  Folding job;
  job.Say(0, kTraceback);
  for (int i = 0; i < 30 && job.shown.empty(); ++i) {
    job.Wait(100ms);
    job.Say(0, {"INFO: row\n", "  indented\n"});
  }
  EXPECT_FALSE(job.shown.empty());
  job.Say(1, kTraceback);
  for (int i = 0; i < 110 && job.shown.count(1) == 0; ++i) {
    job.Wait(100ms);
    job.Say(1, {"  indented\n"});
  }
  EXPECT_EQ(job.shown.count(1), 1U);
}

TEST(ErrorFolding, AChainOfExceptionsIsOneError) {
  Folding job;
  job.Say(0, kTraceback);
  job.Wait(kPatienceWithSilent - 1s);
  job.Say(0, {"\n", "During handling of the above exception, another exception occurred:\n", "\n"});
  job.Say(0, kTraceback);
  job.Wait(kLongestHold - kPatienceWithSilent);
  EXPECT_THAT(job.shown, IsEmpty());
}

TEST(ErrorFolding, AnErrorOfAProcessThatEndsWellIsShown) {
  Folding job;
  job.Say(0, kTraceback);
  job.folding.Ended(0, true);
  EXPECT_EQ(job.shown[0], Joined(kTraceback));
}

TEST(ErrorFolding, MoreThanItMayKeepIsShown) {
  Folding job;
  std::string all = kTraceback[0];
  job.Say(0, {all});
  while (job.shown.empty()) {
    const std::string line = "  " + std::string(1000, 'x') + "\n";
    job.Say(0, {line});
    all += line;
    ASSERT_LT(all.size(), 2 * kMaxHeldBytes);
  }
  EXPECT_EQ(job.shown[0], all);
}

TEST(ErrorFolding, APieceWithinALineBeginsNoError) {
  Folding job;
  job.Say(0, {std::string(70000, 'x'), kTraceback[0]});
  EXPECT_EQ(job.shown[0].size(), 70000 + kTraceback[0].size());
}

TEST(ErrorFolding, AnErrorBehindAProgressBarIsOne) {
  Folding f;
  f.Say(1, {"\r 50%", "Traceback (most recent call last):\n", "  x\n", "ValueError: 1\n"});
  EXPECT_EQ(f.shown[1], "\r 50%");
  f.folding.Ended(1, false);
  EXPECT_EQ(f.folding.Fold(1).first, 1U);
  f.folding.ShowHeld(1);
  EXPECT_EQ(f.shown[1], "\r 50%Traceback (most recent call last):\n  x\nValueError: 1\n");
}

TEST(ErrorFolding, WhenTheJobIsBegunAnewItHoldsAgain) {
  Folding job;
  job.Say(0, kEcho);
  job.folding.StopBegins(job.now);
  job.folding.Ended(0, false);
  job.folding.Fold(1);
  job.Say(0, {"again\n"});
  job.Say(0, kTraceback);
  job.Wait(kPatienceWithSilent);
  EXPECT_EQ(job.shown[0], "again\n" + Joined(kTraceback));
}

/// Lines, errors, exits and waits in random order: each byte is shown once or folded, in order.
TEST(ErrorFolding, LosesNothingInRandomJobs) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    constexpr std::size_t kProcesses = 3;
    Folding job(kProcesses);
    std::map<std::size_t, std::string> said;
    for (int step = 0; step < 60; ++step) {
      const std::size_t index = random() % kProcesses;
      const auto say = [&](const std::string& line) {
        said[index] += line;
        job.Say(index, {line});
      };
      switch (random() % 10) {
        case 0:
          for (const std::string& line : kTraceback) say(line);
          break;
        case 1:
          say(kTraceback[0]);
          break;
        case 2:
          say(kEcho[0]);
          break;
        case 3:
          say(std::string(random() % 40000, 'x') + (random() % 2 == 0 ? "\n" : ""));
          break;
        case 4:
          job.Wait(std::chrono::milliseconds(random() % 3000));
          break;
        case 5:
          job.folding.Ended(index, random() % 2 == 0);
          break;
        case 6:
          if (random() % 4 == 0) job.folding.StopBegins(job.now);
          break;
        default:
          say("line " + std::to_string(step) + "\n");
      }
      for (const auto& [who, text] : job.shown) ASSERT_TRUE(said[who].starts_with(text)) << seed;
    }
    const std::optional<std::size_t> culprit =
        random() % 2 == 0 ? std::nullopt : std::optional<std::size_t>(random() % kProcesses);
    const FoldedErrors folded = job.folding.Fold(culprit);
    job.folding.ShowAllHeld();
    std::vector<std::size_t> left_out = folded.same;
    left_out.insert(left_out.end(), folded.others.begin(), folded.others.end());
    for (std::size_t who = 0; who < kProcesses; ++who) {
      const bool is_left_out = std::count(left_out.begin(), left_out.end(), who) > 0;
      EXPECT_NE(culprit == std::optional(who) && is_left_out, true);
      EXPECT_EQ(job.shown[who] != said[who], is_left_out) << seed;
      if (!is_left_out) continue;
      EXPECT_TRUE(BeginsError(said[who].substr(job.shown[who].size()))) << seed;
    }
  }
}

}  // namespace
}  // namespace warren::submit
