// The monitor of a running job: evaluation lines, ranks that make others wait, the live line.
// hang_watch_test.cc has workers that hang.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <random>

#include "submit/monitor/evaluation_line.h"
#include "submit/monitor/job_monitor.h"
#include "submit/monitor/live_line.h"
#include "submit/monitor/waiting_time.h"

namespace warren::submit {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// --- evaluation lines --------------------------------------------------------------------------------------

TEST(EvaluationLine, OfXGBoostAndLightGbmAreNumbers) {
  const auto python = ParseEvaluation("[12]\ttrain-rmse:0.21350\teval-rmse:0.21870\n");
  ASSERT_TRUE(python);
  EXPECT_EQ(python->round, 12);
  EXPECT_THAT(python->metrics, testing::ElementsAre(Pair("train-rmse", 0.2135), Pair("eval-rmse", 0.2187)));
  const auto program = ParseEvaluation("[09:53:12] [3] train-error:0.046522 test-error:0.04");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->round, 3);
  EXPECT_THAT(program->metrics,
              testing::ElementsAre(Pair("train-error", 0.046522), Pair("test-error", 0.04)));
  const auto light = ParseEvaluation("[10]\ttraining's auc: 0.91\tvalid_1's binary_logloss: 1e-3");
  ASSERT_TRUE(light);
  EXPECT_THAT(light->metrics,
              testing::ElementsAre(Pair("training's auc", 0.91), Pair("valid_1's binary_logloss", 0.001)));
  const auto folds = ParseEvaluation("[0]\ttrain-auc:0.9+0.01\ttest-auc:0.8+0.02");
  ASSERT_TRUE(folds);
  EXPECT_THAT(folds->metrics, testing::ElementsAre(Pair("train-auc", 0.9), Pair("test-auc", 0.8)));
}

TEST(EvaluationLine, NamesHaveNothingInThemThatATerminalObeys) {
  const auto line = ParseEvaluation("[3]\t\x1b]0;x\x07train-\x1b[2Jrmse:0.5\t\xff:1");
  ASSERT_TRUE(line);
  EXPECT_THAT(line->metrics,
              testing::ElementsAre(Pair("\\x1b]0;x\\x07train-\\x1b[2Jrmse", 0.5), Pair("\\xff", 1)));
}

TEST(EvaluationLine, OtherLinesAreNone) {
  for (const char* line :
       {"", "[", "[]", "[12]", "[12]\t", "[x]\ta:1", "12 a:1", "[12]\ta:", "[12]\t:1", "[12]\ta:b",
        "[-1]\ta:1", "[12] of 20 rows a:1 read", "[09:53:12] WARNING: src/learner.cc:1: [12] no",
        "[1,2]\ta:1", "[99999999999999999999]\ta:1"}) {
    EXPECT_FALSE(ParseEvaluation(line)) << line;
  }
  EXPECT_FALSE(ParseEvaluation("[1]\t" + std::string(200, 'a') + ":1"));
  std::string many = "[1]";
  for (int i = 0; i < 100; ++i) many += fmt::format("\tm{}:1", i);
  EXPECT_FALSE(ParseEvaluation(many));
}

// --- ranks that make others wait ---------------------------------------------------------------------------

TEST(WaitingTime, IsThatOfTheRankThatCameLast) {
  WaitingTime times(3);
  times.Add(0, {{1, 0.5}, {2, 0.25}}, 2);
  times.Add(1, {{1, 0.25}}, 2);
  EXPECT_EQ(times.Waited(0), 0) << "rank 2 may have been in them";
  times.Add(2, {{2, 0.5}}, 2);
  // Rank 2 spent too little time in call 1 to report it, and rank 1 too little in call 2.
  EXPECT_DOUBLE_EQ(times.Waited(0), 0.75);
  EXPECT_DOUBLE_EQ(times.Waited(1), 0.25);
  EXPECT_DOUBLE_EQ(times.MadeWait(2), 0.5);
  EXPECT_DOUBLE_EQ(times.MadeWait(1), 0.5);
  EXPECT_EQ(times.MadeWait(0), 0);
}

