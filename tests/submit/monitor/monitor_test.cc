// The monitor of a running job: evaluation lines, ranks that make others wait, hangs, the live line.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <random>

#include "submit/monitor/evaluation_line.h"
#include "submit/monitor/hang_watch.h"
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

// --- hangs -------------------------------------------------------------------------------------------------

class Hangs : public testing::Test {
 protected:
  static constexpr seconds kTimeout{60};
  static constexpr seconds kInterval{5};

  Hangs() {
    for (int i = 0; i < 3; ++i) {
      Signs signs;
      signs.name = fmt::format("worker {}", i);
      signs.host = fmt::format("n{}", i);
      signs.since = signs.state_since = signs.busy = signs.call_since = now_;
      signs.sampled = signs.sampled_first = signs.reported = now_;
      signs.state = 'S';
      signs.call = 1;
      signs.call_name = "Allreduce of 8 floats";
      workers_.emplace_back(signs);
    }
  }

  /// Lets `how_long` seconds pass and collects the findings. Workers in `silent` provide neither samples nor
  /// reports; workers in `untold` provide samples only. Workers in `idle` use only idle_cores_ cores, and
  /// workers in printing_ print lines.
  using Some = std::vector<std::size_t>;
  void Pass(int how_long, const Some& silent = {}, const Some& idle = {}, const Some& untold = {}) {
    for (int i = 0; i < how_long; i += static_cast<int>(kInterval.count())) {
      now_ += kInterval;
      for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
        if (!workers_[worker] || std::count(silent.begin(), silent.end(), worker) > 0) continue;
        workers_[worker]->cores_since = *workers_[worker]->sampled;
        workers_[worker]->cores = std::count(idle.begin(), idle.end(), worker) == 0 ? 1 : idle_cores_;
        workers_[worker]->sampled = now_;
        if (std::count(printing_.begin(), printing_.end(), worker) > 0) workers_[worker]->printed = now_;
        if (std::count(untold.begin(), untold.end(), worker) == 0) workers_[worker]->reported = now_;
        if (std::count(idle.begin(), idle.end(), worker) == 0) workers_[worker]->busy = now_;
      }
      for (Finding& finding : watch_.Look(workers_, round_ended_, now_)) {
        when_.push_back(now_);
        found_.push_back(std::move(finding));
      }
    }
  }

  /// Makes all workers except worker 1 enter the call.
  void BeginWait(std::uint64_t call) {
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      workers_[worker]->inside = worker != 1;
      workers_[worker]->call = worker != 1 ? call : call - 1;
      workers_[worker]->call_since = now_;
    }
  }

  TimePoint now_{std::chrono::hours(1)};
  std::vector<std::optional<Signs>> workers_;
  Some printing_;
  double idle_cores_ = 0;
  std::optional<TimePoint> round_ended_;
  HangWatch watch_{kTimeout, kInterval};
  std::vector<Finding> found_;
  std::vector<TimePoint> when_;
};

TEST_F(Hangs, WhoWorksDoesNot) {
  Pass(600);
  EXPECT_THAT(found_, IsEmpty());
}

TEST_F(Hangs, AStoppedOneIsNamedInTimeOnceAndWhenItGoesOn) {
  Pass(100);
  workers_[1]->state = 'T';
  workers_[1]->state_since = now_ + kInterval;
  const TimePoint stopped = now_;
  Pass(300, {}, {1}, {1});
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_EQ(found_[0].worker, 1U);
  EXPECT_EQ(found_[0].kind, Finding::Kind::kStopped);
  EXPECT_THAT(found_[0].text, HasSubstr("worker 1 has been stopped by a signal"));
  EXPECT_THAT(found_[0].text, HasSubstr("it was last in Allreduce of 8 floats (call 1)"));
  EXPECT_LE(when_[0] - stopped, kTimeout);
  workers_[1]->state = 'S';
  Pass(10);
  ASSERT_THAT(found_, SizeIs(2));
  EXPECT_EQ(found_[1].kind, Finding::Kind::kGoesOn);
  EXPECT_THAT(found_[1].trouble, IsEmpty());
}

