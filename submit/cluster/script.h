// The text of the POSIX shell scripts that run a process of the job on a machine where nothing of ours is
// installed. They need a POSIX shell and grep; for ssh setsid (util-linux or busybox) and Linux's /proc, too.
//
// Every word of the command and every value of the environment is quoted, so that they arrive byte for byte.
// What the scripts have to say they say in messages (agent_messages.h) on standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "submit/plan.h"
#include "submit/process/sample.h"
#include "submit/shipping.h"

namespace warren::submit {

/// How often dmlc-submit writes a line to the script of an ssh process, which waits ten times as long for
/// one.
inline constexpr std::chrono::seconds kBeatInterval{6};

/// What a script divides the cores of its host by, unless OMP_NUM_THREADS is set there: words of the shell.
struct CoreShare {
  std::string workers;     ///< of this job on that host; both empty: nothing is shared out
  std::string cores = {};  ///< of this worker, where its cluster says so; empty or unset there: its share
  int kept = 0;            ///< cores that are not shared out
};

/// For one process over ssh, read by `sh` from its standard input, of which the rest is then watched: see
/// scripts/watched.sh. `directory`: where the process runs. `binds`: before it starts the process it says in
/// a message, "cores", what its host has, and waits for a line with those that the process is bound to; an
/// empty one: with none.
std::string WatchedScript(const PlannedProcess& process, std::size_t index, int attempt,
                          const std::string& job_mark, const std::string& directory, const CoreShare& cores,
                          bool binds = false);

/// Where a gang's agents find dmlc-submit, and what tells its processes apart.
struct GangScriptContext {
  std::string job_mark;
  std::string rank = {};  ///< words of the shell, as in ScriptSetting
  std::string local_rank = {};
  std::string local_size = {};
  std::string directory;  ///< where the processes run
  std::string rendezvous_host;
  std::uint16_t rendezvous_port = 0;
  std::vector<Archive> archives = {};  ///< to be unpacked there
  CoreShare cores = {};
  std::string agent_key = {};     ///< by which dmlc-submit knows its agents
  std::string secrets_file = {};  ///< SecretsOf, which are not in the script then; empty: they are
};

/// What nobody else may read: commands of the shell that export these variables, and set agent_key.
std::string SecretsOf(const tracker::Environment& secret_variables, const std::string& agent_key);

/// Commands of the shell that export the variables; those whose names a shell does not take are left out.
std::string ExportCommands(const tracker::Environment& environment);

/// DMLC_TRACKER_PORT, or DMLC_PS_ROOT_PORT in a parameter-server job: what another start of the job may
/// change.
std::string PortVariable(const PlannedProcess& process);

/// For all processes of a gang: see scripts/gang.sh. `first` is the index in the plan of the one with rank 0;
/// `process` is any of them.
std::string GangScript(const PlannedProcess& process, std::size_t first, std::size_t count,
                       const GangScriptContext& context);

/// A file that lies in a pod and belongs into the directory its process runs in.
struct PodFile {
  std::string path;
  std::string name;  ///< of the file, or of the directory that the archive is unpacked into
  bool executable = false;
  bool archive = false;
};

struct PodScriptContext {
  std::string job_mark;   ///< empty: no messages are written
  std::string rank;       ///< a word of the shell that says which of the role's processes it is, from 0
  std::size_t first = 0;  ///< index in the plan of the one with rank 0
  int attempt = 0;
  int restarts = 0;
  std::string awaited =
      {};  ///< a name, or a variable with it, that has to be known before the process starts
  int seconds_to_be_known = 0;  ///< or so much time has passed
  std::vector<PodFile> files = {};
  std::string tracker = {};  ///< a command without quotes, perhaps with variables, that runs beside rank 0
  std::string master = {};   ///< where worker 0 is found, or a variable with it; empty: not known
};

/// Writes the stacks (scripts/stacks.sh) of a process of this machine, and of what it has started, to
/// standard output. Words of a command, of which the first is looked for on PATH.
std::vector<std::string> StacksCommand(pid_t pid);

/// For all pods of a role: see scripts/pod.sh. `process` is any of the role's.
std::string PodScript(const PlannedProcess& process, const PodScriptContext& context);

/// A script as environment variables, each short enough for every launcher, and the command that runs it.
struct ScriptInEnvironment {
  tracker::Environment variables;
  std::vector<std::string> command;
};
/// `kept_back`: variables of the launcher that the script's process is not to have.
ScriptInEnvironment InEnvironment(const std::string& script, const std::vector<std::string>& kept_back = {});

}  // namespace warren::submit
