#include "wire/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace warren::wire {
namespace {

constexpr std::string_view kBool = "0, 1, true or false";
constexpr std::string_view kSeconds = "a whole number of seconds";
constexpr std::string_view kCount = "a whole number from 0 to 1000000";
constexpr std::string_view kFile = "a file name";

constexpr std::string_view kEngine = "librabit, librabit_xgboost";
constexpr std::string_view kRabit = "librabit";
constexpr std::string_view kCuda = "librabit_cuda";

constexpr std::string_view kJob = "The job";
constexpr std::string_view kCollectives = "The engine";
constexpr std::string_view kLaunchers = "MPI and Slurm";
constexpr std::string_view kGpus = "GPUs";
constexpr std::string_view kWatching = "Watching";
constexpr std::string_view kNamed = "Operations by name";
constexpr std::string_view kOthers = "Python and the data reader";
constexpr std::string_view kParameters = "Parameters of rabit";

// group, name, former name, values, default, meaning, reader
constexpr Variable kVariables[] = {
    {kJob, "DMLC_TRACKER_URI", nullptr, "a host name or address, or NULL", "none",
     "The tracker's host; none or `NULL`: a job of one process. As an argument also `rabit_tracker_uri`.",
     kEngine},
    {kJob, "DMLC_TRACKER_PORT", nullptr, "a port from 1 to 65535", "9000",
     "The tracker's port. As an argument also `rabit_tracker_port`.", kEngine},
    {kJob, "DMLC_JOB_TOKEN", nullptr, "the 64 hexadecimal digits that the launcher or the tracker made",
     "none", "The secret of the job, proved to the tracker and to every other rank.",
     "librabit, librabit_xgboost, rabit-tracker"},
    {kJob, "WARREN_TLS", "RABIT_TLS", kBool, "0; `--tls` sets 1",
     "1: connections to the tracker and between ranks are TLS 1.3 with the token as the key, on all ranks or "
     "none.",
     kEngine},
    {kJob, "DMLC_TASK_ID", nullptr, "a name of at most 1024 bytes", "the launcher's, or NULL",
     "Which of the job's processes this is. As an argument also `rabit_task_id`.", kEngine},
    {kJob, "DMLC_ROLE", nullptr, "worker, server or scheduler", "worker", "What this process is in the job.",
     kEngine},
    {kJob, "DMLC_NUM_WORKER", nullptr, "a number", "not known", "How many workers were started.", kEngine},
    {kJob, "DMLC_NUM_ATTEMPT", nullptr, kCount, "0", "How often this process was started again.", kEngine},
    {kJob, "DMLC_MAX_ATTEMPT", nullptr, kCount, "0; `--local-num-attempt` sets it",
     "How often a process that fails is started again.", kEngine},
    {kJob, "DMLC_WORKER_CONNECT_RETRY", nullptr, kCount, "5", "Tries to reach the tracker or a peer.",
     kEngine},
    {kJob, "DMLC_SUBMIT_CLUSTER", nullptr, "a name that `--cluster` takes", "local",
     "Where jobs run when `--cluster` is not given.", "dmlc-submit"},

    {kCollectives, "WARREN_ENGINE", "RABIT_ENGINE", "native or mpi", "native; mpi with librabit_mpi",
     "`mpi`: the collectives are MPI's.", kRabit},
    {kCollectives, "WARREN_BOOTSTRAP", "RABIT_BOOTSTRAP", "auto, tracker, mpi, slurm or none", "auto",
     "How ranks find each other. `auto`: by the tracker that is named; without one, programs over "
     "`warren/c_api.h` by the launcher that started them. `slurm`: Slurm or PMI.",
     kRabit},
    {kCollectives, "WARREN_SHARED_MEMORY", "RABIT_SHARED_MEMORY", "auto or off", "auto",
     "`off`: TCP also between ranks of one host.", kEngine},
    {kCollectives, "WARREN_HOST_GROUP", "RABIT_HOST_GROUP", "a name", "none",
     "Ranks of one host with different names share no memory, as if on different hosts.", kEngine},
    {kCollectives, "WARREN_REPRODUCIBLE", "RABIT_REPRODUCIBLE", kBool, "1",
     "0: hosts of any size reduce first; results then depend on where ranks run.", kEngine},
    {kCollectives, "WARREN_ALGORITHM", "RABIT_ALGORITHM",
     "an algorithm, or collective=algorithm pairs with commas", "the best by a table",
     "The algorithm to take, such as `ring` or `allreduce=ring,broadcast=tree`.", kEngine},
    {kCollectives, "WARREN_PRINT_CHOICE", "RABIT_PRINT_CHOICE", kBool, "0",
     "1: rank 0 prints each new choice of an algorithm.", kEngine},
    {kCollectives, "WARREN_CONNECT_TIMEOUT", "RABIT_CONNECT_TIMEOUT", "a whole number of seconds, at least 1",
     "30", "For one connection or handshake.", kEngine},
    {kCollectives, "WARREN_HOST_TIMEOUT", "RABIT_HOST_TIMEOUT", "a whole number of seconds, at least 2", "30",
     "Without an answer for so long, a host is taken for gone.", kEngine},
    {kCollectives, "WARREN_XGBOOST_ENGINE", nullptr, "own, warren or auto", "auto",
     "Whose collectives XGBoost uses. `own`: XGBoost's; `warren`: Warren's, or an error where that cannot "
     "be.",
     "librabit_xgboost, warren.xgboost"},

    {kLaunchers, "WARREN_MPI_LIBRARY", "RABIT_MPI_LIBRARY", kFile, "that of the launcher's MPI",
     "The plugin to load for MPI.", kRabit},
    {kLaunchers, "WARREN_BOOTSTRAP_HOST", "RABIT_BOOTSTRAP_HOST", "a host name or address",
     "Slurm's first node", "Where the ranks of a Slurm step meet.", kRabit},
    {kLaunchers, "WARREN_BOOTSTRAP_PORT", "RABIT_BOOTSTRAP_PORT", "a port from 1 to 65535",
     "from the step's number", "The port at which they meet.", kRabit},
    {kLaunchers, "WARREN_BOOTSTRAP_TOKEN", "RABIT_BOOTSTRAP_TOKEN", "a word", "none",
     "What they must share to meet, where there is no `DMLC_JOB_TOKEN`.", kRabit},

    {kGpus, "WARREN_CUDA_LIBRARY", "RABIT_CUDA_LIBRARY", kFile, "beside librabit, or where the loader looks",
     "The file `librabit_cuda.so`.", kRabit},
    {kGpus, "WARREN_NCCL_PATH", "RABIT_NCCL_PATH", "a file, or the folder of libnccl.so.2",
     "`DMLC_NCCL_PATH`, or where the loader looks", "NCCL.", kCuda},
    {kGpus, "WARREN_DEVICE_PATH", "RABIT_DEVICE_PATH", "auto, nccl, shared or staged", "auto",
     "How the memory of GPUs is reached. All but `auto` fail where that cannot be.", kCuda},

    {kWatching, "WARREN_TIMELINE", nullptr, kFile, "none", "A file for what happened when, as trace events.",
     kEngine},
    {kWatching, "WARREN_REPORT_SECONDS", nullptr,
     "a number of seconds up to 86400, such as 1 or 0.5; 0 for never", "0; dmlc-submit sets 1",
     "How often the tracker is told how this process is doing.", "librabit, librabit_xgboost, Python"},
    {kWatching, "WARREN_REPORT_TIMELINE", nullptr, kBool, "0; `--timeline` sets 1",
     "1: reports have what happened when, too.", kEngine},
    {kWatching, "WARREN_STALL_SECONDS", nullptr, "a whole number of seconds, at least 1", "60",
     "After so long it is said on stderr whom a rank waits for.", kEngine},

    {kNamed, "WARREN_FUSION_THRESHOLD", nullptr, "a size in bytes such as 0, 65536, 64KB or 2MB", "2MB",
     "Small allreduces are packed up to so many bytes; 0: never.", kRabit},
    {kNamed, "WARREN_CYCLE_TIME_US", nullptr, "a whole number of microseconds from 0 to 1000000", "1000",
     "How long names are collected.", kRabit},
    {kNamed, "WARREN_AUTOTUNE", nullptr, kBool, "0", "1: both of these are found by trying.", kRabit},

    {kOthers, "WARREN_NATIVE", nullptr, "a folder with bin and lib", "that of the wheel",
     "Where the Python package finds programs and libraries.", "Python"},
    {kOthers, "WARREN_CHECK_DATA", nullptr, "0 or 1", "0; `--check-data` sets 1",
     "1: `load` shows what each worker got of a data set.", "warren.data"},
    {kOthers, "WARREN_SIMD", nullptr, "plain, sse4.1, avx2, avx512 or neon", "the fastest here",
     "The instructions with which text is read.", "data reader"},

    {kParameters, "rabit_world_size", nullptr,
     "a number of workers from 1 to 131072, or -1 when the tracker knows", "-1", "The number of workers.",
     kEngine},
    {kParameters, "rabit_reduce_buffer", nullptr,
     "a size in bytes such as 67108864, 64KB, 256MB or 1GB, at least 1", "256MB",
     "Checked; scratch memory is a few MiB whatever the vector.", kEngine},
    {kParameters, "rabit_timeout", nullptr, kBool, "0",
     "1: a collective that waits `rabit_timeout_sec` for a peer that is alive fails.", kEngine},
    {kParameters, "rabit_timeout_sec", nullptr, kSeconds, "1800",
     "Also: how long ranks wait for one that was lost to come again.", kEngine},
    {kParameters, "rabit_enable_tcp_no_delay", nullptr, kBool, "1", "0: TCP may hold small messages back.",
     kEngine},
    {kParameters, "rabit_debug", nullptr, kBool, "0",
     "1: as `WARREN_PRINT_CHOICE`, and each rank says with whom it shares memory and how it waits.", kEngine},
    {kParameters, "rabit_global_replica", nullptr, kCount, "5",
     "How many ranks keep each result until the next checkpoint.", kRabit},
    {kParameters, "rabit_local_replica", nullptr, kCount, "2",
     "How many other ranks keep a copy of each local model.", kRabit},
    {kParameters, "rabit_bootstrap_cache", nullptr, kBool, "0",
     "1: a rank can be lost before LoadCheckPoint, too.", kRabit},
    {kParameters, "mock", nullptr, "rank,version,seqno,trial", "none",
     "Die there. Only as an argument, any number of times.", "librabit_mock"},
};

}  // namespace

