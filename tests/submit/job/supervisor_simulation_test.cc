// Runs the supervisor on simulated jobs. Processes, tracker, cluster and clock are a model in which anything
// may fail at any moment. Failure messages include the seed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "submit/job/supervisor.h"
#include "submit/process/command.h"

namespace warren::submit {
namespace {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::milliseconds;

/// Upper bound on the time from a stop to the end of the job, with slack. It is doubled because a restart may
/// fail while it stops the job, which is then stopped again.
constexpr auto kLongestEnd = 2 * (10s + kClusterPatience);

/// Number of seeds that each test tries.
constexpr unsigned kJobs = 5000;

enum class TrackerKind { kNone, kRabit, kCollective };

struct Scenario {
  int workers = 1;
  int servers = 0;
  TrackerKind tracker = TrackerKind::kRabit;
  RestartPolicy policy;
};

std::vector<PlannedProcess> PlanOf(const Scenario& scenario) {
  std::vector<PlannedProcess> plan;
  const auto add = [&](tracker::Role role, int count) {
    for (int i = 0; i < count; ++i) {
      plan.emplace_back();
      plan.back().role = role;
      plan.back().task_id = i;
    }
  };
  if (scenario.servers > 0) add(tracker::Role::kScheduler, 1);
  add(tracker::Role::kServer, scenario.servers);
  add(tracker::Role::kWorker, scenario.workers);
  return plan;
}

ExitStatus ExitedWith(int code) {
  return {.code = code};
}

ExitStatus KilledBy(int signal) {
  return {.signal = signal};
}

/// A simulated job. Derived classes schedule the events of its processes; this class checks the rules that
/// hold for every job.
class SimulatedJob : public JobView {
 public:
  SimulatedJob(const Scenario& scenario, unsigned seed)
      : scenario_(scenario),
        random_(seed),
        plan_(PlanOf(scenario)),
        processes_(plan_.size()),
        supervisor_(scenario.policy, plan_, *this) {}

  /// Runs until the job is over. Returns false if a rule was broken; wrong() names the rule.
  bool Run() {
    At(0ms, [this] { Tell([this] { supervisor_.Begin(now_); }, kTrouble); });
    for (int steps = 0; !result_ && wrong_.empty(); ++steps) {
      const auto deadline = supervisor_.NextDeadline();
      const bool event_first = !events_.empty() && (!deadline || events_.begin()->first <= *deadline);
      if (!event_first && !deadline) return Wrong("nothing will ever happen, and the job has not ended");
      if (steps > 100000) return Wrong("there is no end to it");
      if (event_first) {
        now_ = events_.begin()->first;
        const auto happens = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        happens();
      } else {
        now_ = std::max(now_, *deadline);
        Tell([this] { supervisor_.Tick(now_); }, kTrouble);
      }
    }
    if (!wrong_.empty()) return false;
    CheckSilenceAfterTheEnd();
    return wrong_.empty();
  }

  /// The broken rule, the events before it, and the job's error message.
  std::string wrong() const { return fmt::format("{}\n{}told: {}", wrong_, history_, story_); }
  JobResult result() const { return *result_; }
  int starts(std::size_t index) const { return processes_[index].starts; }
  int begins() const { return begins_; }
  /// The job's error message.
  const std::string& story() const { return story_; }

 protected:
  struct Process {
    bool running = false;
    int starts = 0;
    int starts_of_this_begin = 0;
    int life = 0;  ///< incremented when the process ends, which cancels the events of this life
    bool stubborn = false;
    // The tracker's view:
    bool joined = false, linked = false, shut_down = false;
    std::optional<int> gone_after;
  };

  // --- events that derived classes schedule ---------------------------------------------------------------

  /// Called when the process has begun attempt number `attempt`.
  virtual void OnStarted(std::size_t index, int attempt) = 0;
  /// Whether the process fails to start.
  virtual bool StartFails(std::size_t) { return false; }
  virtual bool ReplanFails() { return false; }
  virtual void OnReported(const std::string&) {}
  virtual void OnAllLinked() {}
  /// The time that a process takes to end when asked to; nullopt if it never ends.
  virtual std::optional<Milliseconds> TimeToStop() { return Random(600); }
  virtual Milliseconds TimeOfCluster() { return 0ms; }