TEST(WaitingTime, SlownessOfAllIsNobodysFault) {
  WaitingTime times(2);
  times.Add(0, {{1, 3.0}}, 1);
  times.Add(1, {{1, 3.0}}, 1);
  EXPECT_EQ(times.MadeWait(0), 0);
  EXPECT_EQ(times.MadeWait(1), 0);
  EXPECT_EQ(times.Waited(0), 0);
}

TEST(WaitingTime, IsTheSameHoweverReportsComeAndWhateverIsCountedAnew) {
  std::mt19937 random(std::random_device{}());
  const auto between = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int job = 0; job < 500; ++job) {
    const int world = between(2, 8);
    WaitingTime times(static_cast<std::size_t>(world));
    std::vector<double> made(world), waited(world);
    for (int part = 0; part < 2; ++part) {  // call numbers start over in the second part
      const int num_calls = between(1, 60);
      std::vector<std::vector<double>> inside(num_calls, std::vector<double>(world));
      for (auto& call : inside) {
        const int last = between(0, world - 1);
        const double longest = between(10, 500) * 1e-3;
        for (int rank = 0; rank < world; ++rank) {
          call[rank] = rank == last ? 0 : longest * between(5, 10) / 10;
        }
        made[last] += *std::max_element(call.begin(), call.end());
        for (int rank = 0; rank < world; ++rank) waited[rank] += call[rank];
      }
      std::vector<int> said(world);
      while (*std::min_element(said.begin(), said.end()) < num_calls) {
        const int rank = between(0, world - 1);
        const int until = std::min(num_calls, said[rank] + between(0, 10));
        std::vector<wire::ReportedWait> waits;
        for (int call = said[rank]; call < until; ++call) {
          if (inside[call][rank] > 0)
            waits.push_back({static_cast<std::uint64_t>(call) + 1, inside[call][rank]});
        }
        std::shuffle(waits.begin(), waits.end(), random);
        times.Add(static_cast<std::size_t>(rank), waits, static_cast<std::uint64_t>(until));
        said[rank] = until;
      }
      times.BeginAgain();
    }
    for (int rank = 0; rank < world; ++rank) {
      ASSERT_NEAR(times.MadeWait(rank), made[rank], 1e-9);
      ASSERT_NEAR(times.Waited(rank), waited[rank], 1e-9);
    }
  }
}

TEST(WaitingTime, OfAGenerationIsThatAmongItsOwnRanks) {
  WaitingTime times(4);
  times.Add(0, {{1, 0.5}}, 1);
  times.BeginAgain(2);
  times.Add(0, {{1, 0.25}}, 1);
  times.Add(1, {}, 1);
  times.Add(2, {{1, 0.25}}, 1);  // a report from before
  EXPECT_DOUBLE_EQ(times.Waited(0), 0.25);
  EXPECT_DOUBLE_EQ(times.MadeWait(1), 0.25);
  EXPECT_EQ(times.MadeWait(2), 0);
  times.BeginAgain(3);
  times.Add(0, {{1, 0.5}}, 1);
  times.Add(1, {{1, 0.5}}, 1);
  EXPECT_DOUBLE_EQ(times.Waited(0), 0.25) << "rank 2 may have been in it";
  times.Add(2, {}, 1);
  EXPECT_DOUBLE_EQ(times.MadeWait(2), 0.5);
}

TEST(WaitingTime, OfARankThatSaysNothingNothingIsKnownAndLittleIsKept) {
  WaitingTime times(4);
  std::uint64_t call = 0;
  for (int report = 0; report < 3000; ++report) {
    std::vector<wire::ReportedWait> waits;
    for (int i = 0; i < 100; ++i) waits.push_back({++call, 0.01});
    for (const std::size_t rank : {0U, 1U, 2U}) times.Add(rank, waits, call);
  }
  const auto bytes = mallinfo2().uordblks;
  EXPECT_LT(bytes, std::size_t{64} << 20) << "what is kept has a limit";
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(times.MadeWait(rank), 0) << "nobody knows";
}

