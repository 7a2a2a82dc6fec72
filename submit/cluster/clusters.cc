#include "submit/cluster/clusters.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "submit/cluster/kubernetes/entry.h"
#include "submit/cluster/local.h"
#include "submit/cluster/mpi.h"
#include "submit/cluster/sge.h"
#include "submit/cluster/slurm.h"
#include "submit/cluster/ssh.h"
#include "submit/cluster/yarn.h"
#include "tracker/host_address.h"

namespace warren::submit {
namespace {

/// The registry: one row per cluster, each defined in the cluster's own file.
std::vector<ClusterEntry>& Registry() {
  static std::vector<ClusterEntry> registry = {
      LocalEntry(), SshEntry(), MpiEntry(), SlurmEntry(), SgeEntry(), YarnEntry(), KubernetesEntry(),
  };
  return registry;
}

/// The value of PATH for processes that run on this machine.
std::string PathOfProcesses(const Options& options) {
  return FindVariable(options.environment, "PATH").value_or(SearchPath());
}

/// The path on the other hosts that corresponds to `path` on this machine. They differ if `path` is in the
/// current directory and that directory is copied (--sync-dst-dir). If the path of the copy is relative to
/// the home directory on those hosts, the result is relative to the copy, in which the processes run.
std::string OnHosts(const Options& options, const std::string& path) {
  if (options.sync_dst_dir.empty()) return path;
  const std::filesystem::path relative =
      std::filesystem::path(path).lexically_relative(std::filesystem::current_path());
  const bool is_copied = !relative.empty() && *relative.begin() != "..";
  if (!is_copied) return path;
  const std::filesystem::path copy = options.sync_dst_dir;
  return copy.is_absolute() ? (copy / relative).lexically_normal().string() : "./" + relative.string();
}

/// Makes the processes on every host use a Python environment, which is not on PATH on other hosts: the one
/// in which the command's name was found or, if there is none or the command is a path, dmlc-submit's active
/// one.
void UseEnvironmentElsewhere(const Options& options, FoundCommand& command) {
  const bool is_path = command.argv0.find('/') != std::string::npos;
  std::string own = is_path ? std::string() : PythonEnvironmentOf(command.file);
  if (!own.empty()) {
    own = OnHosts(options, own);
    command.argv0 = fmt::format("{}/bin/{}", own, command.argv0);
  }
  command.python_environment = own.empty() ? OnHosts(options, ActivePythonEnvironment()) : own;
}

}  // namespace

const std::vector<ClusterEntry>& Clusters() {
  return Registry();
}

const OptionTable& AllOptions() {
  static const OptionTable table({Clusters().begin(), Clusters().end()});
  return table;
}

ClusterRegistration::ClusterRegistration(ClusterEntry entry) {
  Registry().push_back(std::move(entry));
}

const ClusterEntry& FindCluster(std::string_view name) {
  return FindCluster(Clusters(), name);
}

const ClusterEntry& ClusterOf(const Options& options) {
  return FindCluster(options.cluster);
}

JobHost HostOfJob(const Options& options, int start) {
  const ClusterEntry& cluster = ClusterOf(options);
  if (cluster.own_tracker) {
    JobHost host = cluster.own_tracker(options, start);
    if (host.port != 0) return host;
  }
  if (!options.host_ip.empty()) return {tracker::ResolveHostIp(options.host_ip)};
  return cluster.host(options);
}

std::vector<std::string> KnownHosts(const Options& options) {
  const ClusterEntry& cluster = ClusterOf(options);
  return cluster.known_hosts ? cluster.known_hosts(options) : std::vector<std::string>();
}

FoundCommand CommandOf(const Options& options) {
  const std::string& name = options.command.front();
  const ClusterEntry& cluster = ClusterOf(options);
  FoundCommand found{name, name, {}};
  try {
    found = FindCommand(name, PathOfProcesses(options));
  } catch (const CommandError& error) {
    if (cluster.runs_here) throw;
    // The command may still work on the hosts, where a different file may be found.
    if (error.is_bare_script) found.note = error.what();
  }
  if (!cluster.runs_here && !cluster.has_own_directories) UseEnvironmentElsewhere(options, found);
  return found;
}

}  // namespace warren::submit
