// Thousands of simulated jobs run against the state machine of --cluster ssh. Connections to simulated hosts
// are refused, break off and are stopped at random moments; a simulated job restarts and stops its processes
// as JobRun does. Failure messages include the seed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <random>
#include <set>

#include "submit/cluster/script.h"
#include "submit/cluster/ssh_controller.h"
#include "submit/process/watchdog.h"
#include "tests/random_cases.h"
#include "tests/submit/cluster/simulated_world.h"

namespace warren::submit {
namespace {

constexpr char kSshMark[] = "wmark";

class SshWorld : public SimulatedWorld<SshWorld, SshController> {
 public:
  explicit SshWorld(unsigned seed) : SimulatedWorld(seed) {
    trouble_ = Between(0, 2) * 3;
    restarts_ = Between(0, 2);
    job_restarts_ = Between(0, 2);
    binds_ = Chance(50);
    end_ = static_cast<std::size_t>(Chance(10) ? Between(10, 40) : Between(1, 6));
    hosts_.resize(static_cast<std::size_t>(Chance(10) ? Between(17, 20) : Between(1, 3)));
    for (std::size_t i = 0; i < end_; ++i) places_.push_back(i % hosts_.size());
    std::vector<SshHost> named;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      hosts_[i].slots = Between(1, 4);
      named.push_back({fmt::format("node{}", i), hosts_[i].slots});
    }
    copies_ = Chance(30);
    controller_.emplace(named, places_, kSshMark, copies_ ? "/job" : "");
  }

 private:
  friend SimulatedWorld;

  struct HostState {
    int copying = 0;
    bool copied = false;
    int connecting = 0;
    bool gone = false;
    int slots = 1;
  };
  /// An ssh command, and the script and the process that it runs on its host.
  struct Ssh {
    std::size_t index;
    std::size_t host;
    bool connecting = true;
    bool awaits_cores = false;
    bool runs = false;  ///< whether the process is running
    bool told_to_end = false;
    TimePoint heard_at = {};
  };

  // --- the simulated job ---------------------------------------------------------------------------------

  void PrepareStart() {
    for (HostState& host : hosts_) host.copied = false;
    controller_->Prepare();
  }
  void Do(const HostsReady&) {
    for (const HostState& host : hosts_) {
      EXPECT_TRUE(!copies_ || host.copied) << "processes before their files" << Describe();
    }
    if (phase_ == Phase::kRunning) StartProcesses();
  }

  void StartProcess(std::size_t index) {
    const std::size_t host = controller_->HostFor(index, now_);
    const bool any_left =
        std::any_of(hosts_.begin(), hosts_.end(), [](const HostState& one) { return !one.gone; });
    EXPECT_TRUE(!hosts_[host].gone || !any_left) << "host " << host << " is gone" << Describe();
    EXPECT_TRUE(host == places_[index] || hosts_[places_[index]].gone) << Describe();
    for (std::size_t other = 0; host != places_[index] && other < hosts_.size(); ++other) {
      EXPECT_TRUE(hosts_[other].gone || Load(host) <= Load(other))
          << "host " << host << " has load " << Load(host) << ", host " << other << " " << Load(other)
          << Describe();
    }
    host_of_[index] = host;
    controller_->Start(index, host, fmt::format("{}", index), now_);
  }

  double Load(std::size_t host) const {
    const auto here = std::count_if(host_of_.begin(), host_of_.end(),
                                    [host](const auto& process) { return process.second == host; });
    return static_cast<double>(here) / hosts_[host].slots;
  }

  bool IsBusy() const { return false; }
  void CheckStop() {
    ASSERT_LT(now_, stopped_at_ + kStopGrace + std::chrono::seconds(1))
        << "a stop does not end it" << Describe();
  }
  void CheckEnd() { EXPECT_TRUE(sshs_.empty()) << "an ssh is left" << Describe(); }

  void CheckExit(const ProcessExited& exited) {
    if (exited.status.ok()) {
      EXPECT_TRUE(did_well_.contains(exited.index))
          << "process " << exited.index << " did not end well" << Describe();
    }
    did_well_.erase(exited.index);
    host_of_.erase(exited.index);
  }