TEST_F(Hangs, WhoWaitsForADiskIsNamedUnlessItWorks) {
  workers_[0]->state = 'D';
  workers_[0]->state_since = now_;
  Pass(300);
  EXPECT_THAT(found_, IsEmpty()) << "it reads, and computes between";
  Pass(300, {}, {0});
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_EQ(found_[0].kind, Finding::Kind::kWaits);
}

TEST_F(Hangs, ALostHostIsNamed) {
  Pass(300, {2});
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_EQ(found_[0].worker, 2U);
  EXPECT_EQ(found_[0].kind, Finding::Kind::kSilent);
  EXPECT_THAT(found_[0].text, HasSubstr("nothing has been heard from host n2"));
}

TEST_F(Hangs, WhoHoldsTheOthersUpIsNamedWithTheCall) {
  for (const std::size_t other : {0U, 2U}) {
    workers_[other]->call = 8;
    workers_[other]->inside = true;
    workers_[other]->call_since = now_;
  }
  workers_[1]->call = 7;
  workers_[1]->call_since = now_;
  Pass(300, {}, {0, 2});
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_EQ(found_[0].kind, Finding::Kind::kHoldsUp);
  EXPECT_EQ(found_[0].worker, 1U);
  EXPECT_THAT(found_[0].text, HasSubstr("holds up 2 others"));
  EXPECT_THAT(found_[0].text, HasSubstr("(call 8); it computes, and was last in"));
}

TEST_F(Hangs, WhoSleepsIsNotSaidToCompute) {
  BeginWait(8);
  Pass(120, {}, {0, 1, 2});
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_THAT(found_[0].text, HasSubstr("(call 8); it uses no processor time, and was last in"));
  idle_cores_ = 0.03;  // as in `while (!ready) sleep(0.01);`
  found_.clear();
  watch_ = HangWatch(kTimeout, kInterval);
  Pass(5, {}, {0, 1, 2});
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_THAT(found_[0].text, HasSubstr("it mostly sleeps (0.03 cores), and"));
}

TEST_F(Hangs, WhatAWorkerDidBeforeTheOthersWaitedIsNotWhatItDoes) {
  watch_ = HangWatch(seconds(4), kInterval);
  Pass(10);
  BeginWait(8);
  now_ += seconds(3);  // no sample has been taken since the wait began
  for (auto& worker : workers_) worker->reported = now_;
  const auto found = watch_.Look(workers_, {}, now_);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].text, HasSubstr("it runs, and was last in"));
}

TEST_F(Hangs, AHostWithoutSamplesIsNotSilentWhileItsWorkerReportsOrPrints) {
  const auto pass = [&](bool reports, bool prints) {
    found_.clear();
    for (int i = 0; i < 40; ++i) {
      if (reports) workers_[0]->reported = now_;
      if (prints) workers_[0]->printed = now_;
      Pass(static_cast<int>(kInterval.count()), {0});
    }
  };
  pass(true, false);
  EXPECT_THAT(found_, IsEmpty());
  pass(false, true);
  EXPECT_THAT(found_, IsEmpty());
  pass(false, false);
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_THAT(found_[0].text, HasSubstr("nothing has been heard from host n0"));
}

TEST_F(Hangs, LinesThatAWorkerPrintsAreProgress) {
  printing_ = {1};
  BeginWait(8);
  Pass(600, {}, {0, 1, 2});
  EXPECT_THAT(found_, IsEmpty()) << "it prints, and the others wait for it";
  for (auto& worker : workers_) {
    worker->call = 0;
    worker->inside = false;
    worker->reported.reset();
  }
  Pass(600, {}, {0, 1, 2}, {0, 1, 2});
  EXPECT_THAT(found_, IsEmpty()) << "without an engine, too";
  printing_.clear();
  Pass(100, {}, {0, 1, 2}, {0, 1, 2});
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_EQ(found_[0].kind, Finding::Kind::kAllIdle);
}