// --- the whole monitor -------------------------------------------------------------------------------------

class Monitored : public testing::Test {
 protected:
  Monitored() {
    PlannedProcess process;
    for (process.task_id = 0; process.task_id < 4; ++process.task_id) plan_.push_back(process);
    JobSnapshot job;
    job.name = "train.py";
    job.world_size = 4;
    MonitorOptions options;
    options.trace = &trace_;
    monitor_.emplace(job, options, plan_, now_);
    for (std::size_t i = 0; i < 4; ++i) {
      monitor_->Started(i, {100 + static_cast<int>(i), fmt::format("n{}", i)}, now_);
    }
  }

  void Link() {
    for (int i = 0; i < 4; ++i) monitor_->Assigned(std::to_string(i), 3 - i);
    monitor_->Linked(now_);
  }
  /// Prints the evaluation of a round.
  void Print(int round) { monitor_->Printed(fmt::format("[{}]\ttrain-auc:0.9\n", round), now_); }
  /// Reports that a worker has finished the round.
  void Progress(int task, std::int64_t round, std::int64_t of,
                std::vector<std::pair<std::string, double>> metrics = {}) {
    wire::WorkerReport report = Report(task);
    report.progress = wire::ReportedProgress{round, of, std::move(metrics)};
    monitor_->Reported(report, now_);
  }
  /// Lets time pass in steps, and calls `happens` after each of them. Returns the findings.
  template <typename Happens>
  std::vector<Finding> Pass(int how_long, int step, const Happens& happens) {
    std::vector<Finding> found;
    for (int second = 0; second < how_long; second += step) {
      now_ += seconds(step);
      happens(second);
      for (Finding& one : monitor_->Look(now_)) found.push_back(std::move(one));
    }
    return found;
  }
  wire::WorkerReport Report(int task) const {
    wire::WorkerReport report;
    report.task_id = std::to_string(task);
    report.rank = 3 - task;
    return report;
  }

  TimePoint now_{std::chrono::hours(1)};
  JobTrace trace_{{"trace", "", ""}, "train.py", {}, now_, 0, [] { return std::string("id"); }};
  std::vector<PlannedProcess> plan_;
  std::optional<JobMonitor> monitor_;
};

TEST_F(Monitored, WorkersShowTheirStates) {
  wire::WorkerReport report = Report(2);
  report.rank = -1;  // The program calls warren.progress, but does not join the job.
  monitor_->Reported(report, now_);
  EXPECT_EQ(monitor_->Snapshot(now_).workers[2].state, WorkerState::kStarting);
  report.progress = wire::ReportedProgress{3, 10, {}};
  monitor_->Reported(report, now_);
  EXPECT_EQ(monitor_->Snapshot(now_).workers[2].state, WorkerState::kRunning);
  EXPECT_FALSE(monitor_->Snapshot(now_).workers[2].rank);
  Link();
  monitor_->Exited(1, {.code = 3}, now_);
  auto job = monitor_->Snapshot(now_);
  EXPECT_EQ(job.workers[0].state, WorkerState::kRunning);
  EXPECT_EQ(job.workers[0].rank, 3);
  EXPECT_EQ(job.workers[1].state, WorkerState::kFailed);
  monitor_->Started(1, {200, ""}, now_);
  job = monitor_->Snapshot(now_);
  EXPECT_EQ(job.workers[1].restarts, 1);
  EXPECT_EQ(job.workers[1].pid, 200);
  EXPECT_EQ(job.workers[1].host, "n1");
  monitor_->Exited(1, {}, now_);
  EXPECT_EQ(monitor_->Snapshot(now_).workers[1].state, WorkerState::kSucceeded);
  monitor_->BeginsAgain(now_);
  job = monitor_->Snapshot(now_);
  EXPECT_EQ(job.job_restarts, 1);
  EXPECT_EQ(job.workers[0].state, WorkerState::kWaiting);
  EXPECT_FALSE(job.workers[0].rank);
}

