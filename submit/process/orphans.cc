#include "submit/process/orphans.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "posix/process.h"

namespace warren::submit {
namespace {

constexpr std::chrono::milliseconds kEndInterval{2};
/// The maximum time to wait for killed processes. They are gone almost immediately unless they hang in the
/// kernel; then waiting longer is pointless.
constexpr std::chrono::milliseconds kEndLimit{1000};

/// Reads a file of /proc. Returns an empty string if the process is gone, even if it exits between open and
/// read. (An iterator over the file's buffer would throw in that case.)
std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');
  return text;
}

struct Place {
  pid_t group = 0;
  pid_t session = 0;
};

/// Parses the text of /proc/<pid>/stat. The state, parent, group and session follow the name in parentheses.
Place PlaceOf(const std::string& stat) {
  Place place;
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return place;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string state;
  pid_t parent = 0;
  fields >> state >> parent >> place.group >> place.session;
  return place;
}

}  // namespace

void BecomeSubreaper() {
  posix::BecomeSubreaper();
}

std::vector<pid_t> AdoptedOrphans(const std::set<pid_t>& known) {
  std::istringstream children(ReadText(fmt::format("/proc/self/task/{}/children", getpid())));
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
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (std::isdigit(static_cast<unsigned char>(name.front())) == 0) continue;
    const Place place = PlaceOf(ReadText(entry->path() / "stat"));
    if (sessions.contains(place.session) && !sessions.contains(place.group))
      escaped.push_back(std::stoi(name));
  }
  return escaped;
}

}  // namespace warren::submit
