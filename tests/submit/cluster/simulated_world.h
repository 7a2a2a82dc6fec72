// The base of the simulations of the clusters' state machines: randomness, time, and a simulated job, which
// restarts its processes, restarts as a whole and stops as JobRun does.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "submit/cluster/cluster_event.h"

namespace warren::submit {

/// Base class of `World`, which sets the members below and creates the controller (the state machine).
/// `World` must define:
/// - Do(action) for each action of the controller, and for each ClusterEvent without a Do() here;
/// - StartProcess(index), which makes the controller start a process;
/// - Describe(), the state as text for failure messages.
/// `World` may replace PrepareStart, MayRestart, MayBeLeftOut, IsBusy, MayFollowTheEnd and the checks.
template <typename World, typename Controller>
class SimulatedWorld {
 public:
  /// Runs until the job is over and then for another minute, in which only events that MayFollowTheEnd allows
  /// may occur.
  void Run() {
    StartAll();
    if (Chance(30)) After(Between(0, 40'000), [this] { StopJob(); });
    const TimePoint limit = now_ + std::chrono::hours(3);
    while (phase_ != Phase::kOver && Step()) {
      ASSERT_LT(now_, limit) << "the job does not end" << world().Describe();
      if (phase_ == Phase::kStopping) world().CheckStop();
    }
    ASSERT_EQ(phase_, Phase::kOver) << "no event is left, but the job is not over" << world().Describe();
    EXPECT_TRUE(running_.empty()) << world().Describe();
    world().CheckEnd();
    const TimePoint quiet = now_ + std::chrono::seconds(60);
    while (now_ < quiet && Step()) continue;
  }

 protected:
  enum class Phase { kRunning, kRestarting, kStopping, kOver };

  explicit SimulatedWorld(unsigned seed) : random_(seed) {}

  // --- chance and time -----------------------------------------------------------------------------------

  int Between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool Chance(int percent) { return Between(1, 100) <= percent; }
  /// Whether something goes wrong now; the probability differs from job to job, and is multiplied by `parts`.
  bool Trouble(int parts = 1) { return Chance(trouble_ * parts); }
  void After(int ms, std::function<void()> what) {
    coming_.emplace(now_ + std::chrono::milliseconds(ms), std::move(what));
  }
  void Soon(std::function<void()> what) { After(Between(0, 300), std::move(what)); }
  std::int64_t Milliseconds() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now_.time_since_epoch()).count();
  }

  /// Runs the next event or, if that is earlier, advances the time to the controller's next deadline. Returns
  /// false if there is neither, or if the test has failed.
  bool Step() {
    const auto deadline = controller_->NextDeadline();
    if (coming_.empty() && !deadline) return false;
    if (!coming_.empty() && (!deadline || coming_.begin()->first <= *deadline)) {
      const auto next = coming_.begin();
      now_ = next->first;
      const auto what = std::move(next->second);
      coming_.erase(next);
      what();
    } else {
      now_ = std::max(now_, *deadline);
      controller_->Tick(now_);
      const auto after = controller_->NextDeadline();
      EXPECT_TRUE(!after || *after > now_) << "a deadline that has passed stays" << world().Describe();
    }
    Perform();
    return !testing::Test::HasFailure();
  }

  void Perform() {
    for (auto actions = controller_->TakeActions(); !actions.empty(); actions = controller_->TakeActions()) {
      for (const auto& action : actions) {
        std::visit([this](const auto& one) { world().Do(one); }, action);
      }
    }
    world().CheckActions();
    FinishWhenAllAreGone();
  }

  // --- the simulated job ---------------------------------------------------------------------------------

  void StartAll() {
    phase_ = Phase::kRunning;
    ++starts_;
    failures_.clear();
    succeeded_ = 0;
    world().PrepareStart();
    Perform();
  }

  /// Starts all processes. A world that must do something first replaces this function.
  void PrepareStart() { StartProcesses(); }
  void StartProcesses() {
    for (std::size_t i = first_; i < end_ && phase_ == Phase::kRunning; ++i) Start(i);
  }

  void Start(std::size_t index) {
    ASSERT_TRUE(running_.insert(index).second) << world().Describe();
    world().StartProcess(index);
  }