TEST_F(Hangs, RoundsThatTakeLongerThanTheTimeoutAreReportedOnce) {
  for (std::uint64_t round = 2; round < 20; ++round) {
    BeginWait(round);
    Pass(65, {}, {0, 1, 2});
    round_ended_ = now_;
  }
  ASSERT_THAT(found_, SizeIs(2)) << "the first and that it is over";
  EXPECT_EQ(found_[0].kind, Finding::Kind::kHoldsUp);
  EXPECT_THAT(found_[1].text,
              HasSubstr("worker 1 continues after 70 s; the next wait will be reported after 140 s"));
  const TimePoint began = now_;
  BeginWait(20);
  Pass(300, {}, {0, 1, 2});
  ASSERT_THAT(found_, SizeIs(3)) << "a hang is";
  EXPECT_LE(when_[2] - began, seconds(145));
}

TEST_F(Hangs, WorkersThatAllSleepInEachRoundAreReportedOnce) {
  for (auto& worker : workers_) worker->reported.reset();
  for (int round = 0; round < 20; ++round) {
    Pass(65, {}, {0, 1, 2}, {0, 1, 2});
    Pass(5, {}, {}, {0, 1, 2});
  }
  ASSERT_THAT(found_, SizeIs(2));
  EXPECT_THAT(found_[1].text, HasSubstr("workers use their processors again after"));
}

TEST_F(Hangs, ARoundThatHasEndedIsNoHangInTheSameSecond) {
  BeginWait(8);
  Pass(55, {}, {0, 1, 2});
  now_ += seconds(4);
  for (auto& worker : workers_) worker->reported = now_;
  round_ended_ = now_;  // the round ended after the reported calls began
  EXPECT_THAT(watch_.Look(workers_, round_ended_, now_), IsEmpty());
  // A round that ended shortly after the call began is the previous round, so this is a hang.
  round_ended_ = workers_[0]->call_since + std::chrono::milliseconds(300);
  EXPECT_THAT(watch_.Look(workers_, round_ended_, now_), SizeIs(1));
}

TEST_F(Hangs, WhoWasLateWhenItLastReportedMayNotBeAnyMore) {
  BeginWait(8);
  workers_[2]->call_since += std::chrono::milliseconds(5);
  Pass(55, {}, {0, 2});
  now_ += seconds(4);
  workers_[0]->reported = workers_[2]->reported = now_;
  EXPECT_THAT(watch_.Look(workers_, {}, now_), IsEmpty()) << "worker 1 reports in a moment";
  workers_[1]->reported = now_;
  const auto found = watch_.Look(workers_, {}, now_);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].text, HasSubstr("holds up 2 others"));
}

TEST_F(Hangs, ALongComputationOfAllIsNone) {
  for (auto& worker : workers_) worker->call_since = now_;
  Pass(3000);
  EXPECT_THAT(found_, IsEmpty());
}

TEST_F(Hangs, WithoutAnEngineItIsSaidThatNobodyDoesAnything) {
  for (auto& worker : workers_) {
    worker->call = 0;
    worker->reported.reset();
  }
  Pass(100, {}, {0, 1});
  EXPECT_THAT(found_, IsEmpty());
  for (auto& worker : workers_) worker->reported.reset();
  for (int i = 0; i < 60; ++i) {
    Pass(5, {}, {0, 1, 2});
    for (auto& worker : workers_) worker->reported.reset();
  }
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_EQ(found_[0].kind, Finding::Kind::kAllIdle);
  EXPECT_THAT(found_[0].text, HasSubstr("the last one that did was worker 2"));
}

TEST_F(Hangs, WorkersThatAllSleepDoNotGoOnWhenOneOfThemIsStopped) {
  for (auto& worker : workers_) {
    worker->call = 0;
    worker->reported.reset();
  }
  Pass(70, {}, {0, 1, 2}, {0, 1, 2});
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_EQ(found_[0].kind, Finding::Kind::kAllIdle);
  workers_[1]->state = 'T';
  workers_[1]->state_since = now_;
  Pass(70, {}, {0, 1, 2}, {0, 1, 2});
  ASSERT_THAT(found_, SizeIs(2));
  EXPECT_EQ(found_[1].kind, Finding::Kind::kStopped);
  workers_[1]->state = 'S';
  Pass(5, {}, {0, 1, 2}, {0, 1, 2});
  ASSERT_THAT(found_, SizeIs(3));
  EXPECT_THAT(found_[2].text, HasSubstr("worker 1 continues"));
}