  using SimulatedWorld::Do;
  void Do(const ProcessLocated& located) {
    EXPECT_TRUE(running_.contains(located.index)) << Describe();
    EXPECT_EQ(located.where.pid, 17);
  }
  void Do(const ProcessSampled& sampled) { EXPECT_TRUE(running_.contains(sampled.index)) << Describe(); }
  void Do(const ProcessWrote& wrote) {
    EXPECT_TRUE(running_.contains(wrote.index)) << Describe();
    EXPECT_EQ(wrote.bytes.find(kSshMark), std::string::npos) << "a message is taken for output";
  }

  // --- copies --------------------------------------------------------------------------------------------

  void Do(const CopyToHost& copy) {
    ASSERT_TRUE(copies_);
    int copying = 0;
    for (const HostState& host : hosts_) copying += host.copying;
    ASSERT_LT(copying, static_cast<int>(kCopyingAtOnce)) << Describe();
    if (Trouble()) return controller_->CopyFailed("there is no rsync");
    ++hosts_[copy.host].copying;
    After(Between(10, 2000), [this, host = copy.host, well = !Trouble()] {
      --hosts_[host].copying;
      hosts_[host].copied = well;
      controller_->CopyEnded(host, {well ? 0 : 12, 0, false, {}}, well ? "" : "no space\n");
    });
  }
  void Do(const StopCopies&) {}

  // --- connections ---------------------------------------------------------------------------------------

  void Do(const ConnectSsh& connect) {
    HostState& host = hosts_[connect.host];
    ASSERT_LT(host.connecting, kConnectingAtOnce) << Describe();
    const auto index = static_cast<std::size_t>(std::stoi(connect.script));
    for (const auto& [id, other] : sshs_) {
      ASSERT_NE(other.index, index) << "process " << index << " is there already" << Describe();
    }
    if (Trouble()) {
      host_of_.erase(index);
      return controller_->NotConnected(connect.ssh, {127, 0, false, "there is no ssh"});
    }
    ++host.connecting;
    sshs_[connect.ssh] = {index, connect.host};
    if (Trouble(2)) {
      return In(connect.ssh, Between(10, 3000), [this, id = connect.ssh](Ssh& ssh) {
        hosts_[ssh.host].gone = hosts_[ssh.host].gone || !stops_;
        controller_->Wrote(id, Stream::kErr, "Permission denied\n");
        End(id, {255, 0, false, {}});
      });
    }
    In(connect.ssh, Between(10, 3000), [this, id = connect.ssh](Ssh& ssh) {
      if (!binds_) return Begin(id);
      ssh.awaits_cores = true;
      Say(id, "cores 4 0 0-3 / 0 1 2 3 / 0-3");
    });
  }

  /// Calls `what` after `ms`, if the ssh command is still running then.
  void In(SshId id, int ms, const std::function<void(Ssh&)>& what) {
    After(ms, [this, id, what] {
      const auto found = sshs_.find(id);
      if (found != sshs_.end()) what(found->second);
    });
  }

  /// Delivers a message from the script, sometimes in two pieces.
  void Say(SshId id, const std::string& words) {
    const std::string message = fmt::format("\036{} {} {}\036\n", kSshMark, sshs_.at(id).index, words);
    const auto cut = static_cast<std::size_t>(Between(0, static_cast<int>(message.size())));
    controller_->Wrote(id, Stream::kErr, std::string_view(message).substr(0, cut));
    controller_->Wrote(id, Stream::kErr, std::string_view(message).substr(cut));
  }

  void Do(const SendCores& send) {
    Ssh& ssh = sshs_.at(send.ssh);
    ASSERT_TRUE(ssh.awaits_cores) << Describe();
    EXPECT_EQ(send.index, ssh.index);
    EXPECT_EQ(send.host, ssh.host);
    EXPECT_EQ(send.report, "4 0 0-3 / 0 1 2 3 / 0-3");
    In(send.ssh, Between(1, 50), [this, id = send.ssh](Ssh&) { Begin(id); });
  }

