// Decides how to start, watch and end the gangs of a job. A gang consists of the processes that one launcher
// (mpirun, srun, or the queue of a cluster) starts together; a job has one for each role except the
// scheduler.
//
// Inputs, most with the time: the job requests a process (Start) or the end of all processes (Stop, Kill);
// events from the agents around the processes (Handle); events of the launcher (Launched, LauncherFailed,
// LauncherWrote, LauncherExited); results of commands that query or cancel a queued job (CommandEnded); time
// has passed (Tick). Outputs, in order, through TakeActions: launchers to start and stop, commands to run,
// agents that must start or end their process, and reports to the job of where each process runs and how it
// ended.
//
// After each Start of a process, ProcessExited follows exactly once: normally when the agent reports the
// exit, when the queue reports it (the queue is queried if an agent leaves without a report), or when the
// launcher ends. Workers begin once the agent of worker 0 has arrived, and are given the address from which
// it has connected; after kMasterPatience they begin without that address.
//
// A state machine without I/O: processes, sockets and clocks are in gang.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "submit/cluster/agent_sessions.h"
#include "submit/cluster/cluster_event.h"
#include "submit/cluster/launch.h"
#include "submit/output/line_splitter.h"
#include "submit/process/kept_job.h"

namespace warren::submit {

/// Maximum time that workers wait for the agent of worker 0, counted from the first worker that waits.
inline constexpr std::chrono::seconds kMasterPatience{60};
/// The time between SIGTERM and SIGKILL for a launcher.
inline constexpr std::chrono::milliseconds kLauncherGrace{3500};

using GangId = std::size_t;
using CommandId = std::uint64_t;

/// Start the launcher, since Start was called for all processes of the gang. Call Launched or LauncherFailed
/// then; after Launched, call LauncherExited when the launcher has ended.
struct StartLauncher {
  GangId gang;
};
/// Send the launcher SIGTERM, and SIGKILL after kLauncherGrace.
struct StopLauncher {
  GangId gang;
};
/// Kill the launcher immediately.
struct KillLauncher {
  GangId gang;
};
/// Remove the launcher's files, which are no longer needed.
struct RemoveFiles {
  GangId gang;
};
/// Set the job that the queue keeps for the gang; nullopt if none exists. This also sets the command that
/// cleans up if dmlc-submit dies.
struct SetKept {
  GangId gang;
  std::optional<KeptJob> job;
};
/// Run a command, and call CommandEnded when it has ended.
struct RunCommand {
  CommandId command;
  std::vector<std::string> words;
};
struct LaunchProcess {
  std::size_t index;
  int attempt;
  std::uint16_t port;
  std::string master = {};  ///< the address of worker 0's host; empty for a server, or if unknown
};
struct EndAgent {
  std::size_t index;
};
using GangAction = std::variant<StartLauncher, StopLauncher, KillLauncher, RemoveFiles, SetKept, RunCommand,
                                LaunchProcess, EndAgent, ClusterEvent>;

class GangController : public ActionQueue<GangAction> {
 public:
  /// `rendezvous`: the address that the agents connect to, for messages: "HOST port PORT".
  GangController(std::size_t num_servers, std::size_t num_workers, std::string rendezvous);

  std::size_t num_gangs() const { return gangs_.size(); }
  GangId GangOf(std::size_t index) const;
  std::size_t FirstOf(GangId gang) const { return gangs_[gang].first; }
  std::size_t CountOf(GangId gang) const { return gangs_[gang].tasks.size(); }
  /// Whether a launcher or a command is running, or a job is about to be canceled.
  bool busy() const;

  void Start(std::size_t index, int attempt, std::uint16_t port, TimePoint now);
  void Stop(TimePoint now);
  void Kill();

  void Launched(GangId gang, const Launch& launch);
  void LauncherFailed(const std::string& why);
  void LauncherWrote(GangId gang, Stream stream, std::string_view bytes);
  void LauncherExited(GangId gang, const ExitStatus& status, TimePoint now);
  void CommandEnded(CommandId command, const std::string& printed, const ExitStatus& status, TimePoint now);
  void Handle(const AgentEvent& event, TimePoint now);
  void Tick(TimePoint now);
  /// When Tick must next be called, if ever.
  std::optional<TimePoint> NextDeadline() const;

 private:
  /// The state of one process.
  struct Task {
    enum class State {
      kIdle,    ///< not started, or ended
      kWanted,  ///< waiting for its agent or, if it is a worker, for the address of worker 0
      kRunning,
      kLost,  ///< ended by the queue, or its agent left without a report; the queue is being queried
    };
    enum class Agent {
      kNone,
      kHere,
      kToldToEnd,  ///< about to leave; it starts no process any more
    };
    State state = State::kIdle;
    Agent agent = Agent::kNone;
    int attempt = 0;
    std::uint16_t port = 0;
    bool was_here = false;  ///< whether the agent has arrived since the gang was launched
    bool is_keyless = false;
    ExitStatus status = {};  ///< how the last attempt ended
  };

