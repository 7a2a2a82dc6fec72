#include "rabit_engine/base/settings.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/parse_number.h"
#include "rabit_engine/base/say.h"
#include "wire/variables.h"

namespace warren {
namespace {

// rabit's default for rabit_timeout_sec. It limits recovery and, with rabit_timeout=1, collectives.
constexpr std::chrono::seconds kDefaultCollectiveTimeout{1800};

// The settings while they are being read; some of them combine two variables.
struct Reading {
  Settings settings;
  std::string_view name;  // the name with which the current value was set
  bool timeout = false;
  std::chrono::seconds timeout_sec = kDefaultCollectiveTimeout;
  bool has_task_id = false;
};

bool ParseSeconds(const std::string& text, std::chrono::seconds& value) {
  constexpr long kYear = 366L * 24 * 3600;  // far longer timeouts would overflow a clock in nanoseconds
  const auto seconds = ParseNumber(text, 0L, kYear);
  if (seconds) value = std::chrono::seconds(*seconds);
  return seconds.has_value();
}

bool ParseDecimalSeconds(const std::string& text, std::chrono::milliseconds& value) {
  constexpr double kDay = 24 * 3600;
  const char* const end = text.data() + text.size();
  double seconds = 0;
  const auto [stop, error] = fast_float::from_chars(text.data(), end, seconds);
  if (error != std::errc{} || stop != end || !(seconds >= 0 && seconds <= kDay)) return false;
  value = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
  return true;
}

bool Same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool ParseBool(const std::string& text, bool& value) {
  const bool yes = text == "1" || Same(text, "true");
  if (!yes && text != "0" && !Same(text, "false")) return false;
  value = yes;
  return true;
}

// Parses a size such as "4096", "64KB", "256MB" or "1GB"; the B is optional.
bool ParseBytes(const std::string& text, std::size_t& value) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = ParseNumber<std::size_t>(std::string_view(text).substr(0, digits));
  std::string_view unit = std::string_view(text).substr(digits);
  if (!unit.empty() && (unit.back() == 'B' || unit.back() == 'b')) unit.remove_suffix(1);
  int shift = 0;
  if (Same(unit, "K")) shift = 10;
  if (Same(unit, "M")) shift = 20;
  if (Same(unit, "G")) shift = 30;
  if (!unit.empty() && shift == 0) return false;
  if (!number || *number > std::numeric_limits<std::size_t>::max() >> shift) return false;
  value = *number << shift;
  return true;
}

template <typename T>
struct Word {
  std::string_view word;
  T value;
};
template <typename T, std::size_t kCount>
bool ParseWord(const std::string& text, const Word<T> (&words)[kCount], T& value) {
  for (const Word<T>& entry : words) {
    if (!Same(entry.word, text)) continue;
    value = entry.value;
    return true;
  }
  return false;
}

// One setting: its names as an argument of Init and in the environment, and the function that parses it. Both
// names are accepted in both places, because programs also pass DMLC_TRACKER_URI=... as an argument; only
// "mock" is not read from the environment. wire/variables.cc has the former names and the accepted values.
struct Setting {
  const char* argument;
  const char* variable;
  bool (*read)(const std::string& text, Reading& reading);
};

// The parsers of settings that are stored as they are.
template <bool Settings::*kMember>
bool ReadBool(const std::string& text, Reading& reading) {
  return ParseBool(text, reading.settings.*kMember);
}
template <std::string Settings::*kMember>
bool ReadText(const std::string& text, Reading& reading) {
  reading.settings.*kMember = text;
  return true;
}
template <int Settings::*kMember, int kLeast, int kMost>
bool ReadNumber(const std::string& text, Reading& reading) {
  const auto number = ParseNumber(text, kLeast, kMost);
  if (number) reading.settings.*kMember = *number;
  return number.has_value();
}
template <std::chrono::seconds Settings::*kMember, int kLeast>
bool ReadSeconds(const std::string& text, Reading& reading) {
  return ParseSeconds(text, reading.settings.*kMember) && (reading.settings.*kMember).count() >= kLeast;
}
template <auto kMember, const auto& kWords>
bool ReadWord(const std::string& text, Reading& reading) {
  // NOLINTNEXTLINE(readability-redundant-parentheses): clang-tidy sees some around a member of deduced type.
  return ParseWord(text, kWords, reading.settings.*kMember);
}

constexpr Word<EngineKind> kEngines[] = {{"native", EngineKind::kNative}, {"mpi", EngineKind::kMpi}};
constexpr Word<BootstrapKind> kBootstraps[] = {{"auto", BootstrapKind::kAuto},
                                               {"tracker", BootstrapKind::kTracker},
                                               {"mpi", BootstrapKind::kMpi},
                                               {"slurm", BootstrapKind::kSlurm},
                                               {"none", BootstrapKind::kNone}};
constexpr Word<SharedMemory> kSharedMemory[] = {{"auto", SharedMemory::kAuto}, {"off", SharedMemory::kOff}};
constexpr Word<Packing> kPacking[] = {
    {"auto", Packing::kAuto}, {"off", Packing::kOff}, {"always", Packing::kAlways}};

constexpr int kMaxCount = 1'000'000;
constexpr int kMaxWorldSize = 1 << 17;
constexpr std::size_t kMaxTaskIdBytes = 1024;

constexpr Setting kSettings[] = {
    // --- the job ---
    {"rabit_tracker_uri", "DMLC_TRACKER_URI",
     [](const std::string& text, Reading& r) {
       r.settings.tracker_host = text == "NULL" ? "" : text;
       return true;
     }},
    {"rabit_tracker_port", "DMLC_TRACKER_PORT", ReadNumber<&Settings::tracker_port, 1, 65535>},
    {nullptr, wire::kTokenVariable.data(),
     [](const std::string& text, Reading& r) {
       try {
         r.settings.job_token = wire::JobToken::Parse(text);
       } catch (const std::invalid_argument&) {
         return false;
       }
       return true;
     }},
    {nullptr, "WARREN_TLS", ReadBool<&Settings::tls>},
    {"rabit_task_id", "DMLC_TASK_ID",
     [](const std::string& text, Reading& r) {
       if (text.size() > kMaxTaskIdBytes) return false;
       r.settings.task_id = text;
       r.has_task_id = true;
       return true;
     }},
    {"rabit_world_size", "rabit_world_size",
     [](const std::string& text, Reading& r) {
       return ReadNumber<&Settings::world_size, -1, kMaxWorldSize>(text, r) && r.settings.world_size != 0;
     }},
    {nullptr, "DMLC_NUM_WORKER",
     [](const std::string& text, Reading& r) {
       // Invalid values are ignored, because this variable belongs to the launcher.
       ReadNumber<&Settings::num_workers, 0, kMaxCount>(text, r);
       return true;
     }},
    {nullptr, "DMLC_NUM_ATTEMPT", ReadNumber<&Settings::num_attempt, 0, kMaxCount>},
    {nullptr, "DMLC_MAX_ATTEMPT", ReadNumber<&Settings::max_attempt, 0, kMaxCount>},
    {nullptr, "DMLC_WORKER_CONNECT_RETRY", ReadNumber<&Settings::connect_retry, 0, kMaxCount>},
    {nullptr, "DMLC_ROLE",
     [](const std::string& text, Reading& r) {
       r.settings.role = text;
       return text == "worker" || text == "server" || text == "scheduler";
     }},
    // --- the engine ---
    {nullptr, "WARREN_ENGINE", ReadWord<&Settings::engine, kEngines>},
    {nullptr, "WARREN_BOOTSTRAP", ReadWord<&Settings::bootstrap, kBootstraps>},
    {nullptr, "WARREN_SHARED_MEMORY", ReadWord<&Settings::shared_memory, kSharedMemory>},
    {nullptr, "WARREN_HOST_GROUP",
     [](const std::string& text, Reading& r) {
       r.settings.host_group = text;
       return text.find('\n') == std::string::npos;
     }},
    {nullptr, "WARREN_PACKING", ReadWord<&Settings::packing, kPacking>},
    {nullptr, "WARREN_REPRODUCIBLE", ReadBool<&Settings::reproducible>},
    {nullptr, "WARREN_ALGORITHM",
     [](const std::string& text, Reading& r) {
       r.settings.algorithm = text;
       r.settings.algorithm_name = r.name;
       return true;
     }},
    {nullptr, "WARREN_PRINT_CHOICE", ReadBool<&Settings::print_choice>},
    {"rabit_reduce_buffer", "rabit_reduce_buffer",
     [](const std::string& text, Reading& r) {
       return ParseBytes(text, r.settings.reduce_buffer_bytes) && r.settings.reduce_buffer_bytes > 0;
     }},
    {"rabit_timeout", "rabit_timeout",
     [](const std::string& text, Reading& r) { return ParseBool(text, r.timeout); }},
    {"rabit_timeout_sec", "rabit_timeout_sec",
     [](const std::string& text, Reading& r) { return ParseSeconds(text, r.timeout_sec); }},
    {nullptr, "WARREN_CONNECT_TIMEOUT", ReadSeconds<&Settings::connect_timeout, 1>},
    {nullptr, "WARREN_HOST_TIMEOUT", ReadSeconds<&Settings::host_timeout, 2>},
    {nullptr, "WARREN_WORKER_PORTS",
     [](const std::string& text, Reading& r) {
       const std::size_t colon = std::min(text.find(':'), text.size());
       const auto first = ParseNumber(std::string_view(text).substr(0, colon), 1, 65535);
       if (!first || colon == text.size()) return false;
       r.settings.first_port = *first;
       const auto last = ParseNumber(std::string_view(text).substr(colon + 1), *first, 65535);
       r.settings.last_port = last.value_or(0);
       return last.has_value();
     }},
    {"rabit_enable_tcp_no_delay", "rabit_enable_tcp_no_delay", ReadBool<&Settings::tcp_no_delay>},
    {"rabit_debug", "rabit_debug", ReadBool<&Settings::debug>},
    {nullptr, "WARREN_TIMELINE", ReadText<&Settings::timeline>},
    {nullptr, kReportVariable,
     [](const std::string& text, Reading& r) { return ParseDecimalSeconds(text, r.settings.report_every); }},
    {nullptr, "WARREN_REPORT_TIMELINE", ReadBool<&Settings::report_timeline>},
    // --- named operations ---
    {nullptr, "WARREN_FUSION_THRESHOLD",
     [](const std::string& text, Reading& r) { return ParseBytes(text, r.settings.fusion_bytes); }},
    {nullptr, "WARREN_CYCLE_TIME_US",
     [](const std::string& text, Reading& r) {
       const auto microseconds = ParseNumber(text, 0, kMaxCount);
       r.settings.cycle = std::chrono::microseconds(microseconds.value_or(0));
       return microseconds.has_value();
     }},
    {nullptr, "WARREN_AUTOTUNE", ReadBool<&Settings::autotune>},
    {nullptr, "WARREN_STALL_SECONDS", ReadSeconds<&Settings::stall_warning, 1>},
    // --- recovery ---
    {"rabit_global_replica", "rabit_global_replica", ReadNumber<&Settings::global_replica, 0, kMaxCount>},
    {"rabit_local_replica", "rabit_local_replica", ReadNumber<&Settings::local_replica, 0, kMaxCount>},
    {"rabit_bootstrap_cache", "rabit_bootstrap_cache", ReadBool<&Settings::bootstrap_cache>},
    {"mock", nullptr,
     [](const std::string& text, Reading& r) {
       r.settings.mock.push_back(text);
       return true;
     }},
};

void Apply(const Setting& setting, std::string_view name, const std::string& value, const char* origin,
           Reading& reading) {
  reading.name = name;
  if (setting.read(value, reading)) return;
  const bool is_secret = setting.variable == wire::kTokenVariable;
  const wire::Variable* variable =
      wire::VariableOf(setting.variable == nullptr ? setting.argument : setting.variable);
  throw Misuse(fmt::format("{} in {}: {} is not understood, expected {}", name, origin,
                           is_secret ? "its value" : fmt::format("\"{}\"", value), variable->values));
}

void ReadEnvironment(Reading& reading) {
  for (const Setting& setting : kSettings) {
    for (const char* name : {setting.argument, setting.variable}) {
      // "mock" is too common a word for an environment variable.
      if (name == nullptr || std::string_view(name) == "mock") continue;
      if (const auto found = wire::FindVariable(name, &wire::FromEnvironment))
        Apply(setting, found->name, found->value, "the environment", reading);
    }
  }
}

std::string_view WithoutFormerNames(std::string_view name) {
  for (const wire::Variable& variable : wire::Variables()) {
    if (variable.former != nullptr && Same(name, variable.former)) return variable.name;
  }
  return name;
}

void ReadArguments(std::span<const std::string> arguments, Reading& reading) {
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view name = std::string_view(argument).substr(0, equals);
    const std::string_view today = WithoutFormerNames(name);
    for (const Setting& setting : kSettings) {
      const bool named = (setting.argument != nullptr && Same(today, setting.argument)) ||
                         (setting.variable != nullptr && Same(today, setting.variable));
      if (named) Apply(setting, name, argument.substr(equals + 1), "the arguments", reading);
    }
  }
}

