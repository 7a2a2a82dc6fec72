#include "rabit_engine/bootstrap/slurm_step.h"

#include <fmt/format.h>

#include <cstdint>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/parse_number.h"

namespace warren {
namespace {

using wire::FindVariable;
using wire::LookUp;

/// The maximum number of hosts in a list. No cluster has more, so a longer list is a mistake or an attempt to
/// exhaust memory.
constexpr std::size_t kMaxHosts = std::size_t{1} << 20;
/// The range of meeting ports, below those that Linux and most other systems use for outgoing connections.
constexpr int kFirstPort = 20000;
constexpr int kNumPorts = 10000;
/// The number of ports that rank 0 may try: another job on the same host may be using the first ones.
constexpr int kPortsToTry = 8;

[[noreturn]] void RefuseList(std::string_view list, const std::string& why) {
  throw EngineError(fmt::format("the list of hosts \"{}\" cannot be read: {}", list, why));
}

/// Splits a list at its commas, except those inside brackets.
std::vector<std::string_view> SplitOutsideBrackets(std::string_view list) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0)) {
      if (depth != 0) RefuseList(list, "a bracket is not closed");
      if (i == begin) RefuseList(list, "a name is empty");
      items.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    } else if (list[i] == '[') {
      if (++depth > 1) RefuseList(list, "brackets are nested");
    } else if (list[i] == ']') {
      if (--depth < 0) RefuseList(list, "a bracket is closed but was not opened");
    }
  }
  return items;
}

/// Expands "01-04,7" into one string per number, zero-padded like the first number of its range.
std::vector<std::string> ExpandRanges(std::string_view ranges, std::string_view list) {
  std::vector<std::string> numbers;
  for (const std::string_view range : SplitOutsideBrackets(ranges)) {
    const std::size_t dash = range.find('-');
    const std::string_view low_text = range.substr(0, dash);
    const auto low = ParseNumber<std::uint64_t>(low_text);
    const auto high =
        dash == std::string_view::npos ? low : ParseNumber<std::uint64_t>(range.substr(dash + 1));
    if (!low || !high || *high < *low)
      RefuseList(list, fmt::format("\"{}\" is not a range of numbers", range));
    if (*high - *low >= kMaxHosts - numbers.size())
      RefuseList(list, fmt::format("it names more than {} hosts", kMaxHosts));
    for (std::uint64_t i = 0; i <= *high - *low; ++i) {  // *high may be the greatest number
      numbers.push_back(fmt::format("{:0{}}", *low + i, low_text.size()));
    }
  }
  return numbers;
}

void AppendHosts(const std::string& prefix, std::string_view rest, std::string_view list,
                 std::vector<std::string>& hosts) {
  const std::size_t open = rest.find('[');
  if (open == std::string_view::npos) {
    if (hosts.size() == kMaxHosts) RefuseList(list, fmt::format("it names more than {} hosts", kMaxHosts));
    hosts.push_back(prefix + std::string(rest));
    return;
  }
  const std::size_t close = rest.find(']', open);
  for (const std::string& number : ExpandRanges(rest.substr(open + 1, close - open - 1), list)) {
    AppendHosts(fmt::format("{}{}{}", prefix, rest.substr(0, open), number), rest.substr(close + 1), list,
                hosts);
  }
}

std::string Required(const LookUp& look_up, const char* name) {
  if (auto value = look_up(name)) return *value;
  throw EngineError(fmt::format(
      "WARREN_BOOTSTRAP=slurm: {} is not set, so srun did not start this process; "
      "start the program with srun (inside sbatch as well), with mpiexec of MPICH, or use a tracker",
      name));
}

int RequiredInt(const LookUp& look_up, const char* name, const std::string& text, int low, int high) {
  if (const auto value = ParseNumber(text, low, high)) return *value;
  throw EngineError(fmt::format("WARREN_BOOTSTRAP=slurm: {}={}, expected a number from {} to {}", name,
                                look_up(name).value_or(text), low, high));
}

std::vector<int> MeetingPorts(const LookUp& look_up, const std::string& job, const std::string& step) {
  if (const auto asked = FindVariable("WARREN_BOOTSTRAP_PORT", look_up)) {
    return {RequiredInt(look_up, asked->name, asked->value, 1, 65535)};
  }
  // Jobs that run at the same time often have consecutive numbers. The factors give each job, and each of its
  // first eight steps, different ports.
  const std::uint64_t place = ParseNumber<std::uint64_t>(job).value_or(0) * 67 +
                              ParseNumber<std::uint64_t>(step).value_or(0) * kPortsToTry;
  std::vector<int> ports;
  ports.reserve(kPortsToTry);
  for (int i = 0; i < kPortsToTry; ++i)
    ports.push_back(kFirstPort + static_cast<int>((place + i) % kNumPorts));
  return ports;
}

/// Returns WARREN_BOOTSTRAP_HOST if it is set, otherwise the first node of the step; tasks on that node use
/// the loopback address, so that a step on one node needs no resolvable node names.
std::string MeetingHost(const LookUp& look_up) {
  if (const auto asked = FindVariable("WARREN_BOOTSTRAP_HOST", look_up)) return asked->value;
  if (look_up("SLURM_NODEID") == "0") return "127.0.0.1";
  return ExpandHostList(Required(look_up, "SLURM_STEP_NODELIST")).front();
}

}  // namespace

std::vector<std::string> ExpandHostList(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string_view item : SplitOutsideBrackets(list)) AppendHosts("", item, list, hosts);
  return hosts;
}

SlurmStep ReadSlurmStep(const LookUp& look_up) {
  constexpr int kMaxTasks = 1 << 24;
  const std::string job = Required(look_up, "SLURM_JOB_ID");
  const std::string step_id = Required(look_up, "SLURM_STEP_ID");
  SlurmStep step;
  step.id = job + "." + step_id;
  step.world_size =
      RequiredInt(look_up, "SLURM_STEP_NUM_TASKS", Required(look_up, "SLURM_STEP_NUM_TASKS"), 1, kMaxTasks);
  step.rank = RequiredInt(look_up, "SLURM_PROCID", Required(look_up, "SLURM_PROCID"), 0, step.world_size - 1);
  step.meeting_host = MeetingHost(look_up);
  step.meeting_ports = MeetingPorts(look_up, job, step_id);
  // The token includes srun's host and port: srun passes them only to the tasks of its step, and steps that
  // run at the same time have different ones.
  const auto secret = FindVariable("WARREN_BOOTSTRAP_TOKEN", look_up);
  step.token = fmt::format("{}:{}:{}", look_up("SLURM_SRUN_COMM_HOST").value_or(""),
                           look_up("SLURM_SRUN_COMM_PORT").value_or(""), secret ? secret->value : "");
  return step;
}

}  // namespace warren