  void Begin(SshId id) {
    Ssh& ssh = sshs_.at(id);
    EndConnecting(ssh);
    ssh.runs = true;
    ssh.heard_at = now_;
    Say(id, "start 0 17 its-own-name");
    In(id, 1000, [this, id](Ssh&) { Say(id, "usage 0 R 17 100 2048"); });
    const int duration = Between(300, 20'000);
    In(id, Between(0, duration - 1), [this, id](Ssh&) {
      controller_->Wrote(id, Chance(50) ? Stream::kOut : Stream::kErr, "a line\n");
      if (Chance(50)) controller_->AskForStacks(sshs_.at(id).index);
    });
    if (Trouble(2)) {
      In(id, duration, [this, id](Ssh& one) {
        hosts_[one.host].gone = hosts_[one.host].gone || !stops_;
        End(id, {255, 0, false, {}});
      });
    } else {
      In(id, duration, [this, id](Ssh&) { EndProcess(id, Trouble(4) ? 3 : 0); });
    }
  }

  void EndConnecting(Ssh& ssh) {
    if (std::exchange(ssh.connecting, false)) --hosts_[ssh.host].connecting;
  }

  void EndProcess(SshId id, int code) {
    Ssh& ssh = sshs_.at(id);
    if (!std::exchange(ssh.runs, false)) return;
    if (code == 0) did_well_.insert(ssh.index);
    Say(id, fmt::format("exit 0 {}", code));
    In(id, Between(0, 100), [this, id](Ssh&) { End(id, {0, 0, false, {}}); });
  }

  void End(SshId id, const ExitStatus& status) {
    EndConnecting(sshs_.at(id));
    host_of_.erase(sshs_.at(id).index);
    sshs_.erase(id);
    controller_->Exited(id, status, now_);
  }

  void Do(const SendLine& send) {
    const auto found = sshs_.find(send.ssh);
    ASSERT_TRUE(found != sshs_.end()) << Describe();
    // The script gets a line at least every two intervals. After ten intervals without a line, it would end.
    EXPECT_LE(now_, found->second.heard_at + 2 * kBeatInterval) << Describe();
    if (send.line == "\n") found->second.heard_at = now_;
    if (send.line != "stacks\n") return;
    In(send.ssh, Between(1, 500), [this, id = send.ssh](Ssh& ssh) {
      if (ssh.runs) Say(id, "stacks");
    });
  }
  void Do(const StacksArrived& stacks) { EXPECT_TRUE(running_.contains(stacks.message.index)) << Describe(); }

  // --- the end -------------------------------------------------------------------------------------------

  void Do(const EndInput& end) {
    sshs_.at(end.ssh).told_to_end = true;
    if (Trouble()) return;  // the process hangs until it is killed
    In(end.ssh, Between(0, 650), [this, id = end.ssh](Ssh&) { EndProcess(id, 143); });
  }
  void Do(const StopSsh& stop) {
    if (!sshs_.contains(stop.ssh)) return;  // ssh failed to start; the controller has not been told yet
    sshs_.at(stop.ssh).told_to_end = true;
    if (Trouble()) return;
    In(stop.ssh, Between(0, 300), [this, id = stop.ssh](Ssh&) { End(id, {0, SIGTERM, false, {}}); });
  }
  void Do(const KillSshs&) {
    EXPECT_GE(now_, stopped_at_ + kStopGrace) << "killed before the grace is over" << Describe();
    for (const auto& [id, ssh] : sshs_) {
      EXPECT_TRUE(ssh.told_to_end) << "ssh " << id << " was not told to end before" << Describe();
      In(id, Between(0, 20), [this, id = id](Ssh&) { End(id, {0, SIGKILL, false, {}}); });
    }
  }

  void CheckActions() {
    stops_ = phase_ == Phase::kStopping || phase_ == Phase::kRestarting || phase_ == Phase::kOver;
  }

  std::string Describe() const {
    std::string text = DescribeJob();
    for (const auto& [id, ssh] : sshs_) {
      text += fmt::format("\n  ssh {} of process {} to host {}: connecting {}, runs {}", id, ssh.index,
                          ssh.host, ssh.connecting, ssh.runs);
    }
    return text;
  }

  bool binds_ = false;
  bool copies_ = false;
  bool stops_ = false;
  std::vector<HostState> hosts_;
  std::vector<std::size_t> places_;
  std::map<SshId, Ssh> sshs_;
  std::map<std::size_t, std::size_t> host_of_;  ///< the host of each process that has not ended
  std::set<std::size_t> did_well_;
};

TEST(SshSimulation, EveryProcessEndsOnceAndNothingIsLeftWhateverFails) {
  const unsigned jobs = RandomCases(20'000);
  const unsigned first = std::random_device{}();
  for (unsigned i = 0; i < jobs && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("seed {}", first + i));
    SshWorld(first + i).Run();
  }
}

}  // namespace
}  // namespace warren::submit