  void At(Milliseconds after, std::function<void()> what) { events_.emplace(now_ + after, std::move(what)); }
  /// Calls `what` after the given time, unless the process has ended by then.
  void InThisLife(std::size_t index, Milliseconds after, std::function<void()> what) {
    At(after, [this, index, life = processes_[index].life, what = std::move(what)] {
      if (processes_[index].life == life && processes_[index].running) what();
    });
  }
  int Number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool Chance(double probability) { return std::bernoulli_distribution(probability)(random_); }
  Milliseconds Random(int most) { return Milliseconds(Number(0, most)); }

  /// Passes an event to the supervisor and performs its actions. `code` is the job's exit code if this event
  /// ends the job.
  void Tell(const std::function<void()>& event, int code) {
    event_code_ = code;
    event();
    if (carrying_out_) return;
    carrying_out_ = true;
    while (auto action = supervisor_.NextAction()) {
      if (result_) return void(Wrong("an action after the end"));
      std::visit([this](const auto& one) { this->Do(one); }, *action);
    }
    carrying_out_ = false;
  }

  void Exit(std::size_t index, const ExitStatus& status) {
    Happened(fmt::format("{} {}", index, status.Describe()));
    Process& process = processes_[index];
    process.running = false;
    ++process.life;
    --running_;
    if (!process.shut_down && linked_) linked_ = false;
    if (!all_assigned_) process.joined = false;
    Tell([&] { supervisor_.Exited(index, status, now_); }, status.ok() ? kTrouble : status.ShellCode());
  }

  void Join(std::size_t index) {
    Happened(fmt::format("{} joins", index));
    processes_[index].joined = true;
    const auto joined = Count(&Process::joined);
    Tell([&] { supervisor_.Joined(joined, scenario_.workers, now_); }, kTrouble);
    if (!tracker_runs_ || joined < scenario_.workers) return;
    all_assigned_ = true;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (!processes_[i].running) return;
      Tell([&] { supervisor_.Assigned(std::to_string(i), static_cast<int>(i), now_); }, kTrouble);
    }
    At(Random(20), [this, begin = begins_] {
      const bool all_there =
          std::all_of(processes_.begin(), processes_.end(), [](const Process& p) { return p.running; });
      if (begin == begins_ && tracker_runs_ && all_there) Link();
    });
  }

  void Link() {
    Happened("all are linked");
    linked_ = true;
    for (Process& process : processes_) process.linked = true;
    Tell([&] { supervisor_.Linked(now_); }, kTrouble);
    OnAllLinked();
  }

  void ShutDown(std::size_t index) {
    Happened(fmt::format("{} leaves", index));
    if (!tracker_runs_ || processes_[index].shut_down) return;
    processes_[index].gone_after = Count(&Process::shut_down);
    processes_[index].shut_down = true;
    if (Count(&Process::shut_down) < scenario_.workers) return;
    finished_ = true;
    Tell([&] { supervisor_.TrackerFinished("", now_); }, kTrouble);
  }

  int Count(bool Process::*what) const {
    return static_cast<int>(
        std::count_if(processes_.begin(), processes_.end(), [&](const Process& p) { return p.*what; }));
  }

  void Happened(const std::string& what) {
    history_ += fmt::format("  {:6} ms: {}\n",
                            std::chrono::duration_cast<Milliseconds>(now_ - TimePoint()).count(), what);
  }

  bool Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
    return false;
  }

  const Scenario scenario_;
  std::mt19937 random_;
  TimePoint now_{};
  std::vector<PlannedProcess> plan_;
  std::vector<Process> processes_;
  Supervisor supervisor_;
  bool tracker_runs_ = true;
  bool cluster_busy_ = false;
  int begins_ = 0;
  int requeues_ = 0;

 private:
  // --- the supervisor's queries ---------------------------------------------------------------------------

  bool has_tracker() const override { return scenario_.tracker != TrackerKind::kNone; }
  bool is_collective() const override { return scenario_.tracker == TrackerKind::kCollective; }
  bool all_assigned() const override { return all_assigned_; }
  bool linked() const override { return linked_; }
  bool finished() const override { return finished_; }
  bool work_is_done() const override { return false; }
  Task TaskOf(const std::string& task_id) const override {
    const Process& process = processes_.at(std::stoul(task_id));
    return {process.linked, process.shut_down, process.gone_after};
  }
  bool cluster_is_busy() const override { return cluster_busy_; }