TEST_F(Hangs, AnEngineThatSaysNothingIsNamedIfItMostlySaysMore) {
  Pass(300, {}, {}, {1});
  EXPECT_THAT(found_, IsEmpty()) << "its interval is not known";
  workers_[1]->report_gap = seconds(100);
  workers_[1]->reported = now_;
  Pass(290, {}, {1}, {1});
  EXPECT_THAT(found_, IsEmpty()) << "it says something every 100 s";
  Pass(20, {}, {}, {1});
  EXPECT_THAT(found_, IsEmpty()) << "it works, and has no engine any more";
  Pass(100, {}, {1}, {1});
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_EQ(found_[0].kind, Finding::Kind::kSilent);
  EXPECT_THAT(found_[0].text,
              HasSubstr("worker 1 uses no processor time, and its engine has reported nothing"));
}

TEST_F(Hangs, WhoHasEndedIsNotLookedAt) {
  workers_[1].reset();
  Pass(600, {1});
  EXPECT_THAT(found_, IsEmpty());
}

TEST_F(Hangs, NothingIsFoundWithoutATimeout) {
  watch_ = HangWatch(seconds(0), kInterval);
  workers_[1]->state = 'T';
  Pass(6000, {2}, {1});
  EXPECT_THAT(found_, IsEmpty());
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
  EXPECT_EQ(monitor_->Snapshot(now_).workers[2].state, WorkerState::kStarting);
  Link();
  monitor_->Exited(1, {3, 0, false, {}}, now_);
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
  monitor_->Printed("[1]\ttrain-auc:0.9", now_);
  auto report = Report(0);
  report.progress = wire::ReportedProgress{1, 2, {{"loss", 0.5}}};
  monitor_->Reported(report, now_);
  monitor_->Printed("[2]\ttrain-auc:0.9", now_);
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
  monitor_->Exited(1, {0, 9, false, {}}, now_);
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
    std::vector<Finding> found;
    for (int second = 0; second < how_long; second += 5) {
      now_ += seconds(5);
      for (std::size_t i = 0; i < 4; ++i) {
        ProcessSample sample;
        sample.state = i == 1 ? state : 'R';
        sample.cpu_seconds = i == 1 ? 1 : std::chrono::duration<double>(now_.time_since_epoch()).count();
        monitor_->Sampled(i, sample, now_);
      }
      for (Finding& one : monitor_->Look(now_)) found.push_back(std::move(one));
    }
    return found;
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
    std::vector<Finding> found;
    for (int second = 0; second < 120; ++second) {
      now_ += seconds(1);
      for (int task = 0; task < 4; ++task) {
        auto report = Report(task);
        report.call = wire::ReportedCall{};
        report.call->number = task == 1 ? 1 : 2;
        report.call->inside = task != 1;
        report.call->seconds = second;
        monitor_->Reported(report, now_);
      }
      if (prints) monitor_->WroteByTracker(2, now_);  // rank 2 is task 1
      for (Finding& one : monitor_->Look(now_)) found.push_back(std::move(one));
    }
    return found;
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
  auto report = Report(0);
  report.progress = wire::ReportedProgress{9, 20, {{"auc", 0.5}}};
  monitor_->Reported(report, now_);
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
  auto report = Report(0);
  for (int round = 0; round < 10; ++round) {
    now_ += seconds(2);
    monitor_->Printed(fmt::format("[{}]\ttrain-auc:0.9", round), now_);
    // Reports count rounds from 1. Here, the report of a round follows the printed line of the next round.
    if (round == 0) continue;
    report.progress = wire::ReportedProgress{round, 50, {}};
    monitor_->Reported(report, now_);
  }
  report.progress->round = 10;
  monitor_->Reported(report, now_);
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
  auto report = Report(0);
  for (int round = 0; round < 5; ++round) {  // printed rounds start at 0 again, reported ones do not
    now_ += seconds(2);
    monitor_->Printed(fmt::format("[{}]\ttrain-auc:0.9", round), now_);
    report.progress = wire::ReportedProgress{31 + round, 50, {}};
    monitor_->Reported(report, now_);
  }
  const auto job = monitor_->Snapshot(now_);
  EXPECT_EQ(job.round, 35);
  ASSERT_TRUE(job.seconds_left);
  EXPECT_NEAR(*job.seconds_left, 15 * 2, 1e-6);
}