  /// The processes of one role.
  struct Gang {
    GangId id = 0;
    std::size_t first = 0;  ///< index of the first process
    std::vector<Task> tasks;
    bool of_workers = false;
    std::string master = {};  ///< the address of worker 0's agent; empty until it has arrived
    bool goes_without_master = false;
    std::string name = {};       ///< the name of the launcher
    std::string directory = {};  ///< the directory of the launcher's files
    std::optional<Queue> queue = {};
    bool (*is_noise)(std::string_view line) = nullptr;  ///< returns whether to hide a line of the launcher
    bool launcher_runs = false;
    bool launched = false;     ///< whether the launcher runs or the job is in the queue
    std::string job = {};      ///< number of the job in the queue
    std::string printed = {};  ///< if Submits(), the launcher's standard output with the job's number
    std::string words = {};    ///< the end of the launcher's standard output and standard error
    LineSplitter out = {}, err = {};
    std::optional<ExitStatus> ended = {};    ///< the failure of the launcher or of the job in the queue
    std::optional<std::size_t> held = {};    ///< the process whose exit is held back: see End
    std::optional<TimePoint> begin_at = {};  ///< when to start waiting workers without worker 0's address
    std::optional<TimePoint> patience = {};  ///< when to stop the launcher
    std::optional<TimePoint> ask_at = {};
    /// When to cancel the job; it is canceled earlier if all of its agents have left.
    std::optional<TimePoint> cancel_at = {};
    bool asking = false;
    int asks_about_loss = 0;
    int failed_asks = 0;  ///< number of consecutive queries that did not reveal the state
    std::string last_report = {};
    bool requeued = false;
    bool gone = false;                          ///< whether the gang has ended without being stopped
    std::optional<TimePoint> relaunch_at = {};  ///< when to launch the gang again if it is gone
    /// Whether the gang has been stopped since its last launch; the next start launches it again.
    bool stopped = false;

    std::size_t end() const { return first + tasks.size(); }
    bool Submits() const { return queue && queue->returns; }
  };

  /// A running command that queries the queue, or cancels or removes a job.
  struct Command {
    enum class Kind {
      kAsk,
      kCancel,
      kAskWhyNotCancelled,
      kClear,  ///< removes a job that is over from a queue in which it would stay
    };
    Kind kind;
    GangId gang;
    std::string job;
    /// For kClear, how the job ended; for kAskWhyNotCancelled, the last line that kCancel printed.
    std::string story = {};
  };

  Task* Find(std::size_t index);
  Task& TaskOf(Gang& gang, std::size_t index) { return gang.tasks[index - gang.first]; }
  static bool AllAre(const Gang& gang, Task::State state);
  static bool AnyAgentIsHere(const Gang& gang);

  void EndWithoutPlace(Gang& gang, std::size_t index, TimePoint now);
  void Relaunch(Gang& gang, TimePoint now);
  void LaunchIfAllAreWanted(Gang& gang, TimePoint now);
  void SetKeptOf(const Gang& gang);
  void TellLauncherLine(const Gang& gang, Stream stream, std::string_view piece);
  void EndGang(Gang& gang, const ExitStatus& status, TimePoint now);

  void On(const AgentArrived& event, TimePoint now);
  void On(const AgentOutput& event, TimePoint now);
  void On(const AgentSaid& event, TimePoint now);
  void On(const AgentLeft& event, TimePoint now);
  void On(const AgentKeyless& event, TimePoint now);
  void Welcome(Gang& gang, const AgentArrived& event, TimePoint now);
  void LaunchIfWanted(Gang& gang, std::size_t index, TimePoint now);
  void LaunchAll(Gang& gang, TimePoint now);
  static void ForgetMaster(Gang& gang);
  void BeginWithoutMaster(Gang& gang, TimePoint now);
  void Lose(Gang& gang, Task& task, const ExitStatus& status);
  void End(std::size_t index, const ExitStatus& status, TimePoint now);
  void Report(std::size_t index, const ExitStatus& status);

  void Run(Command command, std::vector<std::string> words);
  void AskLater(Gang& gang, TimePoint now);
  void Ask(Gang& gang);
  void OnReport(Gang& gang, const JobReport& report, TimePoint now);
  void EndLostProcesses(Gang& gang, TimePoint now);
  void OnOver(Gang& gang, const JobReport& report, TimePoint now);
  void CancelJob(Gang& gang);
  void WarnNotCancelled(const Gang& gang, const std::string& job, const std::string& said);
  void OnImpatience(Gang& gang);

  std::string rendezvous_;
  std::vector<Gang> gangs_;
  std::map<CommandId, Command> commands_;
  CommandId last_command_ = 0;
  bool stopping_ = false;
};

}  // namespace warren::submit
