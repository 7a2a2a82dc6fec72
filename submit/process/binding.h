// Which cores of a host each process of a job is bound to: what a host says of its cores goes in, lists of
// cores come out. The same for this machine, which is asked by ReadHostCores, and for hosts elsewhere, which
// answer by a function of their script (host_cores in cluster/scripts/common.sh).
//
// A core that Linux numbers is a hardware thread; a physical core may have several.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warren::submit {

/// What each process is bound to.
enum class Bind {
  kNone,
  kCore,  ///< cores of its own
  kNuma   ///< all cores of a NUMA node
};
/// "core", as --bind has it.
std::string_view BindName(Bind bind);

/// Numbers of cores, ascending.
using CoreList = std::vector<int>;
/// From "0-3,8", as Linux writes them; nothing when it is no such list.
std::optional<CoreList> ParseCoreList(std::string_view text);
std::string ShowCoreList(const CoreList& cores);
/// "core 3", "cores 0-3,8".
std::string NamedCores(const CoreList& cores);

/// What a host says of its cores. The lists of lists are sorted.
struct HostCores {
  CoreList allowed;                      ///< for the processes of the job
  std::vector<CoreList> physical_cores;  ///< the hardware threads of each
  std::vector<CoreList> numa_nodes;      ///< the cores of each; a node that has memory only is left out

  bool operator==(const HostCores&) const = default;
};
/// Those of this machine, by /proc and /sys below `root`; offline ones have no place there.
HostCores ReadHostCores(const std::filesystem::path& root = "/");
/// From "0-3 / 0,2 1,3 / 0-3": as the script says it. Nothing when it is something else.
std::optional<HostCores> ParseHostCores(std::string_view text);

/// The processes of a job on one host, the scheduler of a parameter-server job apart: it sleeps.
struct HostProcesses {
  int workers = 0;
  int threads = 1;  ///< of each worker
  int servers = 0;  ///< which count for one thread each
};

/// All processes are bound, or none is.
struct Binding {
  std::vector<CoreList> workers;  ///< where each of them may run; empty: none is bound
  std::vector<CoreList> servers;
  std::string why_not = {};  ///< "8 threads are more than the 4 cores that may be used"
  bool too_few = false;  ///< there is too little for what was asked for, and not too little to choose from
};
/// One line: that nobody is bound, why, and what can be done.
std::string NotBoundStory(Bind bind, const Binding& binding, const std::string& host = {});

/// kCore: as many physical cores as threads, where there are so many, else as many cores. No two processes
/// share a physical core unless they have to, and none stretches over two NUMA nodes unless it has to.
/// kNuma: processes are dealt out in blocks. In both cases processes that follow each other are near each
/// other, and nobody is bound where threads would outnumber the cores they are bound to.
Binding BindProcesses(Bind bind, const HostCores& host, const HostProcesses& processes);

}  // namespace warren::submit