TEST_F(Monitored, AWorkerIsDescribedByWhatIsKnownOfIt) {
  JobSnapshot job;
  job.world_size = 4;
  JobMonitor monitor(job, {}, plan_, now_);
  EXPECT_EQ(monitor.Describe(1), "worker 1");
  monitor.Started(1, {0, "n1"}, now_);
  EXPECT_EQ(monitor.Describe(1), "worker 1 (host n1)");
  monitor.Assigned("1", 2);
  EXPECT_EQ(monitor.Describe(1), "worker 1 (rank 2, host n1)");
  monitor.Located(1, {101, ""}, now_);
  EXPECT_EQ(monitor.Describe(1), "worker 1 (rank 2, host n1, pid 101)");
}

TEST_F(Monitored, ItsTraceHasOneSpanForMetricsOfARoundThatComeOneByOne) {
  Link();
  Print(1);
  Progress(0, 1, 2, {{"loss", 0.5}});
  Print(2);
  const auto spans = trace_.TakeEnded();
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_EQ(spans[0].name, "start");
  EXPECT_EQ(spans[1].name, "round");
  EXPECT_EQ(spans[1].attributes, (Attributes{{"warren.round", std::int64_t{1}},
                                             {"warren.rounds", std::int64_t{2}},
                                             {"warren.metric.train-auc", 0.9},
                                             {"warren.metric.loss", 0.5}}));
}

TEST_F(Monitored, AGenerationHasRanksOfItsOwn) {
  monitor_->GenerationBegan({1, 4, 0.5, ""}, now_);
  Link();
  EXPECT_EQ(monitor_->Snapshot(now_).seconds_between_generations, 0);
  monitor_->Exited(1, {.signal = 9}, now_);
  monitor_->GenerationBegan({2, 3, 1.5, ""}, now_);
  monitor_->GenerationBegan({3, 3, 2, ""}, now_);
  for (int task : {0, 2, 3}) monitor_->Assigned(std::to_string(task), task == 0 ? 0 : task - 1);
  now_ += seconds(10);
  const auto job = monitor_->Snapshot(now_);
  EXPECT_EQ(job.generation, 3);
  EXPECT_EQ(job.world_size, 3);
  EXPECT_EQ(job.seconds_between_generations, 3.5);
  EXPECT_EQ(job.workers[0].rank, 0);
  EXPECT_EQ(job.workers[1].rank, std::nullopt);
  EXPECT_EQ(job.workers[3].rank, 2);
  EXPECT_EQ(LiveLine(job, 100), "dmlc-submit: 0:10 | 3 of 4 workers up, generation 3");
}

TEST_F(Monitored, AWorkerIsNotSaidToBeStoppedByTheDebuggerThatShowsItsStack) {
  Link();
  const auto pass = [&](int how_long, char state = 't') {
    return Pass(how_long, 5, [&](int) {
      for (std::size_t i = 0; i < 4; ++i) {
        ProcessSample sample;
        sample.state = i == 1 ? state : 'R';
        sample.cpu_seconds = i == 1 ? 1 : monitor_->SecondsAt(now_);
        monitor_->Sampled(i, sample, now_);
      }
    });
  };
  monitor_->Dumped(1, true);
  EXPECT_THAT(pass(300), IsEmpty());
  monitor_->Dumped(1, false);
  EXPECT_THAT(pass(30), IsEmpty());
  const auto found = pass(300);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].text, HasSubstr("worker 1 (rank 2, host n1, pid 101) has been stopped by a debugger"));
  // A worker that was stopped by a signal stays stopped while its stack is read, and is not reported again.
  EXPECT_THAT(pass(300, 'T'), SizeIs(testing::Ge(1)));
  monitor_->Dumped(1, true);
  EXPECT_THAT(pass(30), IsEmpty());
  monitor_->Dumped(1, false);
  EXPECT_THAT(pass(300, 'T'), IsEmpty());
}

