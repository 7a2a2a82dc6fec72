// The shell scripts that run a process of the job on a machine where no part of Warren is installed. They
// need a POSIX shell and common tools such as grep, sed and sleep; with ssh also setsid (util-linux or
// busybox) and Linux's /proc. A gang's script also needs bash in order to report anything.
//
// Every word of the command and every value of the environment is quoted, so that they arrive byte for byte.
// The scripts report through messages (agent_messages.h): on standard error or, in a gang, over the agent's
// own connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "submit/cluster/shipping.h"
#include "submit/process/planned_process.h"
#include "submit/process/sample.h"

namespace warren::submit {

/// The interval between the heartbeats that dmlc-submit sends to the wrapper script of a remote process (ssh
/// or gang). If the script receives nothing for a minute, i.e. ten intervals, it ends the process. Over ssh,
/// this needs the command `timeout` on the host.
inline constexpr std::chrono::seconds kBeatInterval{6};
/// Extra time after kStopGrace for the scripts, and a launcher, to end and for the last output to arrive.
inline constexpr std::chrono::milliseconds kLastWordsPatience{500};

/// The parameters by which a script divides the cores of its host, unless OMP_NUM_THREADS is set there. The
/// strings are shell words.
struct CoreShare {
  /// Number of this job's workers on the host. If both this and `cores` are empty, OMP_NUM_THREADS is not
  /// set.
  std::string workers;
  /// The number of cores that the cluster gives this worker. If it expands to nothing, the worker gets an
  /// equal share of the host's cores.
  std::string cores = {};
  int kept = 0;  ///< number of the host's cores that the workers leave to other processes
};

/// The script for one process over ssh, to be sent to the standard input of `sh`. It then reads commands from
/// the rest of that input: see scripts/watched.sh. `directory`: where the process runs. `binds`: whether the
/// script, before it starts the process, reports its host's cores in a "cores" message and waits for a line
/// with the cores to bind the process to, or an empty line for none.
std::string WatchedScript(const PlannedProcess& process, std::size_t index, int attempt,
                          const std::string& job_mark, const std::string& directory, const CoreShare& cores,
                          bool binds = false);

/// The parts of a gang's script that depend on the cluster.
struct ScriptSetting {
  std::string rank;  ///< shell word with the rank of the process in the gang, from 0
  /// Shell words with the local rank of the process and the number of the gang's processes on its host. The
  /// default treats each process as the only one on its host, for clusters that give each process the
  /// resources it requested and do not report which processes share a host.
  std::string local_rank = "0";
  std::string local_size = "1";
  tracker::Environment environment = {};  ///< variables for the processes, unless the job sets them
  std::string directory = {};             ///< working directory; if empty, dmlc-submit's current directory
  std::vector<Archive> archives = {};     ///< archives in that directory to unpack
  CoreShare cores = {};                   ///< used if the workers share the cores of their hosts
  std::string secrets_file = {};          ///< file with GangPlan::secrets; if empty, the script has them
};

/// The parts of a gang's script that are the same on every cluster.
struct GangScriptContext {
  std::string job_mark;
  std::string directory;  ///< dmlc-submit's current directory
  std::string rendezvous_host;
  std::uint16_t rendezvous_port = 0;
  std::string agent_key;  ///< proves that an agent belongs to the job
};

/// Shell commands that export the variables, without those whose names a shell does not accept.
std::string ExportCommands(const tracker::Environment& environment);

/// The name of the variable with the port of the tracker (DMLC_TRACKER_PORT) or, in a parameter-server job,
/// of the scheduler (DMLC_PS_ROOT_PORT). The port may change when the job is restarted.
std::string PortVariable(const PlannedProcess& process);

/// The script for all processes of a gang: see scripts/gang.sh. `first`: index in the plan of the process
/// with rank 0; `process`: any process of the gang.
std::string GangScript(const PlannedProcess& process, std::size_t first, std::size_t count,
                       const GangScriptContext& context, const ScriptSetting& setting);

/// A file or archive in a pod, to be copied or unpacked into the directory in which the pod's process runs.
struct PodFile {
  std::string path;
  std::string name;  ///< name of the copy, or of the directory to unpack the archive into
  bool executable = false;
  bool archive = false;
};

struct PodScriptContext {
  std::string job_mark;   ///< if empty, no messages are written
  std::string rank;       ///< shell word with the number of the process within its role, from 0
  std::size_t first = 0;  ///< index in the plan of the process with rank 0
  int attempt = 0;        ///< number of the first attempt in the first pod of the process
  int restarts = 0;       ///< maximum number of restarts in the first pod; one less in each later pod
  /// Whether the script restarts the command only if a signal killed it.
  bool restarts_killed_only = false;
  /// A host name, or a variable that contains one: the script waits for it to resolve before it starts the
  /// command, but no longer than seconds_to_be_known. Empty: no such name.
  std::string awaited = {};
  int seconds_to_be_known = 0;  ///< maximum time to wait for `awaited` to resolve
  std::vector<PodFile> files = {};
  std::string tracker = {};  ///< command to run beside rank 0, unquoted, possibly with variables; or empty
  std::string master = {};   ///< address of worker 0, or a variable that contains it; empty if unknown
};

/// A command that writes the stacks of a process on this machine and of its descendants to standard output
/// (scripts/stacks.sh). The first word must be looked up on PATH.
std::vector<std::string> StacksCommand(pid_t pid);

/// The script for all pods of a role: see scripts/pod.sh. `process`: any process of the role.
std::string PodScript(const PlannedProcess& process, const PodScriptContext& context);

/// A script in environment variables, each within Linux's limit for a variable, and the command that runs it.
struct ScriptInEnvironment {
  tracker::Environment variables;
  std::vector<std::string> command;
};
/// `hidden`: variables of the launcher that the script removes from its process's environment.
ScriptInEnvironment InEnvironment(const std::string& script, std::vector<std::string> hidden = {});

}  // namespace warren::submit
