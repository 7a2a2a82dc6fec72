// Chooses the cores that each process of a job is bound to, from the cores of its host. ReadHostCores reads
// the cores of this machine; on other hosts, a script reports them (host_cores in cluster/scripts/common.sh).
//
// A core here is a hardware thread, as Linux numbers them; a physical core may have several.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warren::submit {

/// The cores that each process is bound to.
enum class Bind {
  kNone,
  kCore,  ///< separate cores for each process
  kNuma   ///< all cores of one NUMA node
};
/// The value of --bind, such as "core".
std::string_view BindName(Bind bind);

/// Core numbers in ascending order.
using CoreList = std::vector<int>;
/// Parses a list such as "0-3,8", as Linux writes it; nullopt if it is malformed.
std::optional<CoreList> ParseCoreList(std::string_view text);
std::string ShowCoreList(const CoreList& cores);
/// The list for use in a sentence: "core 3", "cores 0-3,8".
std::string NamedCores(const CoreList& cores);

/// The cores of a host. `physical_cores` and `numa_nodes` are sorted.
struct HostCores {
  CoreList allowed;                      ///< the cores that the job may use
  std::vector<CoreList> physical_cores;  ///< the hardware threads of each physical core
  std::vector<CoreList> numa_nodes;      ///< the cores of each node; nodes without cores are omitted

  bool operator==(const HostCores&) const = default;
};
/// Reads the cores of this machine from /proc and /sys under `root`. Offline cores are omitted. Lists
/// that cannot be read are empty.
HostCores ReadHostCores(const std::filesystem::path& root = "/");
/// Parses a report of the script host_cores about another host, e.g. "0-3 / 0,2 1,3 / 0-3 / 0-3"; nullopt if
/// malformed.
std::optional<HostCores> ParseHostCores(std::string_view text);

/// The processes of a job on one host. The scheduler of a parameter-server job is left out, since it is idle.
struct HostProcesses {
  int workers = 0;
  int threads = 1;  ///< per worker
  int servers = 0;  ///< each counts as one thread
};

/// The chosen cores. Either all processes are bound or none is.
struct Binding {
  std::vector<CoreList> workers;  ///< the cores of each worker; empty if no process is bound
  std::vector<CoreList> servers;
  std::string why_not = {};  ///< why no process is bound; empty if all are, or with kNone
  bool too_few = false;      ///< whether fewer workers or threads would help
};
/// A line for the user: that no process is bound, why, and what would help, if anything.
std::string NotBoundStory(Bind bind, const Binding& binding, const std::string& host = {});

/// Chooses cores for all processes on a host, or for none if they have more threads than there are cores, or
/// if kNuma is chosen and there is only one node. Consecutive processes are placed close to each other.
/// kCore: each process gets as many physical cores as it has threads or, if there are too few physical cores,
/// as many hardware threads; if possible, processes do not share a physical core, and a process does not span
/// NUMA nodes. kNuma: each node gets a block of consecutive processes, each bound to all of the node's cores;
/// no process is bound if a node would get more threads than it has cores.
Binding BindProcesses(Bind bind, const HostCores& host, const HostProcesses& processes);

}  // namespace warren::submit