TEST_F(Monitored, AWorkerThatPrintsByTheTrackerHoldsNobodyUp) {
  Link();
  const auto pass = [&](bool prints) {
    return Pass(120, 1, [&](int second) {
      for (int task = 0; task < 4; ++task) {
        auto report = Report(task);
        report.call = wire::ReportedCall{};
        report.call->number = task == 1 ? 1 : 2;
        report.call->inside = task != 1;
        report.call->seconds = second;
        monitor_->Reported(report, now_);
      }
      if (prints) monitor_->WroteByTracker(2, now_);  // rank 2 is task 1
    });
  };
  EXPECT_THAT(pass(true), IsEmpty());
  EXPECT_THAT(pass(false), SizeIs(1));
}

TEST_F(Monitored, RoundsAndMetricsComeFromLinesAndFromReports) {
  Link();
  for (int round = 0; round < 10; ++round) {
    now_ += seconds(1);
    monitor_->Printed(fmt::format("[{}]\ttrain-rmse:{}\n", round, 1.0 / (1 + round)), now_);
  }
  auto job = monitor_->Snapshot(now_);
  EXPECT_EQ(job.round, 9);
  EXPECT_THAT(job.evaluations, SizeIs(10));
  EXPECT_FALSE(job.seconds_left);
  EXPECT_EQ(LiveLine(job, 200), "dmlc-submit: 0:10 | 4 workers | round 9 | train-rmse 0.1 | 1 s a round");
  Progress(0, 9, 20, {{"auc", 0.5}});
  job = monitor_->Snapshot(now_);
  EXPECT_THAT(job.evaluations.back().metrics,
              testing::ElementsAre(Pair("train-rmse", 0.1), Pair("auc", 0.5)));
  ASSERT_TRUE(job.seconds_left);
  EXPECT_NEAR(*job.seconds_left, 11, 1e-6);
  EXPECT_THAT(LiveLine(job, 200),
              HasSubstr("round 9 of 20 | train-rmse 0.1, auc 0.5 | 1 s a round | 0:11 left"));
  // A worker that starts over repeats rounds; in this test it prints them but does not report them.
  now_ += seconds(10);
  monitor_->Printed("[3]\ttrain-rmse:0.3", now_);
  EXPECT_EQ(monitor_->Snapshot(now_).round, 9);
  monitor_->Printed("[4]\ttrain-rmse:0.3", now_);
  job = monitor_->Snapshot(now_);
  EXPECT_EQ(job.round, 4);
  EXPECT_THAT(job.evaluations, SizeIs(5));
}

TEST_F(Monitored, ReportedRoundsWithoutMetricsGoWithPrintedEvaluations) {
  Link();
  for (int round = 0; round < 10; ++round) {
    now_ += seconds(2);
    Print(round);
    // Reports count rounds from 1. Here, the report of a round follows the printed line of the next round.
    if (round > 0) Progress(0, round, 50);
  }
  Progress(0, 10, 50);
  now_ += seconds(1);
  const auto job = monitor_->Snapshot(now_);
  EXPECT_EQ(job.round, 10);
  EXPECT_THAT(job.evaluations, SizeIs(10));
  for (const Evaluation& evaluation : job.evaluations) EXPECT_THAT(evaluation.metrics, SizeIs(1));
  ASSERT_TRUE(job.seconds_left);
  EXPECT_NEAR(*job.seconds_left, 40 * 2 - 1, 1e-6);
  EXPECT_THAT(LiveLine(job, 200), HasSubstr("round 10 of 50 | train-auc 0.9 | 2 s a round | 1:19 left"));
}

