#include "rabit_engine/base/settings.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <system_error>

#include "rabit_engine/base/error.h"

namespace warren {
namespace {

// rabit's own default for rabit_timeout_sec, where rabit_timeout=1 switches it on.
constexpr std::chrono::seconds kDefaultCollectiveTimeout{1800};

// What is being read: some settings are made of two.
struct Reading {
  Settings settings;
  bool timeout = false;
  std::chrono::seconds timeout_sec = kDefaultCollectiveTimeout;
  bool has_task_id = false;
};

template <typename T>
bool ParseNumber(const std::string& text, T low, T high, T& value) {
  T parsed{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  if (error != std::errc{} || stop != end || parsed < low || parsed > high) return false;
  value = parsed;
  return true;
}

bool ParseSeconds(const std::string& text, std::chrono::seconds& value) {
  constexpr long kYear = 366L * 24 * 3600;  // longer would overflow a clock that counts nanoseconds
  long seconds = 0;
  if (!ParseNumber(text, 0L, kYear, seconds)) return false;
  value = std::chrono::seconds(seconds);
  return true;
}

bool ParseDecimalSeconds(const std::string& text, std::chrono::milliseconds& value) {
  constexpr double kDay = 24 * 3600;
  double seconds = 0;
  if (!ParseNumber(text, 0.0, kDay, seconds)) return false;
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

// "4096", "64KB", "256MB", "1GB"; the B may be missing.
bool ParseBytes(const std::string& text, std::size_t& value) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::size_t number = 0;
  if (!ParseNumber(text.substr(0, digits), std::size_t{0}, std::numeric_limits<std::size_t>::max(), number)) {
    return false;
  }
  std::string_view unit = std::string_view(text).substr(digits);
  if (!unit.empty() && (unit.back() == 'B' || unit.back() == 'b')) unit.remove_suffix(1);
  int shift = 0;
  if (Same(unit, "K")) shift = 10;
  if (Same(unit, "M")) shift = 20;
  if (Same(unit, "G")) shift = 30;
  if (!unit.empty() && shift == 0) return false;
  if (number > std::numeric_limits<std::size_t>::max() >> shift) return false;
  value = number << shift;
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

// One setting: the name a program passes to Init and the one in the environment (either is understood in
// both places; programs pass DMLC_TRACKER_URI=... as an argument too), and how to read it.
struct Setting {
  const char* argument;
  const char* variable;
  const char* expected;
  bool (*read)(const std::string& text, Reading& reading);
};

constexpr Word<EngineKind> kEngines[] = {{"native", EngineKind::kNative}, {"mpi", EngineKind::kMpi}};
constexpr Word<BootstrapKind> kBootstraps[] = {{"auto", BootstrapKind::kAuto},
                                               {"tracker", BootstrapKind::kTracker},
                                               {"mpi", BootstrapKind::kMpi},
                                               {"slurm", BootstrapKind::kSlurm},
                                               {"none", BootstrapKind::kNone}};
constexpr Word<SharedMemory> kSharedMemory[] = {{"auto", SharedMemory::kAuto}, {"off", SharedMemory::kOff}};

constexpr const char* kBool = "0, 1, true or false";
constexpr const char* kSeconds = "a whole number of seconds";
constexpr const char* kCount = "a whole number from 0 to 1000000";
constexpr int kMaxCount = 1'000'000;
constexpr int kMaxWorldSize = 1 << 17;
constexpr std::size_t kMaxTaskIdBytes = 1024;

constexpr Setting kSettings[] = {
    // --- the job ---
    {"rabit_tracker_uri", "DMLC_TRACKER_URI", "a host name or address, or NULL",
     [](const std::string& text, Reading& r) {
       r.settings.tracker_host = text == "NULL" ? "" : text;
       return true;
     }},
    {"rabit_tracker_port", "DMLC_TRACKER_PORT", "a port from 1 to 65535",
     [](const std::string& text, Reading& r) {
       return ParseNumber(text, 1, 65535, r.settings.tracker_port);
     }},
    {nullptr, wire::kTokenVariable.data(), "the 64 hexadecimal digits that the launcher or the tracker made",
     [](const std::string& text, Reading& r) {
       try {
         r.settings.job_token = wire::JobToken::Parse(text);
       } catch (const std::invalid_argument&) {
         return false;
       }
       return true;
     }},
    {nullptr, "RABIT_TLS", kBool,
     [](const std::string& text, Reading& r) { return ParseBool(text, r.settings.tls); }},
    {"rabit_task_id", "DMLC_TASK_ID", "a name of at most 1024 bytes",
     [](const std::string& text, Reading& r) {
       if (text.size() > kMaxTaskIdBytes) return false;
       r.settings.task_id = text;
       r.has_task_id = true;
       return true;
     }},
    {"rabit_world_size", "rabit_world_size",
     "a number of workers from 1 to 131072, or -1 when the tracker knows",
     [](const std::string& text, Reading& r) {
       return ParseNumber(text, -1, kMaxWorldSize, r.settings.world_size) && r.settings.world_size != 0;
     }},
    {nullptr, "DMLC_NUM_WORKER", "a number",
     [](const std::string& text, Reading& r) {
       // Whatever else it may be is nobody's error: it is not the engine's.
       static_cast<void>(ParseNumber(text, 0, kMaxCount, r.settings.num_workers));
       return true;
     }},
    {nullptr, "DMLC_NUM_ATTEMPT", kCount,
     [](const std::string& text, Reading& r) {
       return ParseNumber(text, 0, kMaxCount, r.settings.num_attempt);
     }},
    {nullptr, "DMLC_MAX_ATTEMPT", kCount,
     [](const std::string& text, Reading& r) {
       return ParseNumber(text, 0, kMaxCount, r.settings.max_attempt);
     }},
    {nullptr, "DMLC_WORKER_CONNECT_RETRY", kCount,
     [](const std::string& text, Reading& r) {
       return ParseNumber(text, 0, kMaxCount, r.settings.connect_retry);
     }},
    {nullptr, "DMLC_ROLE", "worker, server or scheduler",
     [](const std::string& text, Reading& r) {
       r.settings.role = text;
       return text == "worker" || text == "server" || text == "scheduler";
     }},
    // --- the engine ---
    {nullptr, "RABIT_ENGINE", "native or mpi",
     [](const std::string& text, Reading& r) { return ParseWord(text, kEngines, r.settings.engine); }},
    {nullptr, "RABIT_BOOTSTRAP", "auto, tracker, mpi, slurm or none",
     [](const std::string& text, Reading& r) { return ParseWord(text, kBootstraps, r.settings.bootstrap); }},
    {nullptr, "RABIT_SHARED_MEMORY", "auto or off",
     [](const std::string& text, Reading& r) {
       return ParseWord(text, kSharedMemory, r.settings.shared_memory);
     }},
    {nullptr, "RABIT_HOST_GROUP", "a name",
     [](const std::string& text, Reading& r) {
       r.settings.host_group = text;
       return text.find('\n') == std::string::npos;
     }},
    {nullptr, "RABIT_REPRODUCIBLE", kBool,
     [](const std::string& text, Reading& r) { return ParseBool(text, r.settings.reproducible); }},
    {nullptr, "RABIT_ALGORITHM", "an algorithm, or collective=algorithm pairs with commas",
     [](const std::string& text, Reading& r) {
       r.settings.algorithm = text;
       return true;
     }},
    {nullptr, "RABIT_PRINT_CHOICE", kBool,
     [](const std::string& text, Reading& r) { return ParseBool(text, r.settings.print_choice); }},
    {"rabit_reduce_buffer", "rabit_reduce_buffer",
     "a size in bytes such as 67108864, 64KB, 256MB or 1GB, at least 1",
     [](const std::string& text, Reading& r) {
       return ParseBytes(text, r.settings.reduce_buffer_bytes) && r.settings.reduce_buffer_bytes > 0;
     }},
    {"rabit_timeout", "rabit_timeout", kBool,
     [](const std::string& text, Reading& r) { return ParseBool(text, r.timeout); }},
    {"rabit_timeout_sec", "rabit_timeout_sec", kSeconds,
     [](const std::string& text, Reading& r) { return ParseSeconds(text, r.timeout_sec); }},
    {nullptr, "RABIT_CONNECT_TIMEOUT", "a whole number of seconds, at least 1",
     [](const std::string& text, Reading& r) {
       return ParseSeconds(text, r.settings.connect_timeout) && r.settings.connect_timeout.count() > 0;
     }},
    {nullptr, "RABIT_HOST_TIMEOUT", "a whole number of seconds, at least 2",
     [](const std::string& text, Reading& r) {
       return ParseSeconds(text, r.settings.host_timeout) && r.settings.host_timeout.count() > 1;
     }},
    {"rabit_enable_tcp_no_delay", "rabit_enable_tcp_no_delay", kBool,
     [](const std::string& text, Reading& r) { return ParseBool(text, r.settings.tcp_no_delay); }},
    {"rabit_debug", "rabit_debug", kBool,
     [](const std::string& text, Reading& r) { return ParseBool(text, r.settings.debug); }},
    {nullptr, "WARREN_TIMELINE", "a file name",
     [](const std::string& text, Reading& r) {
       r.settings.timeline = text;
       return true;
     }},
    {nullptr, kReportVariable, "a number of seconds up to 86400, such as 1 or 0.5; 0 for never",
     [](const std::string& text, Reading& r) { return ParseDecimalSeconds(text, r.settings.report_every); }},
    {nullptr, "WARREN_REPORT_TIMELINE", kBool,
     [](const std::string& text, Reading& r) { return ParseBool(text, r.settings.report_timeline); }},
    // --- named operations ---
    {nullptr, "WARREN_FUSION_THRESHOLD", "a size in bytes such as 0, 65536, 64KB or 2MB",
     [](const std::string& text, Reading& r) { return ParseBytes(text, r.settings.fusion_bytes); }},
    {nullptr, "WARREN_CYCLE_TIME_US", "a whole number of microseconds from 0 to 1000000",
     [](const std::string& text, Reading& r) {
       int microseconds = 0;
       if (!ParseNumber(text, 0, kMaxCount, microseconds)) return false;
       r.settings.cycle = std::chrono::microseconds(microseconds);
       return true;
     }},
    {nullptr, "WARREN_AUTOTUNE", kBool,
     [](const std::string& text, Reading& r) { return ParseBool(text, r.settings.autotune); }},
    {nullptr, "WARREN_STALL_SECONDS", "a whole number of seconds, at least 1",
     [](const std::string& text, Reading& r) {
       return ParseSeconds(text, r.settings.stall_warning) && r.settings.stall_warning.count() > 0;
     }},
    // --- recovery ---
    {"rabit_global_replica", "rabit_global_replica", kCount,
     [](const std::string& text, Reading& r) {
       return ParseNumber(text, 0, kMaxCount, r.settings.global_replica);
     }},
    {"rabit_local_replica", "rabit_local_replica", kCount,
     [](const std::string& text, Reading& r) {
       return ParseNumber(text, 0, kMaxCount, r.settings.local_replica);
     }},
    {"rabit_bootstrap_cache", "rabit_bootstrap_cache", kBool,
     [](const std::string& text, Reading& r) { return ParseBool(text, r.settings.bootstrap_cache); }},
    {"mock", nullptr, "rank,version,seqno,trial",
     [](const std::string& text, Reading& r) {
       r.settings.mock.push_back(text);
       return true;
     }},
};

void Apply(const Setting& setting, std::string_view name, const std::string& value, const char* origin,
           Reading& reading) {
  if (setting.read(value, reading)) return;
  const bool is_secret = setting.variable == wire::kTokenVariable;
  throw Misuse(fmt::format("{} in {}: {} is not understood, expected {}", name, origin,
                           is_secret ? "what is there" : fmt::format("\"{}\"", value), setting.expected));
}

// A variable that is set to nothing counts as not set.
const char* Variable(const char* name) {
  const char* value = name == nullptr ? nullptr : std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

void ReadEnvironment(Reading& reading) {
  for (const Setting& setting : kSettings) {
    for (const char* name : {setting.argument, setting.variable}) {
      // "mock" is too common a word to be taken from the environment.
      if (name == nullptr || std::string_view(name) == "mock") continue;
      if (const char* value = Variable(name)) Apply(setting, name, value, "the environment", reading);
    }
  }
}

void ReadArguments(std::span<const std::string> arguments, Reading& reading) {
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view name = std::string_view(argument).substr(0, equals);
    for (const Setting& setting : kSettings) {
      const bool named = (setting.argument != nullptr && Same(name, setting.argument)) ||
                         (setting.variable != nullptr && Same(name, setting.variable));
      if (named) Apply(setting, name, argument.substr(equals + 1), "the arguments", reading);
    }
  }
}

// Launchers that start all processes with one environment tell them apart by a variable of their own.
std::string LaunchersTaskId() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    int rank = 0;
    const char* value = Variable(name);
    if (value != nullptr && ParseNumber(std::string(value), 0, kMaxWorldSize, rank)) return value;
  }
  // Counted from 1; "undefined" in a job without tasks.
  int task = 0;
  const char* value = Variable("SGE_TASK_ID");
  if (value != nullptr && ParseNumber(std::string(value), 1, kMaxWorldSize, task))
    return std::to_string(task - 1);
  return Settings().task_id;
}

}  // namespace

[[gnu::weak]] EngineKind DefaultEngine() {
  return EngineKind::kNative;
}

// Longer than any job.
constexpr std::chrono::seconds kForEver = std::chrono::hours(24 * 365);

Settings ReadSettings(std::span<const std::string> arguments) {
  Reading reading;
  reading.settings.engine = DefaultEngine();
  ReadEnvironment(reading);
  ReadArguments(arguments, reading);
  if (!reading.has_task_id) reading.settings.task_id = LaunchersTaskId();
  if (reading.timeout) reading.settings.collective_timeout = reading.timeout_sec;
  reading.settings.recovery_timeout = reading.timeout_sec.count() > 0 ? reading.timeout_sec : kForEver;
  return std::move(reading.settings);
}

}  // namespace warren
