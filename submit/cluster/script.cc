#include "submit/cluster/script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "submit/cluster/scripts/texts.h"
#include "submit/process/command.h"

namespace warren::submit {
namespace {

/// Quotes the word for a shell, even if ShellQuote considers that unnecessary.
std::string Quoted(const std::string& word) {
  const std::string quoted = ShellQuote(word);
  return quoted.starts_with('\'') ? quoted : fmt::format("'{}'", quoted);
}

/// Variables that bash does not let a script set, or to which it gives a value of its own.
constexpr std::array<std::string_view, 11> kNamesOfBash = {"BASHOPTS", "BASH_VERSINFO", "DIRSTACK", "EUID",
                                                           "FUNCNAME", "GROUPS",        "LINENO",   "PPID",
                                                           "RANDOM",   "SHELLOPTS",     "UID"};

/// Whether every shell can export a variable of this name with any value.
bool IsShellName(std::string_view name) {
  if (std::find(kNamesOfBash.begin(), kNamesOfBash.end(), name) != kNamesOfBash.end()) return false;
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), is_part);
}

/// The shell function `environment`, which runs the commands of ExportCommands.
std::string EnvironmentFunction(const tracker::Environment& environment) {
  return fmt::format("environment() {{\n:\n{}}}\n", ExportCommands(environment));
}

/// Sets the variable python_environment for enter_environment and missing_interpreter of common.sh.
std::string PythonEnvironment(const PlannedProcess& process) {
  return fmt::format("python_environment={}\n", Quoted(process.python_environment));
}

std::string ShareFunction(const CoreShare& share) {
  const bool shares = !share.workers.empty() || !share.cores.empty();
  return shares ? fmt::format("share() {{ share_cores \"{}\" \"{}\" {}; }}\n", share.workers, share.cores,
                              share.kept)
                : "share() { :; }\n";
}

/// The shell function `place`, which exports the variables that torch.distributed and Horovod need beyond the
/// planned environment. The arguments are shell words: the worker's local rank, the number of workers on its
/// host, and worker 0's address, which may be empty.
std::string PlaceFunction(const PlannedProcess& process, const std::string& local_rank,
                          const std::string& local_size, const std::string& master) {
  if (process.role != tracker::Role::kWorker) return "place() { :; }\n";
  std::string text =
      fmt::format("place() {{\nexport {} {} {}\n", ExportWords(kRankVariable, "$rank"),
                  ExportWords(kLocalRankVariable, local_rank), ExportWords(kLocalSizeVariable, local_size));
  if (!NamesMaster(process))
    text += fmt::format("[ -z \"{0}\" ] || export {1}=\"{0}\"\n", master, kMasterVariable);
  return text + "}\n";
}

/// The command as shell words. If `export` cannot set some variables, `env` with these variables comes first.
/// The shell looks up `env` and `sh` when it reads these words, before it sets a PATH that the user gives to
/// the command, which may lack them.
std::string CommandWords(const PlannedProcess& process) {
  std::string words;
  for (const auto& [name, value] : process.environment) {
    if (IsShellName(name)) continue;
    words += fmt::format("{} {}", words.empty() ? "\"$(command -v env)\" --" : "",
                         Quoted(fmt::format("{}={}", name, value)));
  }
  if (!words.empty() && process.argv.front().find('=') != std::string::npos) {
    words +=
        " \"$(command -v sh)\" -c 'exec \"$0\" \"$@\"'";  // env would take the command for another variable
  }
  for (const std::string& word : process.argv)
    words += fmt::format("{}{}", words.empty() ? "" : " ", Quoted(word));
  return words;
}

/// The functions shared by WatchedScript and GangScript.
std::string AgentFunctions() {
  return fmt::format("usage_seconds={}\n{}{}{}{}", kSampleInterval.count(), kCommonScript, kMarksScript,
                     kUsageScript, kStacksScript);
}

}  // namespace

std::string ExportCommands(const tracker::Environment& environment) {
  std::string text;
  for (const auto& [name, value] : environment) {
    if (IsShellName(name)) text += fmt::format("export {}={}\n", name, Quoted(value));
  }
  return text;
}

std::string WatchedScript(const PlannedProcess& process, std::size_t index, int attempt,
                          const std::string& job_mark, const std::string& directory, const CoreShare& cores,
                          bool binds) {
  std::string script =
      fmt::format("{{\njob={}\nindex={}\nattempt={}\nmark=$job.$index.$attempt\ndirectory={}\nbinds={}\n",
                  job_mark, index, attempt, Quoted(directory), binds ? "1" : "");
  script += PythonEnvironment(process);
  script += EnvironmentFunction(EnvironmentOfAttempt(process, attempt)) + ShareFunction(cores);
  script += fmt::format("set -- {}\n", CommandWords(process));
  return script + AgentFunctions() + kWatchedScript + "}\n";
}