  // --- the supervisor's actions ---------------------------------------------------------------------------

  void Do(const PrepareCluster&) {
    Happened("-> prepare");
    ++begins_;
    stopped_ = false;
    if (begins_ - requeues_ > scenario_.policy.max_restarts + 1) Wrong("more restarts than --max-restarts");
    for (Process& process : processes_) {
      if (process.running) Wrong("the job begins anew beside a process of its last start");
      const int starts = process.starts;
      const int life = process.life;
      process = {};
      process.starts = starts;
      process.life = life;
    }
    all_assigned_ = linked_ = finished_ = false;
    tracker_runs_ = true;
    At(Random(10), [this, begin = begins_] {
      if (begin == begins_) Tell([this] { supervisor_.Prepared(now_); }, kTrouble);
    });
  }

  void Do(const StartProcess& start) {
    Happened(fmt::format("-> start {}, attempt {}", start.index, start.attempt));
    Process& process = processes_[start.index];
    if (process.running) Wrong("a process is started that runs");
    if (stopped_) Wrong("a process is started in a job that is being stopped");
    if (process.starts > 0 && start.attempt <= last_attempt_[start.index]) Wrong("an attempt is told twice");
    last_attempt_[start.index] = start.attempt;
    if (++process.starts_of_this_begin > scenario_.policy.num_restarts + 1) {
      Wrong("more starts of a process than --local-num-attempt allows");
    }
    if (StartFails(start.index)) {
      Tell([&] { supervisor_.StartFailed(start.index, kNotFound, "it is not there", now_); }, kNotFound);
      return;
    }
    ++process.starts;
    process.running = true;
    process.joined = process.linked = process.shut_down = false;
    process.gone_after.reset();
    ++running_;
    Tell([&] { supervisor_.Started(start.index, {1, "host"}, now_); }, kTrouble);
    OnStarted(start.index, start.attempt);
  }

  void Do(const ResumeSoon&) {
    At(0ms, [this, code = event_code_] { Tell([this] { supervisor_.Resume(now_); }, code); });
  }

  void Do(const ReportFailure& failure) {
    Happened("-> report " + failure.task_id);
    OnReported(failure.task_id);
  }
  void Do(const AskToLeave&) { Wrong("a process is asked to leave a job with fixed hosts"); }
  void Do(const ExpectWorkers&) { Wrong("a job with a fixed number of workers expects another one"); }
  void Do(const StopTracker&) {
    Happened("-> stop the tracker");
    tracker_runs_ = false;
  }