std::span<const Variable> Variables() {
  return kVariables;
}

const Variable* VariableOf(std::string_view name) {
  const auto* found = std::find_if(std::begin(kVariables), std::end(kVariables),
                                   [&](const Variable& v) { return v.name == name; });
  return found == std::end(kVariables) ? nullptr : found;
}

std::optional<std::string> FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<SetVariable> FindVariable(const char* name, const LookUp& look_up) {
  if (auto value = look_up(name)) return SetVariable{name, *std::move(value)};
  const Variable* variable = VariableOf(name);
  if (variable == nullptr || variable->former == nullptr) return std::nullopt;
  auto value = look_up(variable->former);
  return value ? std::optional(SetVariable{variable->former, *std::move(value)}) : std::nullopt;
}

std::vector<std::string> ContradictingNames(const LookUp& look_up) {
  std::vector<std::string> lines;
  for (const Variable& variable : kVariables) {
    if (variable.former == nullptr) continue;
    const auto value = look_up(variable.name);
    const auto former = look_up(variable.former);
    if (!value || !former || *value == *former) continue;
    // Without the values: one of them is a secret.
    lines.push_back(fmt::format("{} and {}, its old name, are set to different values; {} is taken",
                                variable.name, variable.former, variable.name));
  }
  return lines;
}

std::string VariablesMarkdown() {
  std::string text =
      "# Environment variables\n\n"
      "A variable that is set to nothing is not set. Old names are read as before; where both are set, the "
      "new one is taken. Most of what librabit reads may also be an argument of Init (`key=value`, in upper "
      "or lower case), which wins over the environment; what stands under \"MPI and Slurm\" and \"GPUs\" "
      "may not. This page is written by `dmlc-submit --help-environment`.\n";
  std::string_view group;
  for (const Variable& variable : kVariables) {
    if (variable.group != group) {
      group = variable.group;
      text += fmt::format(
          "\n## {}\n\n| Name | Old name | Values | Default | Meaning | Read by "
          "|\n|---|---|---|---|---|---|\n",
          group);
    }
    const std::string former = variable.former == nullptr ? "" : fmt::format("`{}`", variable.former);
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", variable.name, former, variable.values,
                        variable.default_value, variable.meaning, variable.reader);
  }
  return text;
}

}  // namespace warren::wire