std::string PortVariable(const PlannedProcess& process) {
  return HasVariable(process.environment, "DMLC_PS_ROOT_PORT") ? "DMLC_PS_ROOT_PORT" : "DMLC_TRACKER_PORT";
}

std::string GangScript(const PlannedProcess& process, std::size_t first, std::size_t count,
                       const GangScriptContext& context, const ScriptSetting& setting) {
  std::string script = fmt::format(
      "job={}\nrank={}\ncount={}\nfirst={}\ndirectory={}\nrendezvous_host={}\nrendezvous_port={}\nport_variable={}\n"
      "secrets_file={}\nagent_key={}\n",
      context.job_mark, setting.rank, count, first,
      Quoted(setting.directory.empty() ? context.directory : setting.directory),
      Quoted(context.rendezvous_host), context.rendezvous_port, PortVariable(process),
      Quoted(setting.secrets_file), setting.secrets_file.empty() ? context.agent_key : "");
  script += PythonEnvironment(process);
  script += EnvironmentFunction(process.environment) + ShareFunction(setting.cores);
  script += PlaceFunction(process, setting.local_rank, setting.local_size, "$master");
  script += fmt::format("set -- {}\n", CommandWords(process));
  script += "unpack_all() {\n:\n";
  for (const Archive& archive : setting.archives) {
    const std::string name = archive.path.substr(archive.path.rfind('/') + 1);
    script += fmt::format("unpack {} {} || return\n", Quoted(name), Quoted(archive.directory));
  }
  script += "}\n";
  return script + AgentFunctions() + kGangScript;
}

std::vector<std::string> StacksCommand(pid_t pid) {
  return {"sh", "-c", fmt::format("{}{}limited_stacks \"$1\"", kUsageScript, kStacksScript), "sh",
          std::to_string(pid)};
}

std::string PodScript(const PlannedProcess& process, const PodScriptContext& context) {
  // The kernel drops signals that the first process of a container does not handle yet: a pod that is deleted
  // while its script begins would otherwise run until the end of its grace period.
  std::string script = "told=\ntrap 'told=stopped' TERM INT HUP\n";
  script += fmt::format(
      "job={}\nrank={}\nfirst={}\nattempt={}\nrestarts={}\nkilled_only={}\nawaited=\"{}\"\npatience={}\ntracker=\"{}\"\n",
      context.job_mark, context.rank, context.first, context.attempt, context.restarts,
      context.restarts_killed_only ? "1" : "", context.awaited, context.seconds_to_be_known, context.tracker);
  script += EnvironmentFunction(process.environment);
  script += PlaceFunction(process, "0", "1", context.master);
  script += fmt::format("set -- {}\n", CommandWords(process));
  script += "place_files() {\n:\n";
  for (const PodFile& file : context.files) {
    script += fmt::format("{} {} {}{} || return\n", file.archive ? "unpack" : "copy", Quoted(file.path),
                          Quoted(file.name), file.executable ? " x" : "");
  }
  script += "}\n";
  return script + kCommonScript + kPodScript;
}

ScriptInEnvironment InEnvironment(const std::string& script, std::vector<std::string> hidden) {
  // Linux allows at most 128 KiB in one variable.
  constexpr std::size_t kMostBytes = 100'000;
  ScriptInEnvironment result;
  std::string whole;
  const std::size_t count = (script.size() + kMostBytes - 1) / kMostBytes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("DMLC_SUBMIT_SCRIPT_{}", i);
    hidden.push_back(name);
    whole += fmt::format("${}", name);
    result.variables.emplace_back(name, script.substr(i * kMostBytes, kMostBytes));
  }
  const std::string run = fmt::format("script_variables=\"{}\"; eval \"{}\"", fmt::join(hidden, " "), whole);
  result.command = {
      "sh", "-c",
      fmt::format(
          "[ -n \"$DMLC_SUBMIT_SCRIPT_0\" ] || {{ echo 'dmlc-submit: the launcher did not pass on its environment' >&2; exit 1; }}; run='{}'; "
          "if command -v bash >/dev/null; then exec bash -c \"$run\"; fi; eval \"$run\"",
          run)};
  return result;
}

}  // namespace warren::submit
