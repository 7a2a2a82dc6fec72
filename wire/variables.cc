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
     "Where the tracker runs. Unset or `NULL`: a job without a tracker (`WARREN_BOOTSTRAP`). As an argument "
     "also "
     "`rabit_tracker_uri`.",
     kEngine},
    {kJob, "DMLC_TRACKER_PORT", nullptr, "a port from 1 to 65535", "9000",
     "The tracker's port. As an argument also `rabit_tracker_port`.", kEngine},
    {kJob, "DMLC_JOB_TOKEN", nullptr, "the 64 hexadecimal digits that the launcher or the tracker made",
     "none",
     "The secret of the job. A worker proves to the tracker and to every other rank that it knows the "
     "secret, without sending it.",
     "librabit, librabit_xgboost, rabit-tracker"},
    {kJob, "WARREN_TLS", "RABIT_TLS", kBool, "0; `--tls` sets 1",
     "1: use TLS 1.3, with the token as its key, to the tracker and between ranks. All ranks of a job must "
     "have the same value.",
     kEngine},
    {kJob, "DMLC_TASK_ID", nullptr, "a name of at most 1024 bytes", "the launcher's, or NULL",
     "The name of this process within the job; a restarted process keeps it. As an argument also "
     "`rabit_task_id`.",
     kEngine},
    {kJob, "DMLC_ROLE", nullptr, "worker, server or scheduler", "worker",
     "The role of this process in the job.", kEngine},
    {kJob, "DMLC_NUM_WORKER", nullptr, "a number", "not known", "The number of workers that were started.",
     kEngine},
    {kJob, "DMLC_NUM_ATTEMPT", nullptr, kCount, "0", "How many times this process has been restarted.",
     kEngine},
    {kJob, "DMLC_MAX_ATTEMPT", nullptr, kCount, "0; `--local-num-attempt` sets it",
     "How many times a failing process is restarted.", kEngine},
    {kJob, "DMLC_WORKER_CONNECT_RETRY", nullptr, kCount, "5",
     "How many times to try to reach the tracker or another rank.", kEngine},
    {kJob, "DMLC_SUBMIT_CLUSTER", nullptr, "a name that `--cluster` takes", "local",
     "What `--cluster` is when it is not given.", "dmlc-submit"},

    {kCollectives, "WARREN_ENGINE", "RABIT_ENGINE", "native or mpi", "native; mpi with librabit_mpi",
     "`mpi`: run the collectives over MPI.", kRabit},
    {kCollectives, "WARREN_BOOTSTRAP", "RABIT_BOOTSTRAP", "auto, tracker, mpi, slurm or none", "auto",
     "How ranks find each other. `auto`: through the tracker if there is one, otherwise through the launcher "
     "that "
     "started several processes. `slurm`: through Slurm or PMI. `none`: processes of a launcher are separate "
     "programs.",
     kRabit},
    {kCollectives, "WARREN_SHARED_MEMORY", "RABIT_SHARED_MEMORY", "auto or off", "auto",
     "`off`: use TCP between ranks on the same host, too.", kEngine},
    {kCollectives, "WARREN_HOST_GROUP", "RABIT_HOST_GROUP", "a name", "none",
     "Ranks on one host that have different names here share no memory, as if they ran on different hosts.",
     kEngine},
    {kCollectives, "WARREN_REPRODUCIBLE", "RABIT_REPRODUCIBLE", kBool, "1",
     "0: reduce within each host first, whatever the number of its ranks. The rounding of sums then depends "
     "on where ranks run.",
     kEngine},
    {kCollectives, "WARREN_ALGORITHM", "RABIT_ALGORITHM",
     "an algorithm, or collective=algorithm pairs with commas", "the best by a table",
     "Use this algorithm, for example `ring` or `allreduce=ring,broadcast=tree`.", kEngine},
    {kCollectives, "WARREN_PRINT_CHOICE", "RABIT_PRINT_CHOICE", kBool, "0",
     "1: rank 0 prints the algorithm it uses for each kind and size of call, once.", kEngine},
    {kCollectives, "WARREN_CONNECT_TIMEOUT", "RABIT_CONNECT_TIMEOUT", "a whole number of seconds, at least 1",
     "30", "The limit for one connection attempt or handshake.", kEngine},
    {kCollectives, "WARREN_HOST_TIMEOUT", "RABIT_HOST_TIMEOUT", "a whole number of seconds, at least 2", "30",
     "A host that has not answered for this long is considered lost.", kEngine},
    {kCollectives, "WARREN_XGBOOST_ENGINE", nullptr, "own, warren or auto", "auto",
     "Whose collectives XGBoost uses: its own (`own`) or Warren's (`warren`, which fails where it cannot). "
     "`auto`: Warren's where possible.",
     "librabit_xgboost, warren.xgboost"},

    {kLaunchers, "WARREN_MPI_LIBRARY", "RABIT_MPI_LIBRARY", kFile, "that of the launcher's MPI",
     "The MPI plugin to load.", kRabit},
    {kLaunchers, "WARREN_BOOTSTRAP_HOST", "RABIT_BOOTSTRAP_HOST", "a host name or address",
     "Slurm's first node", "The host on which the ranks of a Slurm step meet.", kRabit},
    {kLaunchers, "WARREN_BOOTSTRAP_PORT", "RABIT_BOOTSTRAP_PORT", "a port from 1 to 65535",
     "from the step's number", "The port on which they meet.", kRabit},
    {kLaunchers, "WARREN_BOOTSTRAP_TOKEN", "RABIT_BOOTSTRAP_TOKEN", "a word", "none",
     "A secret that the ranks must share in order to meet, when there is no `DMLC_JOB_TOKEN`.", kRabit},

    {kGpus, "WARREN_CUDA_LIBRARY", "RABIT_CUDA_LIBRARY", kFile, "beside librabit, or where the loader looks",
     "The file to load as `librabit_cuda.so`.", kRabit},
    {kGpus, "WARREN_NCCL_PATH", "RABIT_NCCL_PATH", "a file, or the folder of libnccl.so.2",
     "`DMLC_NCCL_PATH`, or where the loader looks", "Where to find NCCL.", kCuda},
    {kGpus, "WARREN_DEVICE_PATH", "RABIT_DEVICE_PATH", "auto, nccl, shared or staged", "auto",
     "How to move data between GPUs. A value other than `auto` is an error where it is not possible.", kCuda},

    {kWatching, "WARREN_TIMELINE", nullptr, kFile, "none",
     "Write a timeline of this process to this file, as trace events.", kEngine},
    {kWatching, "WARREN_REPORT_SECONDS", nullptr,
     "a number of seconds up to 86400, such as 1 or 0.5; 0 for never", "0; dmlc-submit sets 1",
     "How often to send this process's statistics to the tracker.", "librabit, librabit_xgboost, Python"},
    {kWatching, "WARREN_REPORT_TIMELINE", nullptr, kBool, "0; `--timeline` sets 1",
     "1: send the events of the timeline to the tracker, too.", kEngine},
    {kWatching, "PYTHONUNBUFFERED", nullptr, "anything: output is shown at once",
     "dmlc-submit sets 1, unless its own environment or `--env` has the variable",
     "Without it, Python keeps up to 8 KiB of standard output back when that is a pipe: `print` is seen "
     "late, or never if the process is killed. `--env PYTHONUNBUFFERED=` (empty) keeps the buffer, for "
     "programs that print very much.",
     "Python"},
    {kWatching, "WARREN_STALL_SECONDS", nullptr, "a whole number of seconds, at least 1", "60",
     "A rank that has waited for this long says on stderr which ranks it is waiting for.", kEngine},

    {kNamed, "WARREN_FUSION_THRESHOLD", nullptr, "a size in bytes such as 0, 65536, 64KB or 2MB", "2MB",
     "Small allreduces are combined into one of up to this many bytes. 0: never.", kRabit},
    {kNamed, "WARREN_CYCLE_TIME_US", nullptr, "a whole number of microseconds from 0 to 1000000", "1000",
     "How long to collect operations before they are combined.", kRabit},
    {kNamed, "WARREN_AUTOTUNE", nullptr, kBool, "0", "1: choose both of these by measuring.", kRabit},

    {kOthers, "WARREN_NATIVE", nullptr, "a folder with bin and lib", "that of the wheel",
     "Where the Python package looks for programs and libraries.", "Python"},
    {kOthers, "WARREN_CHECK_DATA", nullptr, "0 or 1", "0; `--check-data` sets 1",
     "1: `load` reports which part of the data set each worker got.", "warren.data"},
    {kOthers, "WARREN_SIMD", nullptr, "plain, sse4.1, avx2, avx512 or neon", "the fastest here",
     "The instruction set used to parse text.", "data reader"},

    {kParameters, "rabit_world_size", nullptr,
     "a number of workers from 1 to 131072, or -1 when the tracker knows", "-1", "The number of workers.",
     kEngine},
    {kParameters, "rabit_reduce_buffer", nullptr,
     "a size in bytes such as 67108864, 64KB, 256MB or 1GB, at least 1", "256MB",
     "Accepted and checked, but without effect: the engine needs a few MiB of scratch memory for vectors of "
     "any size.",
     kEngine},
    {kParameters, "rabit_timeout", nullptr, kBool, "0",
     "1: a collective fails after waiting `rabit_timeout_sec` for a peer that is alive.", kEngine},
    {kParameters, "rabit_timeout_sec", nullptr, kSeconds, "1800",
     "The limit for `rabit_timeout`. Also how long ranks wait for a lost rank to return.", kEngine},
    {kParameters, "rabit_enable_tcp_no_delay", nullptr, kBool, "1",
     "0: allow TCP to delay small messages (Nagle's algorithm).", kEngine},
    {kParameters, "rabit_debug", nullptr, kBool, "0",
     "1: as `WARREN_PRINT_CHOICE`; in addition each rank prints which ranks it shares memory with and how it "
     "waits.",
     kEngine},
    {kParameters, "rabit_global_replica", nullptr, kCount, "5",
     "How many ranks keep each result until the next checkpoint.", kRabit},
    {kParameters, "rabit_local_replica", nullptr, kCount, "2",
     "How many other ranks keep a copy of each local model.", kRabit},
    {kParameters, "rabit_bootstrap_cache", nullptr, kBool, "0",
     "1: a rank may be lost even before LoadCheckPoint.", kRabit},
    {kParameters, "mock", nullptr, "rank,version,seqno,trial", "none",
     "Exit at this point, to test recovery. An argument only; may be repeated.", "librabit_mock"},
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
      "A variable that is set to the empty string counts as unset. Old names still work; where both are "
      "set, the new one wins. Most of what librabit reads can also be passed to Init as an argument "
      "(`key=value`, in upper or lower case), which takes precedence over the environment; the variables "
      "under \"MPI and Slurm\" and \"GPUs\" cannot. This page is written by `dmlc-submit "
      "--help-environment`.\n";
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
