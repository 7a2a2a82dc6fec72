#include "submit/process/orphans.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "submit/process/process_stat.h"

namespace warren::submit {
namespace {

constexpr std::chrono::milliseconds kEndInterval{2};
/// The maximum time to wait for killed processes. They are gone almost immediately unless they hang in the
/// kernel; then waiting longer is pointless.
constexpr std::chrono::milliseconds kEndLimit{1000};

}  // namespace

std::vector<pid_t> AdoptedOrphans(const std::set<pid_t>& known) {
  std::string text;
  std::getline(std::ifstream(fmt::format("/proc/self/task/{}/children", getpid())), text);
  std::istringstream children(text);
  std::vector<pid_t> orphans;
  for (pid_t pid = 0; children >> pid;) {
    if (!known.contains(pid) && waitpid(pid, nullptr, WNOHANG) == 0) orphans.push_back(pid);
  }
  return orphans;
}

void EndOrphans(const std::set<pid_t>& known) {
  const auto end = std::chrono::steady_clock::now() + kEndLimit;
  // Killing an orphan may leave its children to be adopted.
  for (auto orphans = AdoptedOrphans(known); !orphans.empty(); orphans = AdoptedOrphans(known)) {
    for (const pid_t pid : orphans) kill(pid, SIGKILL);
    if (std::chrono::steady_clock::now() > end) return;
    std::this_thread::sleep_for(kEndInterval);
  }
}

std::vector<pid_t> EscapedFromGroups(const std::set<pid_t>& sessions) {
  std::vector<pid_t> escaped;
  for (const pid_t pid : AllProcesses()) {
    const std::optional<ProcessStat> stat = ReadProcessStat(pid);
    if (stat && sessions.contains(stat->session) && !sessions.contains(stat->group)) escaped.push_back(pid);
  }
  return escaped;
}

}  // namespace warren::submit