TEST_F(Monitored, ATrainingThatWasResumedIsTimedByItsReports) {
  Link();
  for (int round = 0; round < 5; ++round) {  // printed rounds start at 0 again, reported ones do not
    now_ += seconds(2);
    Print(round);
    Progress(0, 31 + round, 50);
  }
  const auto job = monitor_->Snapshot(now_);
  EXPECT_EQ(job.round, 35);
  ASSERT_TRUE(job.seconds_left);
  EXPECT_NEAR(*job.seconds_left, 15 * 2, 1e-6);
}

TEST_F(Monitored, AnotherWorkerReportsRoundsOnceTheFirstHasBeenLost) {
  Link();
  for (const int task : {0, 1}) Progress(task, 1, 9, {{"loss", 0.5}});
  monitor_->Exited(0, {.signal = 9}, now_);
  Progress(1, 2, 9, {{"loss", 0.25}});
  EXPECT_EQ(monitor_->Snapshot(now_).round, 2);
  monitor_->Started(0, {200, "n0"}, now_);
  Progress(1, 3, 9, {{"loss", 0.125}});
  EXPECT_EQ(monitor_->Snapshot(now_).round, 3) << "the restarted worker has reported nothing yet";
}

TEST_F(Monitored, ATrainingIsTimedFromItsLastRestartOn) {
  Link();
  for (int round = 0; round < 10; ++round) {
    now_ += seconds(1);
    Print(round);
  }
  Progress(0, 10, 20);
  monitor_->BeginsAgain(now_);
  now_ += seconds(60);
  for (std::size_t i = 0; i < 4; ++i) monitor_->Started(i, {200 + static_cast<int>(i), "n"}, now_);
  Link();
  for (int round = 8; round < 11; ++round) {
    now_ += seconds(2);
    Progress(0, round, 20, {{"train-auc", 0.9}});
    const auto job = monitor_->Snapshot(now_);
    EXPECT_EQ(job.seconds_left.value_or(-1), round == 8 ? -1 : (20 - round) * 2.0) << round;
  }
  EXPECT_THAT(LiveLine(monitor_->Snapshot(now_), 200), HasSubstr("| 2 s a round | 0:20 left"));
}

TEST_F(Monitored, AnotherTrainingIsTimedFromItsFirstRoundOn) {
  Link();
  for (int training = 0; training < 2; ++training) {
    now_ += seconds(60);
    for (int round = 0; round < 4; ++round) {
      now_ += seconds(1);
      Print(round);
    }
    EXPECT_THAT(LiveLine(monitor_->Snapshot(now_), 200), HasSubstr("| 1 s a round"));
  }
}

TEST_F(Monitored, ReportedRoundsWithoutAnyEvaluationAreTimed) {
  Link();
  for (int round = 1; round <= 10; ++round) {
    now_ += seconds(3);
    Progress(0, round, 20);
  }
  const auto job = monitor_->Snapshot(now_);
  ASSERT_TRUE(job.seconds_left);
  EXPECT_NEAR(*job.seconds_left, 30, 1e-6);
}