  void Do(const StopAll&) {
    Happened("-> stop");
    tracker_runs_ = false;
    stopped_ = true;
    stopped_at_ = stopped_at_.value_or(now_);
    code_of_stop_ = event_code_;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (!processes_[i].running) continue;
      if (const auto time = TimeToStop()) {
        InThisLife(i, *time, [this, i] { Exit(i, Chance(0.5) ? KilledBy(SIGTERM) : ExitedWith(0)); });
      }
    }
    const Milliseconds time = TimeOfCluster();
    if (time == 0ms) return;
    cluster_busy_ = true;
    At(time, [this] {
      cluster_busy_ = false;
      Tell([this] { supervisor_.ClusterIdle(now_); }, kTrouble);
    });
  }

  void Do(const KillAll&) {
    Happened("-> kill");
    if (!stopped_) Wrong("processes are killed that were not asked to end");
  }

  void Do(const Replan&) {
    Happened("-> plan anew");
    if (running_ > 0) Wrong("the job is planned anew while processes of it run");
    if (cluster_busy_) Wrong("the job is planned anew while the cluster is busy");
    if (ReplanFails()) {
      Tell([this] { supervisor_.ReplanFailed("no port is free", now_); }, kTrouble);
    } else {
      stopped_at_.reset();
      Tell([this] { supervisor_.Replanned(now_); }, kTrouble);
    }
  }

  void Do(const LogLine& say) {
    if (say.severity != Severity::kDebug) Happened("-> say " + say.text);
    if (say.severity != Severity::kError) return;
    if (say.text.find("left running") != std::string::npos) {
      ++left_behind_;
      return;
    }
    if (!story_.empty()) Wrong("two reasons are told");
    story_ = say.text;
  }

  void Do(const ShowErrorOf& whose) {
    if (processes_[whose.index].running) Wrong("an error is shown of a process that runs");
  }
  void Do(const ShowErrors& errors) {
    if (errors.repeat_last_output && std::exchange(tail_shown_, true))
      Wrong("the last output is shown twice");
    if (running_ > left_behind_) Wrong("errors are shown while some are still to come");
  }
  void Do(const ShowProgress&) {
    if (stopped_) Wrong("progress is shown of a job that is being stopped");
  }
  void Do(const HideProgress&) {}
  void Do(const TellAllAreUp&) {}
  void Do(const TellOfSeparatePrograms&) { Happened("-> separate programs"); }

  void Do(const FinishJob& finish) {
    Happened(fmt::format("-> finish {}", finish.result.exit_code));
    result_ = finish.result;
    const bool failed = finish.result.exit_code != 0;
    if (failed == story_.empty()) Wrong("a failure without its story, or a story without a failure");
    if (running_ > 0 && !stopped_) Wrong("the job is over and processes run that nobody stopped");
    if (running_ > left_behind_) Wrong("processes are left behind without a word");
    if (!failed &&
        std::any_of(processes_.begin(), processes_.end(), [](const Process& p) { return p.starts == 0; }))
      Wrong("success although a process was never started");
    if (tracker_runs_) Wrong("the tracker runs on");
    if (stopped_at_ && now_ - *stopped_at_ > kLongestEnd) Wrong("it takes too long to end");
    if (!failed && stopped_) Wrong("success of a job that was stopped");
    if (failed && !is_collective() && finish.result.exit_code != code_of_stop_) {
      Wrong(fmt::format("exit code {}, but what ended the job means {}", finish.result.exit_code,
                        code_of_stop_));
    }
  }

  /// Checks that nothing happens after the job's end.
  void CheckSilenceAfterTheEnd() {
    const auto silent = [&](const char* when) {
      if (supervisor_.NextAction()) Wrong(fmt::format("an action after the end, {}", when));
      if (supervisor_.NextDeadline()) Wrong(fmt::format("it waits for something after the end, {}", when));
    };
    silent("at once");
    supervisor_.Resume(now_);
    supervisor_.Signalled(SIGINT, now_);
    supervisor_.Trouble("late", now_);
    supervisor_.ClusterIdle(now_);
    supervisor_.TrackerFinished("late", now_);
    supervisor_.Broken("0", "late", now_);
    supervisor_.Tick(now_ + 1h);
    silent("when something happens");
  }

  std::multimap<TimePoint, std::function<void()>> events_;
  std::map<std::size_t, int> last_attempt_;
  bool carrying_out_ = false;
  int event_code_ = 0;
  int code_of_stop_ = 0;  ///< the exit code for the event that last stopped the job
  bool all_assigned_ = false, linked_ = false, finished_ = false;
  bool stopped_ = false;
  std::optional<TimePoint> stopped_at_;
  int running_ = 0;
  int left_behind_ = 0;
  bool tail_shown_ = false;
  std::string story_;
  std::optional<JobResult> result_;
  std::string wrong_;
  std::string history_;
};

// --- random events at any moment ---------------------------------------------------------------------------

class Chaos : public SimulatedJob {
 public:
  Chaos(const Scenario& scenario, unsigned seed) : SimulatedJob(scenario, seed) {
    trouble_ = Chance(0.5) ? 0.0 : 0.3;
    const auto sometimes = [&](double probability, std::function<void()> what) {
      if (Chance(probability)) At(Random(3000), std::move(what));
    };
    for (const int signal : {SIGINT, SIGINT, SIGTERM}) {
      sometimes(trouble_ / 3,
                [this, signal] { Tell([&] { supervisor_.Signalled(signal, now_); }, 128 + signal); });
    }
    sometimes(trouble_ / 3, [this] { Tell([this] { supervisor_.ReaderGone(now_); }, kReaderGone); });
    sometimes(trouble_ / 3, [this] { Tell([this] { supervisor_.Trouble("trouble", now_); }, kTrouble); });
    sometimes(trouble_ / 3, [this] { Tell([this] { supervisor_.TrackerFailed("gone", now_); }, kTrouble); });
    for (int i = 0; i < 2; ++i) {
      sometimes(trouble_, [this] {
        ++requeues_;  // an upper bound: requeues are ignored while the job is being stopped
        Tell([this] { supervisor_.Requeued("requeued", now_); }, kTrouble);
      });
    }
  }

