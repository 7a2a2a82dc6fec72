#include "submit/process/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "posix/descriptor.h"
#include "wire/whole_number.h"

namespace warren::submit {
namespace {

/// Parses the number at the beginning of `text`, and removes it and the blank after it. Returns false if
/// there is no number.
template <typename Number>
bool TakeNumber(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return true;
}

bool SkipFields(std::string_view& text, int count) {
  for (; count > 0; --count) {
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return false;
    text.remove_prefix(blank + 1);
  }
  return true;
}

/// Combines the states of a worker's processes as ProcessSample::state describes.
class StateOfAll {
 public:
  void Add(char state, bool is_own) {
    if (is_own) own_ = state;
    if (state == 'T' || state == 't') stopped_ = state;
    if (state == 'R') runs_ = true;
    if (state == 'D') waits_ = true;
  }
  char Get() const {
    if (stopped_ != 0) return stopped_;
    if (own_ == 'D') return 'D';
    if (runs_) return 'R';
    return waits_ ? 'D' : own_;
  }

 private:
  char own_ = '?';
  char stopped_ = 0;
  bool runs_ = false;
  bool waits_ = false;
};

}  // namespace

/// The text is "PID (NAME) STATE PARENT GROUP SESSION ..."; fields are numbered from 1 as in proc(5).
std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  ProcessStat stat;
  if (!TakeNumber(text, stat.pid)) return std::nullopt;
  const std::size_t name_end = text.rfind(')');  // a name may contain parentheses, blanks and newlines
  if (name_end == std::string_view::npos || name_end + 4 > text.size()) return std::nullopt;
  stat.state = text[name_end + 2];
  text.remove_prefix(name_end + 4);
  if (!TakeNumber(text, stat.parent) || !TakeNumber(text, stat.group) || !TakeNumber(text, stat.session) ||
      !SkipFields(text, 7))
    return std::nullopt;
  for (int field = 14; field <= 17; ++field) {  // utime, stime, cutime, cstime
    std::uint64_t ticks = 0;
    if (!TakeNumber(text, ticks)) return std::nullopt;
    stat.ticks += ticks;
  }
  if (!SkipFields(text, 24 - 18) || !TakeNumber(text, stat.resident_pages)) return std::nullopt;
  return stat;
}

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    if (const auto pid = wire::WholeNumber<pid_t>(entry->path().filename().string())) pids.push_back(*pid);
  }
  return pids;
}

std::optional<ProcessStat> ReadProcessStat(pid_t pid) {
  std::array<char, 2048> text{};
  const posix::Descriptor file(
      open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t count = file ? read(file.get(), text.data(), text.size()) : -1;
  if (count <= 0) return std::nullopt;  // the process is gone
  return ParseProcessStat({text.data(), static_cast<std::size_t>(count)});
}

std::map<pid_t, ProcessSample> SamplesOf(const std::vector<pid_t>& workers,
                                         const std::vector<ProcessStat>& all, const ProcessUnits& units) {
  constexpr pid_t kNobody = 0;
  const std::unordered_set<pid_t> wanted(workers.begin(), workers.end());
  std::unordered_map<pid_t, const ProcessStat*> by_pid;
  for (const ProcessStat& stat : all) by_pid[stat.pid] = &stat;

  std::unordered_map<pid_t, pid_t> worker_of;  // known so far; kNobody for processes of no worker
  const auto find_worker = [&](pid_t pid) {
    std::vector<pid_t> way;
    pid_t worker = kNobody;
    for (;;) {
      if (const auto known = worker_of.find(pid); known != worker_of.end()) {
        worker = known->second;
        break;
      }
      const auto found = by_pid.find(pid);
      way.push_back(pid);
      // The parents were not all read at the same time, so they might form a cycle.
      worker_of[pid] = kNobody;
      if (wanted.contains(pid)) worker = pid;
      if (found != by_pid.end() && wanted.contains(found->second->session)) worker = found->second->session;
      if (worker != kNobody || found == by_pid.end()) break;
      pid = found->second->parent;
    }
    for (const pid_t member : way) worker_of[member] = worker;
    return worker;
  };

  std::map<pid_t, ProcessSample> samples;
  std::map<pid_t, StateOfAll> states;
  for (const ProcessStat& stat : all) {
    const pid_t worker = find_worker(stat.pid);
    if (worker == kNobody || !by_pid.contains(worker)) continue;
    ProcessSample& sample = samples[worker];
    sample.cpu_seconds += static_cast<double>(stat.ticks) / units.ticks_per_second;
    sample.resident_bytes += stat.resident_pages * units.page_bytes;
    states[worker].Add(stat.state, stat.pid == worker);
  }
  for (auto& [worker, sample] : samples) sample.state = states[worker].Get();
  return samples;
}

}  // namespace warren::submit
