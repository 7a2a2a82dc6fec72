// Workers that are stopped, hang or hold up the others.
#include "submit/monitor/hang_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace warren::submit {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

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

  /// Takes the workers' engines away: they make no calls and do not report.
  void RemoveEngines() {
    for (auto& worker : workers_) {
      worker->call = 0;
      worker->inside = false;
      worker->reported.reset();
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
  RemoveEngines();
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
  RemoveEngines();
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
  RemoveEngines();
  Pass(100, {}, {0, 1}, {0, 1, 2});
  EXPECT_THAT(found_, IsEmpty());
  Pass(300, {}, {0, 1, 2}, {0, 1, 2});
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_EQ(found_[0].kind, Finding::Kind::kAllIdle);
  EXPECT_THAT(found_[0].text, HasSubstr("the last one that did was worker 2"));
}

TEST_F(Hangs, WorkersThatAllSleepDoNotGoOnWhenOneOfThemIsStopped) {
  RemoveEngines();
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

}  // namespace
}  // namespace warren::submit