 private:
  ExitStatus AnyFailure() {
    constexpr int kSignals[] = {SIGKILL, SIGSEGV, SIGTERM, SIGABRT};
    return Chance(0.5) ? ExitedWith(Number(1, 127)) : KilledBy(kSignals[Number(0, 3)]);
  }

  void OnStarted(std::size_t index, int) override {
    if (Chance(0.3)) {
      InThisLife(index, Random(500), [this, index] {
        Tell([&] { supervisor_.Located(index, {2, "elsewhere"}, now_); }, kTrouble);
      });
    }
    if (Chance(0.3)) InThisLife(index, Random(2500), [this, index] { Exit(index, AnyFailure()); });
    if (Chance(0.05)) InThisLife(index, Random(2500), [this, index] { Exit(index, ExitedWith(0)); });
    if (scenario_.tracker == TrackerKind::kNone) {
      InThisLife(index, 100ms + Random(2000), [this, index] { Exit(index, ExitedWith(0)); });
      return;
    }
    InThisLife(index, Random(500), [this, index] { Join(index); });
    ExpectLinks();
  }

  /// Ends the tracker after 20 s if a running process is still not linked.
  void ExpectLinks() {
    At(20s, [this, begin = begins_] {
      const bool one_waits = std::any_of(processes_.begin(), processes_.end(),
                                         [](const Process& p) { return p.running && !p.linked; });
      if (begin != begins_ || !tracker_runs_ || !one_waits) return;
      Tell([this] { supervisor_.TrackerFinished("workers are missing", now_); }, kTrouble);
    });
  }

  void OnAllLinked() override {
    broken_ = false;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (Chance(0.3)) InThisLife(i, Random(2000), [this, i] { Exit(i, AnyFailure()); });
      InThisLife(i, Random(2000), [this, i] {
        if (Chance(0.95)) ShutDown(i);
        InThisLife(i, Random(100), [this, i] { Exit(i, Chance(0.05) ? AnyFailure() : ExitedWith(0)); });
      });
    }
  }

  void OnReported(const std::string& task) override {
    if (std::exchange(broken_, true)) return;
    const auto tell = [this, task] {
      Tell([&] { supervisor_.Broken(task, "worker " + task + " failed", now_); }, kTrouble);
    };
    if (Chance(0.5)) {
      tell();
    } else {
      At(Random(50), tell);
    }
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      InThisLife(i, Random(Chance(0.1) ? 7000 : 300), [this, i] { Exit(i, AnyFailure()); });
    }
  }

  bool StartFails(std::size_t) override { return Chance(trouble_ / 10); }
  bool ReplanFails() override { return Chance(trouble_ / 10); }
  std::optional<Milliseconds> TimeToStop() override {
    if (Chance(trouble_ / 30)) return std::nullopt;
    return Random(Chance(0.1) ? 6000 : 700);
  }
  Milliseconds TimeOfCluster() override {
    if (Chance(0.7)) return 0ms;
    return Random(Chance(trouble_) ? 60000 : 500);
  }

  double trouble_ = 0;
  bool broken_ = false;  ///< whether a failure has been reported since all workers were linked
};

class SupervisorSimulation : public testing::Test {
 protected:
  /// Uses a different seed in each run, to test more jobs over time. WARREN_TEST_SEED repeats a run.
  SupervisorSimulation() : first_(std::random_device()()) {
    if (const char* seed = std::getenv("WARREN_TEST_SEED")) first_ = static_cast<unsigned>(std::stoul(seed));
  }

  unsigned first_;
};

Scenario AnyScenario(std::mt19937& random) {
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Scenario scenario;
  scenario.workers = number(1, 6);
  scenario.tracker = static_cast<TrackerKind>(number(0, 2));
  if (scenario.tracker == TrackerKind::kNone) scenario.servers = number(0, 2);
  scenario.policy = {number(0, 2), number(0, 3)};
  return scenario;
}

