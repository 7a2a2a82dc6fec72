// Simulates thousands of elastic jobs whose hosts come, go, and lose workers at random moments. Failure
// messages include the seed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "submit/job/supervisor.h"
#include "tests/random_cases.h"

namespace warren::submit {
namespace {

using namespace std::chrono_literals;

class SeatedWorld : public JobView {
 public:
  explicit SeatedWorld(unsigned seed)
      : random_(seed), max_(Between(1, 8)), min_(Between(1, max_)), supervisor_(Policy(), Plan(), *this) {
    tasks_.resize(static_cast<std::size_t>(max_));
  }

  void Run() {
    Tell([this] { supervisor_.Begin(now_); });
    ChangeHosts();
    Tell([this] { supervisor_.Prepared(now_); });
    for (int step = 0; step < 60 && !over_; ++step) {
      Advance(Between(0, 40'000));
      const int event = Between(1, 10);
      if (event <= 3) {
        ChangeHosts();
      } else if (event <= 8) {
        EndOne();
      } else if (const int task = AnyRunning(); task >= 0) {
        Tell([&] { supervisor_.Assigned(std::to_string(task), 0, now_); });
        tasks_[static_cast<std::size_t>(task)].joined = true;
      }
      CheckSeats();
      if (testing::Test::HasFailure()) return;
    }
    if (over_) return;
    Converge();
  }

 private:
  struct Task {
    bool running = false, leaving = false, joined = false;
    Seat seat;
  };

  RestartPolicy Policy() {
    RestartPolicy policy;
    policy.min_workers = min_;
    policy.places_are_hosts = true;
    policy.hosts_from = "the hosts";
    policy.awaits_hosts = true;
    return policy;
  }
  std::vector<PlannedProcess> Plan() {
    std::vector<PlannedProcess> plan(static_cast<std::size_t>(max_));
    for (int i = 0; i < max_; ++i) plan[static_cast<std::size_t>(i)].task_id = i;
    return plan;
  }

  bool has_tracker() const override { return true; }
  bool is_collective() const override { return false; }
  bool all_assigned() const override { return false; }
  bool linked() const override { return false; }
  bool finished() const override { return false; }
  bool work_is_done() const override { return done_; }
  JobView::Task TaskOf(const std::string&) const override { return {}; }
  bool cluster_is_busy() const override { return false; }

  int Between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  template <typename Event>
  void Tell(Event event) {
    event();
    for (bool more = true; more;) {
      more = false;
      while (const auto action = supervisor_.NextAction()) {
        more = true;
        std::visit([this](const auto& one) { this->Do(one); }, *action);
      }
      supervisor_.Resume(now_);
    }
  }

  template <typename Other>
  void Do(const Other&) {}
  void Do(const StartProcess& start) {
    Task& task = tasks_.at(start.index);
    ASSERT_FALSE(task.running) << "task " << start.index;
    ASSERT_TRUE(start.seat);
    const auto host = FindHost(start.seat->host);
    ASSERT_NE(host, hosts_.end()) << "a start on " << start.seat->host << ", which is not there";
    EXPECT_LT(start.seat->slot, host->slots);
    EXPECT_FALSE(IsLeftOut(start.seat->host)) << start.seat->host << " has been left out";
    for (const Task& other : tasks_) {
      EXPECT_FALSE(other.running && other.seat == *start.seat) << "two tasks in one slot";
    }
    task = {true, false, false, *start.seat};
    supervisor_.Started(start.index, {-1, start.seat->host}, now_);
  }
  void Do(const AskToLeave& ask) {
    Task& task = tasks_.at(ask.index);
    EXPECT_TRUE(task.running && !task.leaving) << "task " << ask.index << " is asked twice, or does not run";
    const auto host = FindHost(task.seat.host);
    EXPECT_TRUE(host == hosts_.end() || task.seat.slot >= host->slots) << "it has its seat";
    task.leaving = true;
    ++asked_;
  }
  void Do(const LogLine& line) {
    const std::size_t lost = line.text.find(" has lost 3 workers");
    if (lost == std::string::npos || line.text.find("gets no more") == std::string::npos) return;
    const std::string host = line.text.substr(0, lost);
    EXPECT_FALSE(IsLeftOut(host)) << host << " is named twice";
    left_out_until_[host] = now_ + kLossMemory;
    ++named_;
  }
  void Do(const StopAll&) { over_ = true; }
  void Do(const FinishJob& finish) {
    EXPECT_TRUE(done_ || finish.result.exit_code != 0) << "the job succeeds before its work is done";
    over_ = true;
  }

  bool IsLeftOut(const std::string& host) const {
    const auto found = left_out_until_.find(host);
    return found != left_out_until_.end() && now_ < found->second;
  }

  std::vector<HostRoom>::const_iterator FindHost(const std::string& name) const {
    return std::find_if(hosts_.begin(), hosts_.end(), [&](const HostRoom& one) { return one.name == name; });
  }

  void Advance(int ms) {
    const TimePoint until = now_ + std::chrono::milliseconds(ms);
    while (supervisor_.NextDeadline() && *supervisor_.NextDeadline() <= until && !over_) {
      now_ = std::max(now_, *supervisor_.NextDeadline());
      Tell([this] { supervisor_.Tick(now_); });
      ASSERT_TRUE(!supervisor_.NextDeadline() || *supervisor_.NextDeadline() > now_) << "a deadline stays";
    }
    now_ = until;
  }

  void ChangeHosts() {
    hosts_.clear();
    for (int i = 0; i < 5; ++i) {
      if (Between(0, 1) == 1) hosts_.push_back({fmt::format("h{}", i), Between(1, 3)});
    }
    Tell([this] { supervisor_.HostsChanged(hosts_, now_); });
  }

  std::ptrdiff_t NumRunning() const {
    return std::count_if(tasks_.begin(), tasks_.end(), [](const Task& one) { return one.running; });
  }

  int AnyRunning() {
    std::vector<int> running;
    for (int i = 0; i < max_; ++i) {
      if (tasks_[static_cast<std::size_t>(i)].running) running.push_back(i);
    }
    return running.empty()
               ? -1
               : running[static_cast<std::size_t>(Between(0, static_cast<int>(running.size()) - 1))];
  }

  void EndOne() {
    const int found = AnyRunning();
    if (found < 0) return;
    const auto index = static_cast<std::size_t>(found);
    Task& task = tasks_[index];
    ExitStatus status;
    if (task.leaving) {
      status.code = 143;
    } else {
      const int kind = Between(0, 2);
      status.signal = kind == 0 ? SIGKILL : 0;
      status.code = kind == 1 ? 255 : kind == 2 ? 143 : 0;
      status.host_lost = kind == 1;
      // Each further loss on a host that is left out extends the time for which it is left out.
      if (IsLeftOut(task.seat.host)) left_out_until_[task.seat.host] = now_ + kLossMemory;
    }
    task = {};
    Tell([&] { supervisor_.Exited(index, status, now_); });
  }

  /// Checks that if a task waits although a usable host has a free slot, the supervisor has a deadline within
  /// kHostRest.
  void CheckSeats() {
    if (over_ || NumRunning() == max_) return;
    for (const HostRoom& host : hosts_) {
      if (IsLeftOut(host.name)) continue;
      const auto here = std::count_if(tasks_.begin(), tasks_.end(), [&](const Task& one) {
        return one.running && one.seat.host == host.name && one.seat.slot < host.slots;
      });
      if (here == host.slots) continue;
      EXPECT_TRUE(supervisor_.NextDeadline() && *supervisor_.NextDeadline() <= now_ + kHostRest)
          << "task waits, and " << host.name << " has room";
    }
  }

  /// Ends the tasks that were asked to leave, with the exit code of SIGTERM.
  void EndThoseThatLeave() {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (!tasks_[i].leaving) continue;
      tasks_[i] = {};
      Tell([&] { supervisor_.Exited(i, {.code = 143}, now_); });
    }
  }

  /// Checks that all available slots are used after a while without changes, and that the job ends when its
  /// work is done.
  void Converge() {
    hosts_ = {{"h0", 2}, {"new", 3}};
    Tell([this] { supervisor_.HostsChanged(hosts_, now_); });
    EndThoseThatLeave();
    Advance(20 * 60'000);
    // A worker that has the training's state may have stayed on a removed host until another worker joins.
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].running) Tell([&] { supervisor_.Assigned(std::to_string(i), 0, now_); });
    }
    EndThoseThatLeave();
    EXPECT_EQ(NumRunning(), std::min(max_, 5)) << "of " << max_;
    done_ = true;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].running) Tell([&] { supervisor_.Exited(i, {}, now_); });
    }
    EXPECT_TRUE(over_) << "the job does not end";
  }

  std::mt19937 random_;
  int max_;
  int min_;
  Supervisor supervisor_;
  std::vector<Task> tasks_;
  std::vector<HostRoom> hosts_;
  std::map<std::string, TimePoint> left_out_until_;
  TimePoint now_{1h};
  bool done_ = false;
  bool over_ = false;

 public:
  int named_ = 0;
  int asked_ = 0;
};

TEST(SeatsSimulation, SlotsAreUsedAsFarAsTheyMayBeAndNoHostIsNamedTwice) {
  const unsigned jobs = RandomCases(20'000);
  const unsigned first = std::random_device{}();
  int named = 0;
  int asked = 0;
  for (unsigned i = 0; i < jobs && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("seed {}", first + i));
    SeatedWorld world(first + i);
    world.Run();
    named += world.named_;
    asked += world.asked_;
  }
  EXPECT_GT(named, 100);
  EXPECT_GT(asked, 100);
}

}  // namespace
}  // namespace warren::submit
