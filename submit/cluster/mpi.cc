#include "submit/cluster/mpi.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "submit/cluster/gang.h"
#include "submit/cluster/script.h"
#include "submit/options/values.h"
#include "submit/process/capture.h"
#include "submit/process/command.h"
#include "submit/process/environment.h"
#include "tracker/host_address.h"

namespace warren::submit {
namespace {

bool IsOpenMpi(MpiKind kind) {
  return kind == MpiKind::kOpenMpi4 || kind == MpiKind::kOpenMpi5;
}

/// The value of PATH for mpirun. If `program` is a path, its directory comes first, since Intel's mpirun
/// finds the other programs that it needs on PATH.
std::string MpiSearchPath(const std::string& program) {
  if (program.find('/') == std::string::npos) return SearchPath();
  const std::filesystem::path directory = std::filesystem::absolute(program).parent_path();
  return fmt::format("{}:{}", directory.string(), SearchPath());
}

/// Adds default settings. The user's own settings, in the environment or as mpirun options, take precedence.
void AddDefaults(MpiKind kind, tracker::Environment& environment) {
  const auto add = [&](const char* name, const char* value) {
    const bool is_set = std::getenv(name) != nullptr || HasVariable(environment, name);
    if (!is_set) environment.emplace_back(name, value);
  };
  if (IsOpenMpi(kind) && geteuid() == 0) {  // without these, Open MPI refuses to run as root
    add("OMPI_ALLOW_RUN_AS_ROOT", "1");
    add("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  // Workers have threads, and there may be more workers than cores, so no worker is bound to one core.
  if (kind == MpiKind::kOpenMpi4) {
    add("OMPI_MCA_rmaps_base_oversubscribe", "1");
    add("OMPI_MCA_hwloc_base_binding_policy", "none");
  } else if (kind == MpiKind::kOpenMpi5) {
    add("PRTE_MCA_rmaps_default_mapping_policy", "slot:oversubscribe");
    add("PRTE_MCA_hwloc_default_binding_policy", "none");
  } else if (kind == MpiKind::kIntel) {
    add("I_MPI_PIN", "0");
  }
}

/// The binding to request from mpirun; nullopt if --bind is not given. Only workers are bound: servers have a
/// separate mpirun, which would bind them to the cores of the first workers.
std::optional<Bind> BindingOf(const GangPlan& plan) {
  if (plan.options->bind && !plan.of_workers()) return Bind::kNone;
  return plan.options->bind;
}

/// The binding as mpirun options; empty for Intel MPI, which is configured with BindingVariables instead.
std::vector<std::string> BindingWords(MpiKind kind, Bind bind, int cores) {
  const std::string name(BindName(bind));
  if (kind == MpiKind::kIntel) return {};
  if (kind == MpiKind::kHydra)
    return {"-bind-to", bind == Bind::kCore ? fmt::format("{}:{}", name, cores) : name};
  if (bind != Bind::kCore) return {"--bind-to", name};
  return {"--map-by", fmt::format("slot:PE={}", cores), "--bind-to", name};
}

/// The binding as environment variables; empty unless `kind` is Intel MPI.
tracker::Environment BindingVariables(MpiKind kind, Bind bind, int cores) {
  if (kind != MpiKind::kIntel) return {};
  if (bind == Bind::kNone) return {{"I_MPI_PIN", "0"}};
  return {{"I_MPI_PIN", "1"},
          {"I_MPI_PIN_DOMAIN",
           bind == Bind::kCore ? fmt::format("{}:compact", cores) : std::string(BindName(bind))}};
}

/// Throws UsageError if --bind (other than none) is used without --worker-cores. dmlc-submit cannot divide
/// the cores of a host, since only mpirun determines how many workers run there, and only at the start.
void CheckBinding(const Options& options) {
  if (options.bind.value_or(Bind::kNone) == Bind::kNone || options.worker_cores_were_chosen) return;
  throw UsageError(fmt::format(
      "--bind {}: --cluster mpi must tell mpirun the number of cores for each worker; add --worker-cores N",
      BindName(*options.bind)));
}

std::vector<Host> MpiHosts(const Options& options) {
  const bool is_named = !HostFilePath(options.host_file).empty();
  return is_named ? ReadHosts(options.host_file) : std::vector<Host>();
}

/// The text of a host file in the format of the MPI implementation. Throws std::runtime_error if a host has a
/// setting that the format lacks.
std::string HostFileFor(MpiKind kind, const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    if (IsOpenMpi(kind)) {
      text += host.Line();
    } else {
      if (host.name.find(':') != std::string::npos) {
        throw std::runtime_error(fmt::format(
            "the mpirun of MPICH and Intel MPI does not accept IPv6 addresses in host files; write the name of {} instead",
            host.name));
      }
      if (host.port != 0) {
        throw std::runtime_error(fmt::format(
            "the mpirun of MPICH and Intel MPI does not accept ports in host files; give {} its port {} in ~/.ssh/config",
            host.name, host.port));
      }
      if (host.max_slots != 0) {
        throw std::runtime_error(fmt::format(
            "the mpirun of MPICH and Intel MPI does not accept max_slots; remove it from the line of {}",
            host.name));
      }
      text += fmt::format("{}:{}", host.Login(), host.slots);
    }
    text += '\n';
  }
  return text;
}

/// Shell word with the number of mpirun's processes on the host on which the script runs.
constexpr const char* kRanksHere = "${OMPI_COMM_WORLD_LOCAL_SIZE:-${MPI_LOCALNRANKS:-1}}";

constexpr const char* kSessionDirectoryVariable = "OMPI_MCA_orte_local_tmpdir_base";

/// Gives this mpirun its own session directory, unless the user has chosen one in the environment or in
/// `users`, the mpirun options. Open MPI 4 keeps the sockets of all jobs in
/// <temporary directory>/ompi.<host>.<user>, a directory that each mpirun removes at its end if it is empty.
/// If another mpirun is about to create a directory there, that mpirun fails ("orte_session_dir failed";
/// open-mpi/ompi issue 8510). mpirun passes the directory to the processes as orte_tmpdir_base, too; since
/// they reject having both settings, the script hides kSessionDirectoryVariable from them.
void TakeOwnSessionDirectory(const std::vector<std::string>& users, Launch& launch) {
  constexpr std::array<const char*, 3> kChoices = {"orte_tmpdir_base", "orte_local_tmpdir_base",
                                                   "orte_remote_tmpdir_base"};
  const bool chosen = std::any_of(kChoices.begin(), kChoices.end(), [&](const char* name) {
    return std::getenv(fmt::format("OMPI_MCA_{}", name).c_str()) != nullptr ||
           std::find(users.begin(), users.end(), name) != users.end();
  });
  if (chosen) return;
  launch.needs_directory = true;
  launch.words.insert(launch.words.end(), {"--mca", "orte_local_tmpdir_base", "FILE:"});
}

/// Adds the mpirun options that pass the variables `names` to processes on other hosts.
void PassEnvironment(MpiKind kind, const std::vector<std::string>& names, std::vector<std::string>& words) {
  if (IsOpenMpi(kind)) {
    for (const std::string& name : names) words.insert(words.end(), {"-x", name});
  } else {
    words.insert(words.end(), {"-genvlist", fmt::format("{}", fmt::join(names, ","))});
  }
}

/// Whether the line is a harmless warning. Open MPI and its child process, ssh, both move the child into its
/// own process group. On a busy machine, Open MPI may attempt this too late; it then reports a failure and
/// continues: "plm:rsh: Warning: setpgid(5,5) failed in parent with errno=Permission denied(13)".
bool IsNoiseOfOpenMpi(std::string_view line) {
  const std::size_t begin = line.find("] plm:");
  return begin != std::string_view::npos && line.find("Warning: setpgid(", begin) != std::string_view::npos &&
         line.find(" failed in parent with errno=", begin) != std::string_view::npos;
}

/// Finds mpirun and queries its version. Throws std::runtime_error if no usable mpirun is found or the host
/// file is invalid.
MpiSetting FindMpi(const Options& options) {
  MpiSetting setting;
  try {
    FindCommand(options.mpirun, SearchPath());
  } catch (const CommandError& error) {
    throw std::runtime_error(
        fmt::format("--cluster mpi: {}; install an MPI, or give its mpirun with --mpirun", error.what()));
  }
  setting.program = options.mpirun;
  const Captured version = Capture({setting.program, "--version"}, MpiSearchPath(setting.program));
  setting.kind = RecogniseMpi(setting.program, version.out);
  setting.hosts = MpiHosts(options);
  return setting;
}

/// The names of the hosts in the host file; empty without a host file. Throws std::runtime_error if the file
/// cannot be read or is invalid.
std::vector<std::string> MpiHostNames(const Options& options) {
  std::vector<std::string> names;
  for (const Host& host : MpiHosts(options)) names.push_back(host.name);
  return names;
}

/// The address at which the processes reach this machine, as tracker::AddressTowards finds it for the hosts
/// of the host file. Without a host file, it is the address on the default route if there may be other hosts
/// (--mpirun-args is given, or the environment has a variable such as SLURM_JOB_ID), else the loopback
/// address.
tracker::Reached RouteToMpiHosts(const Options& options) {
  const std::vector<std::string> names = MpiHostNames(options);
  // Variables set in allocations, or by users who name the hosts in another way than with a host file.
  constexpr std::array<const char*, 7> kElsewhere = {"SLURM_JOB_ID",    "PBS_NODEFILE",
                                                     "LSB_HOSTS",       "PE_HOSTFILE",
                                                     "HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile",
                                                     "COBALT_NODEFILE"};
  const bool elsewhere = !options.mpirun_args.empty() ||
                         std::any_of(kElsewhere.begin(), kElsewhere.end(),
                                     [](const char* name) { return std::getenv(name) != nullptr; });
  if (names.empty() && !elsewhere) return {kLoopback, ""};
  return tracker::AddressTowards(names);
}

}  // namespace

MpiKind RecogniseMpi(const std::string& program, const std::string& version_text) {
  const auto says = [&](std::string_view text) { return version_text.find(text) != std::string::npos; };
  if (says("HYDRA")) return MpiKind::kHydra;
  if (says("Intel(R) MPI")) return MpiKind::kIntel;
  if (says("(Open MPI)") || says("(OpenRTE)") || says("(PRRTE)")) {
    const std::size_t number = version_text.find(") ");
    const int major = number == std::string::npos ? 0 : std::atoi(version_text.c_str() + number + 2);
    return major >= 5 || says("(PRRTE)") ? MpiKind::kOpenMpi5 : MpiKind::kOpenMpi4;
  }
  throw std::runtime_error(fmt::format(
      "'{} --version' is not from Open MPI, MPICH or Intel MPI: it printed \"{}\"; choose another with --mpirun",
      program, version_text.substr(0, version_text.find('\n'))));
}

Launch MpiLaunch(const MpiSetting& setting, const GangPlan& plan) {
  const ScriptInEnvironment script = InEnvironment(
      plan.script({.rank = "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-${SLURM_PROCID}}}}",
                   .local_rank = "${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-0}}",
                   .local_size = kRanksHere,
                   .cores = {.workers = kRanksHere}}),
      {kSessionDirectoryVariable});
  Launch launch;
  launch.name = "mpirun";
  if (IsOpenMpi(setting.kind)) launch.is_noise = IsNoiseOfOpenMpi;
  launch.environment = script.variables;
  std::vector<std::string> names;
  for (const auto& [name, value] : script.variables) names.push_back(name);
  for (const auto& [name, value] : PassedOn()) names.push_back(name);
  const std::optional<Bind> bind = BindingOf(plan);
  const int cores = plan.options->worker_cores;
  if (bind) {
    for (auto& variable : BindingVariables(setting.kind, *bind, cores))
      launch.environment.push_back(variable);
  }
  AddDefaults(setting.kind, launch.environment);
  // PATH must come last: Hydra (4.0.2) passes its environment to other hosts, but without the last variable.
  launch.environment.emplace_back("PATH", MpiSearchPath(setting.program));

  launch.words = {setting.program, "-n", std::to_string(plan.count)};
  if (!setting.hosts.empty()) {
    launch.files.emplace_back("hosts", HostFileFor(setting.kind, setting.hosts));
    launch.words.insert(launch.words.end(),
                        {IsOpenMpi(setting.kind) ? "--hostfile" : "-machinefile", "FILE:hosts"});
  }
  PassEnvironment(setting.kind, names, launch.words);
  if (bind) {
    const std::vector<std::string> words = BindingWords(setting.kind, *bind, cores);
    launch.words.insert(launch.words.end(), words.begin(), words.end());
  }
  const auto& extra = plan.options->mpirun_args;
  if (setting.kind == MpiKind::kOpenMpi4) TakeOwnSessionDirectory(extra, launch);
  launch.words.insert(launch.words.end(), extra.begin(), extra.end());
  launch.words.insert(launch.words.end(), script.command.begin(), script.command.end());
  return launch;
}

ClusterEntry MpiEntry() {
  ClusterEntry entry;
  entry.name = "mpi";
  entry.may_lose_workers = true;
  entry.where = "where mpirun starts them";
  LaunchTogether(entry, [](const Options& options) -> MakeLaunch {
    return [setting = FindMpi(options)](const GangPlan& plan) { return MpiLaunch(setting, plan); };
  });
  entry.host = [](const Options& options) { return HostByRoute(RouteToMpiHosts(options)); };
  entry.known_hosts = MpiHostNames;
  entry.core_sharing = CoreSharing::kTheirHost;
  entry.check = CheckBinding;
  entry.shared_options = {"--bind", "--host-file"};
  entry.own_options = {
      {"--mpirun", "PROGRAM", "mpirun", "The mpirun of Open MPI 4 or 5, MPICH or Intel MPI.",
       Text<&Options::mpirun>},
      {"--mpirun-args", "WORDS", "",
       "More options for mpirun, such as '-bind-to none -x NCCL_DEBUG=INFO -mca pml ob1'; quote words that contain spaces.",
       Words<&Options::mpirun_args>, true},
  };
  return entry;
}

}  // namespace warren::submit