TEST_F(Monitored, AnotherWorkerReportsRoundsOnceTheFirstHasBeenLost) {
  Link();
  auto first = Report(0);
  auto other = Report(1);
  first.progress = other.progress = wire::ReportedProgress{1, 9, {{"loss", 0.5}}};
  monitor_->Reported(first, now_);
  monitor_->Reported(other, now_);
  monitor_->Exited(0, {0, 9, false, {}}, now_);
  other.progress = wire::ReportedProgress{2, 9, {{"loss", 0.25}}};
  monitor_->Reported(other, now_);
  EXPECT_EQ(monitor_->Snapshot(now_).round, 2);
  monitor_->Started(0, {200, "n0"}, now_);
  other.progress = wire::ReportedProgress{3, 9, {{"loss", 0.125}}};
  monitor_->Reported(other, now_);
  EXPECT_EQ(monitor_->Snapshot(now_).round, 3) << "the restarted worker has reported nothing yet";
}

TEST_F(Monitored, ATrainingIsTimedFromItsLastRestartOn) {
  Link();
  for (int round = 0; round < 10; ++round) {
    now_ += seconds(1);
    monitor_->Printed(fmt::format("[{}]\ttrain-auc:0.9", round), now_);
  }
  auto report = Report(0);
  report.progress = wire::ReportedProgress{10, 20, {}};
  monitor_->Reported(report, now_);
  monitor_->BeginsAgain(now_);
  now_ += seconds(60);
  for (std::size_t i = 0; i < 4; ++i) monitor_->Started(i, {200 + static_cast<int>(i), "n"}, now_);
  Link();
  for (int round = 8; round < 11; ++round) {
    now_ += seconds(2);
    report.progress = wire::ReportedProgress{round, 20, {{"train-auc", 0.9}}};
    monitor_->Reported(report, now_);
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
      monitor_->Printed(fmt::format("[{}]\ttrain-auc:0.9", round), now_);
    }
    EXPECT_THAT(LiveLine(monitor_->Snapshot(now_), 200), HasSubstr("| 1 s a round"));
  }
}

TEST_F(Monitored, ReportedRoundsWithoutAnyEvaluationAreTimed) {
  Link();
  auto report = Report(0);
  for (int round = 1; round <= 10; ++round) {
    now_ += seconds(3);
    report.progress = wire::ReportedProgress{round, 20, {}};
    monitor_->Reported(report, now_);
  }
  const auto job = monitor_->Snapshot(now_);
  ASSERT_TRUE(job.seconds_left);
  EXPECT_NEAR(*job.seconds_left, 30, 1e-6);
}

TEST_F(Monitored, EvaluationsAreKeptWithinALimit) {
  for (int round = 0; round < 50'000; ++round) monitor_->Printed(fmt::format("[{}]\tm:1", round), now_);
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
    std::vector<Finding> all;
    for (int i = 0; i < how_long; i += 5) {
      now_ += seconds(5);
      for (std::size_t worker = 0; worker < 4; ++worker) {
        const double cpu =
            worker == 1 && state == 'T' ? 7 : std::chrono::duration<double>(now_.time_since_epoch()).count();
        monitor_->Sampled(worker, {worker == 1 ? state : 'R', cpu, 1 << 20}, now_);
      }
      for (Finding& finding : monitor_->Look(now_)) all.push_back(finding);
    }
    return all;
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
  for (int i = 0; i < 60; ++i) {
    now_ += seconds(5);
    for (std::size_t worker = 0; worker < 4; ++worker) monitor_->Sampled(worker, {'S', 1.0 + i, 1}, now_);
    EXPECT_THAT(monitor_->Look(now_), IsEmpty());
  }
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
  for (int i = 0; i < 40; ++i) {
    now_ += seconds(5);
    for (std::size_t worker = 0; worker < 4; ++worker) {
      monitor_->Sampled(worker, {worker == 1 ? 'T' : 'R', worker == 1 ? 1 : 1.0 + 5 * i, 1}, now_);
    }
    monitor_->Look(now_);
  }
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