// Warns about variables whose current and former names have different values; only once per process, because
// the settings may be read again, for reports.
void SayWhatContradicts() {
  static std::atomic<bool> said = false;
  const std::vector<std::string> lines = wire::ContradictingNames(&wire::FromEnvironment);
  if (lines.empty() || said.exchange(true)) return;
  for (const std::string& line : lines) Say("rabit: {}", line);
}

// Returns the task id of a process for which none is set: its rank, from the variables of a launcher that has
// started several processes, or else the default. A launcher of one process (or sbatch, whose script has
// SLURM_PROCID=0 but is in no step) says nothing about the workers that this process starts: they inherit its
// variables and would all have the same task id.
std::string LaunchersTaskId() {
  constexpr std::pair<const char*, const char*> kRankAndSize[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& [rank_name, size_name] : kRankAndSize) {
    const auto rank = wire::FromEnvironment(rank_name);
    const auto size = ParseNumber(wire::FromEnvironment(size_name).value_or(""), 2, kMaxWorldSize);
    if (rank && size && ParseNumber(*rank, 0, *size - 1)) return *rank;
  }
  // SGE_TASK_ID counts from 1; it is "undefined" in a job that is not an array job.
  const auto task = ParseNumber(wire::FromEnvironment("SGE_TASK_ID").value_or(""), 1, kMaxWorldSize);
  return task ? std::to_string(*task - 1) : Settings().task_id;
}

}  // namespace

[[gnu::weak]] EngineKind DefaultEngine() {
  return EngineKind::kNative;
}

// A year, which is longer than any job.
constexpr std::chrono::seconds kForEver = std::chrono::hours(24 * 365);

Settings ReadSettings(std::span<const std::string> arguments) {
  Reading reading;
  reading.settings.engine = DefaultEngine();
  SayWhatContradicts();
  ReadEnvironment(reading);
  ReadArguments(arguments, reading);
  if (!reading.has_task_id) reading.settings.task_id = LaunchersTaskId();
  if (reading.timeout) reading.settings.collective_timeout = reading.timeout_sec;
  reading.settings.recovery_timeout = reading.timeout_sec.count() > 0 ? reading.timeout_sec : kForEver;
  return std::move(reading.settings);
}

}  // namespace warren