TEST_F(SupervisorSimulation, EveryJobEndsByTheRulesWhateverHappensToIt) {
  std::map<int, int> codes;
  int begun_again = 0;
  for (unsigned i = 0; i < kJobs; ++i) {
    const unsigned seed = first_ + i;
    std::mt19937 random(seed);
    Chaos job(AnyScenario(random), seed);
    ASSERT_TRUE(job.Run()) << "seed " << seed << ": " << job.wrong();
    ++codes[job.result().exit_code];
    if (job.begins() > 1) ++begun_again;
  }
  // Enough jobs are simulated for each of these exit codes to occur.
  for (const int code : {0, kTrouble, kReaderGone, 128 + SIGINT, 128 + SIGTERM, 128 + SIGSEGV, kNotFound}) {
    EXPECT_GT(codes[code], 0) << code;
  }
  EXPECT_GT(begun_again, 100);
  fmt::print("seeds {} to {}: {} succeeded, {} were begun again\n", first_, first_ + kJobs - 1, codes[0],
             begun_again);
}

// --- one worker at fault -----------------------------------------------------------------------------------

constexpr int kCulpritCode = 77;
constexpr int kVictimCode = 255;

/// One worker fails at a random moment in each of its attempts. The others fail because of it, as with
/// XGBoost 2.1, or keep running.
class OneAtFault : public SimulatedJob {
 public:
  OneAtFault(const Scenario& scenario, unsigned seed)
      : SimulatedJob(scenario, seed),
        culprit_(static_cast<std::size_t>(Number(0, scenario.workers - 1))),
        says_error_(scenario.workers == 1 || Chance(0.5)) {}

  std::size_t culprit() const { return culprit_; }

 private:
  void OnStarted(std::size_t index, int) override {
    InThisLife(index, Random(300), [this, index] { Join(index); });
    if (scenario_.tracker != TrackerKind::kCollective && index == culprit_) {
      InThisLife(index, Random(1000), [this] { Exit(culprit_, ExitedWith(kCulpritCode)); });
    }
  }

  void OnAllLinked() override {
    if (scenario_.tracker != TrackerKind::kCollective) return;
    InThisLife(culprit_, Random(1000), [this] { BreakDown(); });
  }

  /// The culprit leaves the job or reports its error to the tracker. All workers fail soon afterwards, the
  /// culprit not necessarily first.
  void BreakDown() {
    if (says_error_) {
      Tell([this] { supervisor_.Broken(std::to_string(culprit_), "worker failed", now_); }, kTrouble);
    } else {
      ShutDown(culprit_);
    }
    InThisLife(culprit_, Random(says_error_ ? 4000 : 400),
               [this] { Exit(culprit_, ExitedWith(kCulpritCode)); });
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (i == culprit_) continue;
      InThisLife(i, Random(400), [this, i] { Exit(i, ExitedWith(kVictimCode)); });
    }
  }

  void OnReported(const std::string& task) override {
    if (says_error_) return;  // the first error has already been reported
    Tell([&] { supervisor_.Broken(task, "worker failed", now_); }, kTrouble);
  }

  const std::size_t culprit_;
  const bool says_error_;
};

TEST_F(SupervisorSimulation, TheExitCodeIsThatOfTheWorkerWithWhichItBegan) {
  for (unsigned i = 0; i < kJobs; ++i) {
    const unsigned seed = first_ + i;
    std::mt19937 random(seed);
    Scenario scenario = AnyScenario(random);
    scenario.servers = 0;
    OneAtFault job(scenario, seed);
    if (scenario.tracker == TrackerKind::kNone) continue;
    ASSERT_TRUE(job.Run()) << "seed " << seed << ": " << job.wrong();
    ASSERT_EQ(job.result().exit_code, kCulpritCode) << "seed " << seed << "; told: " << job.story();
    ASSERT_EQ(job.story().find(fmt::format("worker {} ", job.culprit())), 0U)
        << "seed " << seed << "; told: " << job.story();
    ASSERT_EQ(job.begins(), scenario.policy.max_restarts + 1) << "seed " << seed;
    // All restarts were used before the job was given up.
    ASSERT_EQ(job.starts(job.culprit()),
              (scenario.policy.max_restarts + 1) * (scenario.policy.num_restarts + 1))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace warren::submit