  void StopJob() {
    if (phase_ == Phase::kStopping || phase_ == Phase::kOver) return;
    phase_ = Phase::kStopping;
    stopped_at_ = now_;
    controller_->Stop(now_);
  }

  void BeginAgain() {
    phase_ = Phase::kRestarting;
    controller_->Stop(now_);
  }

  void BeginAgainOrStop() {
    if (phase_ != Phase::kRunning || job_restarts_ == 0) return StopJob();
    --job_restarts_;
    BeginAgain();
  }

  void FinishWhenAllAreGone() {
    if (!running_.empty()) return;
    if (phase_ == Phase::kRunning && succeeded_ == end_ - first_) phase_ = Phase::kOver;
    if (world().IsBusy()) return;
    if (phase_ == Phase::kStopping) phase_ = Phase::kOver;
    if (phase_ == Phase::kRestarting) StartAll();
  }

  bool MayRestart(std::size_t /*index*/) const { return true; }
  /// Whether the job may go on without a process that has ended with this status.
  bool MayBeLeftOut(const ExitStatus& /*status*/) const { return false; }
  bool IsBusy() const { return controller_->busy(); }
  bool MayFollowTheEnd(const ClusterEvent& event) const {
    return std::holds_alternative<LogLine>(event) || std::holds_alternative<LauncherSaid>(event);
  }
  void CheckExit(const ProcessExited& /*exited*/) {}
  void CheckStop() {}
  void CheckEnd() {}
  void CheckActions() {}

  void Do(const ProcessExited& exited) {
    const std::size_t index = exited.index;
    ASSERT_EQ(running_.erase(index), 1U) << "process " << index << " ended twice" << world().Describe();
    ASSERT_NE(phase_, Phase::kOver) << world().Describe();
    world().CheckExit(exited);
    if (phase_ != Phase::kRunning) return;
    const bool left_out = world().MayBeLeftOut(exited.status);
    if (exited.status.ok() || (left_out && !running_.empty())) {
      ++succeeded_;
    } else if (!left_out && failures_[index]++ < restarts_ && world().MayRestart(index)) {
      // JobRun may wait for other failures before it restarts a process.
      const int ms = Chance(30) ? Between(0, 3000) : 0;
      if (ms == 0) return Start(index);
      After(ms, [this, index, start = starts_] {
        if (phase_ == Phase::kRunning && start == starts_) Start(index);
      });
    } else {
      BeginAgainOrStop();
    }
  }
  void Do(const ProcessWrote&) {}
  void Do(const ProcessLocated&) {}
  void Do(const ProcessSampled&) { FAIL(); }
  void Do(const LauncherSaid&) {}
  void Do(const JobWaits&) {}
  void Do(const JobRequeued&) { FAIL(); }
  void Do(const TrackerFailed&) { FAIL(); }
  void Do(const JobTroubled&) { StopJob(); }
  void Do(const LogLine&) {}
  void Do(const ClusterEvent& event) {
    ASSERT_TRUE(phase_ != Phase::kOver || world().MayFollowTheEnd(event))
        << "something happens after the end" << world().Describe();
    std::visit([this](const auto& one) { world().Do(one); }, event);
  }

  /// The job's state as text.
  std::string DescribeJob() const {
    std::string text =
        fmt::format("\n  phase {} at {} ms, running", static_cast<int>(phase_), Milliseconds());
    for (const std::size_t index : running_) text += fmt::format(" {}", index);
    return text;
  }

  std::mt19937 random_;
  int trouble_ = 0;  ///< the probability of trouble, in percent
  int restarts_ = 0;
  int job_restarts_ = 0;
  std::size_t first_ = 0;  ///< the processes' indices are from first_ to end_ - 1
  std::size_t end_ = 0;
  std::optional<Controller> controller_;

  TimePoint now_{std::chrono::hours(1)};
  Phase phase_ = Phase::kRunning;
  std::set<std::size_t> running_;
  std::size_t succeeded_ = 0;
  int starts_ = 0;
  TimePoint stopped_at_;

 private:
  World& world() { return static_cast<World&>(*this); }
  const World& world() const { return static_cast<const World&>(*this); }

  std::multimap<TimePoint, std::function<void()>> coming_;
  std::map<std::size_t, int> failures_;
};

}  // namespace warren::submit