TEST_F(Monitored, EvaluationsAreKeptWithinALimit) {
  for (int round = 0; round < 50'000; ++round) Print(round);
  const auto job = monitor_->Snapshot(now_);
  EXPECT_LE(job.evaluations.size(), kMaxEvaluations);
  EXPECT_GT(job.evaluations.size(), kMaxEvaluations / 4);
  EXPECT_EQ(job.evaluations.front().round, 0);
}

TEST_F(Monitored, ReadingIsSummedUp) {
  for (const int task : {0, 1}) {
    auto report = Report(task);
    report.reading = wire::ReportedReading{"train.parquet", 600'000, 100'000'000, 200'000'000, 2};
    monitor_->Reported(report, now_);
  }
  EXPECT_EQ(
      LiveLine(monitor_->Snapshot(now_), 200),
      "dmlc-submit: 0:00 | 2 of 4 workers up | reading train.parquet: 1,200,000 rows, 200 of 400 MB, 100 MB/s, 0:02 left");
  now_ += seconds(30);
  EXPECT_THAT(LiveLine(monitor_->Snapshot(now_), 200), testing::Not(HasSubstr("reading")));
}

TEST_F(Monitored, TheOneThatMakesOthersWaitIsNamed) {
  Link();
  std::uint64_t call = 0;
  for (int second = 0; second < 100; ++second) {
    now_ += seconds(1);
    ++call;
    for (int task = 0; task < 4; ++task) {
      auto report = Report(task);
      report.call = wire::ReportedCall{call, "Allreduce of 8 floats", false, 0.1};
      if (task != 2) report.waits.push_back({call, 0.41});
      monitor_->Reported(report, now_);
    }
  }
  const auto job = monitor_->Snapshot(now_);
  EXPECT_EQ(StragglerSentence(job, false), "rank 1 made the others wait 41 % of the time");
  EXPECT_THAT(StragglerSentence(job, true), HasSubstr("rank 1 makes the others wait 4"));
  EXPECT_NEAR(job.workers[2].makes_wait_now, 0.41, 0.03)
      << "a call may be settled after the half minute began";
  EXPECT_NEAR(job.workers[0].seconds_waited, 41, 1e-6);
  EXPECT_EQ(job.workers[2].seconds_waited, 0);
}

TEST_F(Monitored, AStoppedWorkerIsStuckUntilItGoesOn) {
  Link();
  const auto pass = [&](int how_long, char state) {
    return Pass(how_long, 5, [&](int) {
      for (std::size_t worker = 0; worker < 4; ++worker) {
        const double cpu = worker == 1 && state == 'T' ? 7 : monitor_->SecondsAt(now_);
        monitor_->Sampled(worker, {worker == 1 ? state : 'R', cpu, 1 << 20}, now_);
      }
    });
  };
  EXPECT_THAT(pass(100, 'R'), IsEmpty());
  const auto found = pass(100, 'T');
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].text, HasSubstr("worker 1 (rank 2, host n1, pid 101) has been stopped by a signal"));
  const auto job = monitor_->Snapshot(now_);
  EXPECT_EQ(job.workers[1].state, WorkerState::kStuck);
  EXPECT_NEAR(job.workers[0].cores_used, 1, 1e-6);
  EXPECT_THAT(LiveLine(job, 200), HasSubstr("3 of 4 workers up | worker 1: stopped by a signal"));
  EXPECT_THAT(pass(10, 'R'), SizeIs(1));
  EXPECT_EQ(monitor_->Snapshot(now_).workers[1].state, WorkerState::kRunning);
}

TEST_F(Monitored, HostsAreNotJudgedWhileTheirSamplesAreLeftUnread) {
  Link();
  for (std::size_t worker = 0; worker < 4; ++worker) monitor_->Sampled(worker, {'R', 1, 1}, now_);
  monitor_->OutputPaused(true, now_ += seconds(1));
  EXPECT_THAT(monitor_->Look(now_ += seconds(500)), IsEmpty());
  monitor_->OutputPaused(false, now_);
  EXPECT_THAT(monitor_->Look(now_ += seconds(30)), IsEmpty());
  EXPECT_THAT(monitor_->Look(now_ += seconds(60)), SizeIs(4)) << "now they are silent";
}

TEST_F(Monitored, AWorkerWhoseSamplesGoOnWhileOutputIsLeftUnreadIsJudgedByThem) {
  Link();
  for (std::size_t worker = 0; worker < 4; ++worker)
    monitor_->Sampled(worker, {worker == 1 ? 'T' : 'R', 1, 1}, now_);
  monitor_->OutputPaused(true, now_ += seconds(1));
  monitor_->Sampled(1, {'T', 1, 1}, now_ += seconds(500));
  monitor_->OutputPaused(false, now_);
  const auto found = monitor_->Look(now_);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].text, HasSubstr("worker 1 (rank 2, host n1, pid 101) has been stopped by a signal"));
}

TEST_F(Monitored, WorkersThatHaveLeftTheJobMayBeSilent) {
  Link();
  for (int task = 0; task < 4; ++task) {
    monitor_->Reported(Report(task), now_);
    monitor_->Reported(Report(task), now_ + seconds(1));
  }
  monitor_->ReportsEnd();
  const auto found = Pass(300, 5, [&](int second) {
    for (std::size_t worker = 0; worker < 4; ++worker)
      monitor_->Sampled(worker, {'S', 1 + second / 5.0, 1}, now_);
  });
  EXPECT_THAT(found, IsEmpty());
}

TEST_F(Monitored, NobodyIsAccusedAfterThisProcessStoodStill) {
  Link();
  for (std::size_t worker = 0; worker < 4; ++worker) monitor_->Sampled(worker, {'R', 1, 1}, now_);
  now_ += seconds(1000);
  monitor_->StoodStill(seconds(999));
  EXPECT_THAT(monitor_->Look(now_), IsEmpty());
  EXPECT_THAT(monitor_->Look(now_ + seconds(60)), SizeIs(4));
}

TEST_F(Monitored, TroubleSaysHowLongItHasLasted) {
  Link();
  Pass(200, 5, [&](int second) {
    for (std::size_t worker = 0; worker < 4; ++worker)
      monitor_->Sampled(worker, {worker == 1 ? 'T' : 'R', worker == 1 ? 1 : 1.0 + second, 1}, now_);
  });
  EXPECT_EQ(monitor_->Snapshot(now_).workers[1].trouble, "stopped by a signal for 195 s");
}

TEST_F(Monitored, ThatOthersWaitForSomeToJoinIsSaidOnce) {
  monitor_->Joined(3, 4, now_);
  EXPECT_FALSE(monitor_->JoiningTakesLong(now_ + seconds(59)));
  EXPECT_TRUE(monitor_->JoiningTakesLong(now_ + seconds(60)));
  EXPECT_FALSE(monitor_->JoiningTakesLong(now_ + seconds(90)));
  monitor_->Joined(4, 4, now_ + seconds(91));
  EXPECT_FALSE(monitor_->JoiningTakesLong(now_ + seconds(300)));
}

TEST_F(Monitored, ReportsOfNobodyAreLeftAlone) {
  for (const char* task : {"", "4", "-1", "1x", "99999999999999999999"}) {
    wire::WorkerReport report;
    report.task_id = task;
    report.rank = 77;
    report.call = wire::ReportedCall{1, "x", false, -1e300};
    monitor_->Reported(report, now_);
  }
  auto report = Report(0);
  report.rank = 77;
  report.call = wire::ReportedCall{0, "x", true, 1e300};
  report.waits.push_back({1, 1});
  monitor_->Reported(report, now_);
  EXPECT_EQ(monitor_->Snapshot(now_).workers.size(), 4U);
}

TEST(LiveLine, FitsWhateverTheWidth) {
  JobSnapshot job;
  job.seconds = 3723;
  job.world_size = 2;
  job.round = 3;
  job.rounds = 10;
  job.seconds_left = 75;
  job.evaluations = {{1, 1, {{"a", 1}}}, {3, 5, {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}}}};
  job.workers.resize(2);
  for (WorkerSnapshot& worker : job.workers) {
    worker.role = "worker";
    worker.state = WorkerState::kRunning;
  }
  EXPECT_EQ(LiveLine(job, 200),
            "dmlc-submit: 1:02:03 | 2 workers | round 3 of 10 | a 1, b 2, c 3 | 2 s a round | 1:15 left");
  EXPECT_EQ(LiveLine(job, 60), "dmlc-submit: 1:02:03 | 2 workers | round 3 of 10 | 1:15 left");
  EXPECT_EQ(LiveLine(job, 50), "dmlc-submit: 1:02:03 | 2 workers | round 3 of 10");
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(LiveLine(job, width).size(), static_cast<std::size_t>(std::max(width, 1)));
  }
}

}  // namespace
}  // namespace warren::submit
