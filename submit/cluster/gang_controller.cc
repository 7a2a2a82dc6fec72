#include "submit/cluster/gang_controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "submit/output/last_line.h"
#include "submit/process/watchdog.h"

namespace warren::submit {
namespace {

/// Time limit for a launcher to end after its last process, or for a launcher that submits a job to end after
/// Stop. Open MPI's mpirun takes more than 2 s, and leaves processes running if it is killed earlier.
constexpr std::chrono::seconds kLauncherPatience{10};
/// Intervals between queries of a queue: kAskLater while all processes run, otherwise kAskSoon.
constexpr std::chrono::milliseconds kAskSoon{500};
constexpr std::chrono::seconds kAskLater{5};
/// The time from the end of the last process, if it has succeeded, to the next query of the queue.
constexpr std::chrono::milliseconds kAskAtTheEnd{100};
/// A lost process counts as failed when the queue has reported this many times that the job is running.
constexpr int kAsksAboutLoss = 6;
/// After this many consecutive queries without an answer, the user is warned, and lost processes count as
/// failed. At kAskSoon, this is two minutes: a job may stay in Slurm's state COMPLETING for a while.
constexpr int kFailedAsks = 240;
constexpr std::size_t kLastWordsBytes = 4000;
constexpr int kLost = 255;
constexpr std::string_view kNotAgain = "cannot be started again";

ExitStatus LostStatus(const std::string& story) {
  return {kLost, 0, false, story};
}

/// The status of a process that is lost with its agent, and for which the launcher starts no other agent.
ExitStatus WithoutPlace(const std::string& story) {
  ExitStatus status = LostStatus(story);
  status.host_lost = status.place_lost = true;
  return status;
}

const ExitStatus kLostWithoutAWord =
    WithoutPlace("was lost without a report: it was killed, or its host is down");

}  // namespace

GangController::GangController(std::size_t num_servers, std::size_t num_workers, std::string rendezvous)
    : rendezvous_(std::move(rendezvous)) {
  if (num_servers > 0) gangs_.push_back({.id = 0, .first = 1, .tasks = std::vector<Task>(num_servers)});
  gangs_.push_back({.id = gangs_.size(),
                    .first = num_servers > 0 ? 1 + num_servers : 0,  // 0 is the scheduler
                    .tasks = std::vector<Task>(num_workers),
                    .of_workers = true});
}

GangId GangController::GangOf(std::size_t index) const {
  return index < gangs_.front().end() ? 0 : gangs_.size() - 1;
}

GangController::Task* GangController::Find(std::size_t index) {
  if (index < gangs_.front().first || index >= gangs_.back().end()) return nullptr;
  return &TaskOf(gangs_[GangOf(index)], index);
}

bool GangController::busy() const {
  return !commands_.empty() || std::any_of(gangs_.begin(), gangs_.end(), [](const Gang& gang) {
    return gang.launcher_runs || gang.cancel_at.has_value();
  });
}

// --- starting --------------------------------------------------------------------------------------------

void GangController::Start(std::size_t index, int attempt, std::uint16_t port, TimePoint now) {
  stopping_ = false;
  Gang& gang = gangs_[GangOf(index)];
  Task& task = TaskOf(gang, index);
  if (gang.held) {  // a process is restarted, so the held one was not the last
    Report(*gang.held, TaskOf(gang, *gang.held).status);
    gang.held.reset();
    gang.patience.reset();
  }
  task.state = Task::State::kWanted;
  task.attempt = attempt;
  task.port = port;
  if (gang.stopped) task.was_here = false;
  if (task.agent == Task::Agent::kHere) {
    LaunchIfWanted(gang, index, now);
  } else if (gang.launched && task.was_here && !gang.requeued) {
    EndWithoutPlace(gang, index, now);
  } else if (gang.gone) {
    // The launch follows in the next Tick: by then, Start was also called for the processes that failed with
    // this one.
    gang.relaunch_at = now;
  }
  if (index + 1 == gang.end()) LaunchIfAllAreWanted(gang, now);
}

/// Ends a process whose agent has ended. The message includes how its last attempt ended, which may be the
/// reason.
void GangController::EndWithoutPlace(Gang& gang, std::size_t index, TimePoint now) {
  const ExitStatus& before = TaskOf(gang, index).status;
  if (before.story.starts_with(kNotAgain)) return End(index, ExitStatus(before), now);
  std::string story = fmt::format("{}: its slot under {} is gone", kNotAgain, gang.name);
  if (!before.ok()) story += fmt::format("; before, it {}", before.Describe());
  End(index, WithoutPlace(story), now);
}

bool GangController::AllAre(const Gang& gang, Task::State state) {
  return std::all_of(gang.tasks.begin(), gang.tasks.end(),
                     [state](const Task& task) { return task.state == state; });
}

void GangController::LaunchIfAllAreWanted(Gang& gang, TimePoint now) {
  if (std::exchange(gang.requeued, false)) return AskLater(gang, now);  // the job is still in the queue
  // A gang is launched again only when its previous launch has ended.
  if (!gang.launched && AllAre(gang, Task::State::kWanted)) Do(StartLauncher{gang.id});
}

/// Launches the gang again if all of its processes are wanted; otherwise, the wanted ones end. Called when
/// the gang has ended but the job continues.
void GangController::Relaunch(Gang& gang, TimePoint now) {
  if (AllAre(gang, Task::State::kWanted)) return LaunchIfAllAreWanted(gang, now);
  for (std::size_t i = gang.first; i < gang.end(); ++i) {
    if (TaskOf(gang, i).state == Task::State::kWanted) EndWithoutPlace(gang, i, now);
  }
}

void GangController::Launched(GangId id, const Launch& launch) {
  Gang& gang = gangs_[id];
  gang.name = launch.name;
  gang.directory = launch.directory;
  gang.queue = launch.queue;
  gang.is_noise = launch.is_noise;
  gang.ended.reset();
  gang.printed.clear();
  gang.words.clear();
  gang.job.clear();
  gang.last_report.clear();
  gang.failed_asks = 0;
  ForgetMaster(gang);
  for (std::size_t i = gang.first; i < gang.end(); ++i) {
    Task& task = TaskOf(gang, i);
    task.was_here = false;
    if (task.agent != Task::Agent::kHere) continue;
    task.agent = Task::Agent::kToldToEnd;  // the agent has outlived the previous launcher
    Do(EndAgent{i});
  }
  gang.launcher_runs = gang.launched = true;
  gang.stopped = gang.gone = false;
  SetKeptOf(gang);
}

void GangController::LauncherFailed(const std::string& why) {
  Tell(JobTroubled{why});
}

void GangController::SetKeptOf(const Gang& gang) {
  if (gang.job.empty()) return Do(SetKept{gang.id, std::nullopt});
  const Queue& queue = *gang.queue;
  Do(SetKept{gang.id,
             KeptJob{fmt::format("job {} of {}", gang.job, queue.name),
                     queue.ask ? queue.ask(gang.job) : std::vector<std::string>(), queue.cancel(gang.job)}});
}

void GangController::LauncherWrote(GangId id, Stream stream, std::string_view bytes) {
  Gang& gang = gangs_[id];
  AppendToTail(gang.words, bytes, kLastWordsBytes);
  if (gang.queue && !gang.queue->returns && gang.job.empty()) {
    if (const auto job = gang.queue->id(gang.words)) {
      gang.job = *job;
      SetKeptOf(gang);
      Say(Severity::kInfo, fmt::format("this is job {} of {}", gang.job, gang.queue->name));
    }
  } else if (gang.Submits() && stream == Stream::kOut) {
    gang.printed += bytes;
    return;  // this output is the number of the job, not a message
  }
  if (stopping_) return;  // messages about processes being stopped would bury the cause
  LineSplitter& splitter = stream == Stream::kOut ? gang.out : gang.err;
  splitter.Append(bytes, [&](std::string_view piece) { TellLauncherLine(gang, stream, piece); });
}

void GangController::TellLauncherLine(const Gang& gang, Stream stream, std::string_view piece) {
  if (gang.is_noise != nullptr && gang.is_noise(piece)) return;
  Tell(LauncherSaid{gang.name, stream, std::string(piece)});
}

/// Handles the end of the launcher. A launcher that submits a job to a queue ends before the processes.
void GangController::LauncherExited(GangId id, const ExitStatus& status, TimePoint now) {
  Gang& gang = gangs_[id];
  gang.launcher_runs = false;
  gang.patience.reset();
  gang.out.Finish([&](std::string_view piece) { TellLauncherLine(gang, Stream::kOut, piece); });
  gang.err.Finish([&](std::string_view piece) { TellLauncherLine(gang, Stream::kErr, piece); });
  if (!gang.Submits() || !status.ok()) return EndGang(gang, status, now);
  const auto job = gang.queue->id(gang.printed);
  if (!job) {
    return EndGang(gang,
                   LostStatus(fmt::format("was not started: {} did not print a job number: {}", gang.name,
                                          LastLine(gang.printed + gang.words))),
                   now);
  }
  gang.job = *job;
  SetKeptOf(gang);
  if (gang.stopped) return CancelJob(gang);  // stopped while it was being submitted
  Say(Severity::kInfo, fmt::format("{} job {} of {}", gang.of_workers ? "this is" : "the servers are",
                                   gang.job, gang.queue->name));
  AskLater(gang, now);
}

/// Ends the gang. Called when no more agents of the gang can arrive.
void GangController::EndGang(Gang& gang, const ExitStatus& status, TimePoint now) {
  gang.launched = gang.requeued = false;
  gang.job.clear();
  Do(RemoveFiles{gang.id});
  SetKeptOf(gang);
  gang.ask_at.reset();
  gang.cancel_at.reset();
  if (gang.stopped && !stopping_) return LaunchIfAllAreWanted(gang, now);
  gang.gone = !stopping_;
  const std::string last = LastLine(gang.words);
  std::string story = !status.story.empty() ? status.story
                                            : fmt::format("ended with {}, which {}{}{}", gang.name,
                                                          status.Describe(), last.empty() ? "" : ": ", last);
  const bool any_came =
      std::any_of(gang.tasks.begin(), gang.tasks.end(), [](const Task& task) { return task.was_here; });
  if (gang.queue && !any_came && !stopping_) {
    story += fmt::format("; none of its processes reached {} (see --host-ip)", rendezvous_);
  }
  const ExitStatus failure{status.ok() ? kLost : status.ShellCode(), 0, false, story};
  if (!status.ok()) gang.ended = failure;
  if (const auto held = std::exchange(gang.held, std::nullopt)) {
    Report(*held, status.ok() ? TaskOf(gang, *held).status : failure);
  }
  bool told = false;
  for (std::size_t i = gang.first; i < gang.end(); ++i) {
    Task& task = TaskOf(gang, i);
    if (task.state == Task::State::kIdle) continue;
    if (task.was_here && task.agent != Task::Agent::kNone) continue;  // its agent will report or leave
    // Processes on hosts without bash have no agents; they are assumed to have ended as the launcher did.
    const bool never_came = !task.was_here && !gang.queue;
    if (never_came && status.ok() && !std::exchange(told, true)) {
      Say(Severity::kWarning,
          fmt::format("processes that never reported are assumed to have ended as {} did", gang.name));
    }
    task.state = Task::State::kIdle;
    Report(i, status.ok() && never_came ? ExitStatus{} : failure);
  }
}

// --- events from agents ----------------------------------------------------------------------------------

void GangController::Handle(const AgentEvent& event, TimePoint now) {
  std::visit([&](const auto& one) { On(one, now); }, event);
}

/// The peer cannot prove that it belongs to this job, so its message only causes a warning.
void GangController::On(const AgentKeyless& event, TimePoint /*now*/) {
  Task* const task = Find(event.index);
  if (task == nullptr || std::exchange(task->is_keyless, true)) return;
  const Gang& gang = gangs_[GangOf(event.index)];
  Say(Severity::kWarning,
      fmt::format(
          "{} {}: {} cannot read the job's token in '{}/environment'; the hosts must share the directory in which dmlc-submit is started",
          gang.of_workers ? "worker" : "server", event.index - gang.first, event.host, gang.directory));
}

void GangController::On(const AgentOutput& event, TimePoint /*now*/) {
  if (Find(event.index) != nullptr) Tell(ProcessWrote{event.index, event.stream, event.bytes});
}

void GangController::On(const AgentArrived& event, TimePoint now) {
  Task* const task = Find(event.index);
  if (task == nullptr) return Do(EndAgent{event.index});
  Gang& gang = gangs_[GangOf(event.index)];
  task->was_here = true;
  // If the agent's process has already succeeded, the gang was launched again for other processes.
  const bool has_ended = task->state == Task::State::kIdle && task->status.ok();
  task->agent = stopping_ || has_ended ? Task::Agent::kToldToEnd : Task::Agent::kHere;
  if (gang.of_workers && event.index == gang.first) gang.master = event.address;
  if (stopping_ || has_ended) {
    Do(EndAgent{event.index});
  } else {
    Welcome(gang, event, now);
  }
  // Other workers may have arrived before worker 0.
  if (gang.of_workers && event.index == gang.first) LaunchAll(gang, now);
}

void GangController::Welcome(Gang& gang, const AgentArrived& event, TimePoint now) {
  if (gang.queue) Tell(JobWaits{});  // the wait in the queue is over: restarts the limit for missing workers
  Tell(ProcessLocated{event.index, {-1, event.host}});
  LaunchIfWanted(gang, event.index, now);
}

/// Forgets worker 0's address. Called when all agents will connect again.
void GangController::ForgetMaster(Gang& gang) {
  gang.master.clear();
  gang.begin_at.reset();
  gang.goes_without_master = false;
}

/// Launches the wanted processes whose agents have arrived.
void GangController::LaunchAll(Gang& gang, TimePoint now) {
  gang.begin_at.reset();
  for (std::size_t i = gang.first; i < gang.end(); ++i) {
    if (TaskOf(gang, i).agent == Task::Agent::kHere) LaunchIfWanted(gang, i, now);
  }
}

/// Launches the process if it is wanted, but a worker only once the agent of worker 0 has arrived or
/// kMasterPatience has passed.
void GangController::LaunchIfWanted(Gang& gang, std::size_t index, TimePoint now) {
  Task& task = TaskOf(gang, index);
  if (task.state != Task::State::kWanted) return;
  if (gang.of_workers && gang.master.empty() && !gang.goes_without_master) {
    if (!gang.begin_at) gang.begin_at = now + kMasterPatience;
    return;
  }
  task.state = Task::State::kRunning;
  Do(LaunchProcess{index, task.attempt, task.port, gang.master});
}

void GangController::On(const AgentSaid& event, TimePoint now) {
  const auto& [index, message] = event;
  Task* const task = Find(index);
  if (task == nullptr) return;
  if (message.kind == "start") {
    Tell(ProcessLocated{index, ParseStart(message.text)});
  } else if (message.kind == "usage") {
    const auto sample = ParseUsage(message.text);
    if (sample && task->state == Task::State::kRunning) Tell(ProcessSampled{index, *sample});
  } else if (message.kind == "exit" || message.kind == "stopped") {
    Gang& gang = gangs_[GangOf(index)];
    const ExitStatus status = ParseEnd(message.text);
    if (message.kind == "stopped") task->agent = Task::Agent::kToldToEnd;  // it ends without being told
    if (message.kind == "exit" || stopping_ || gang.job.empty() || !gang.queue->returns) {
      return End(index, status, now);
    }
    // The queue has ended the process. The job's new state explains that better than the signal.
    Lose(gang, *task, status);
  } else if (message.kind == "fail") {
    task->agent = Task::Agent::kToldToEnd;  // it ends without being told
    End(index, {1, 0, false, fmt::format("could not be started: {}", message.text)}, now);
  }
}

void GangController::On(const AgentLeft& event, TimePoint now) {
  Task* const task = Find(event.index);
  if (task == nullptr) return;
  Gang& gang = gangs_[GangOf(event.index)];
  task->agent = Task::Agent::kNone;
  if (gang.cancel_at && !AnyAgentIsHere(gang)) CancelJob(gang);
  if (task->state == Task::State::kIdle) return;
  if (task->state == Task::State::kWanted && !task->was_here) {  // the agent belonged to the previous launch
    const bool another_comes = gang.launched && !(stopping_ && gang.requeued);
    if (another_comes) return;
    if (stopping_) return End(event.index, kStopped, now);
    if (gang.gone) gang.relaunch_at = now;
    return;
  }
  if (gang.Submits() && gang.launched && !stopping_) {
    if (task->state != Task::State::kLost) Lose(gang, *task, kLostWithoutAWord);
    return;
  }
  if (gang.ended && !stopping_) return End(event.index, *gang.ended, now);
  End(event.index, stopping_ ? kStopped : kLostWithoutAWord, now);
}

/// Queries the queue for the reason why the process was lost. `status` is reported if the queue does not
/// report the end of the job.
void GangController::Lose(Gang& gang, Task& task, const ExitStatus& status) {
  task.state = Task::State::kLost;
  task.status = status;
  gang.asks_about_loss = 0;
  Ask(gang);
}

bool GangController::AnyAgentIsHere(const Gang& gang) {
  return std::any_of(gang.tasks.begin(), gang.tasks.end(),
                     [](const Task& task) { return task.agent != Task::Agent::kNone; });
}

/// Handles the end of a process. If it is the last of its gang and has succeeded, its exit is held back until
/// the launcher, or the job in the queue, has ended or kLauncherPatience has passed.
void GangController::End(std::size_t index, const ExitStatus& status, TimePoint now) {
  Gang& gang = gangs_[GangOf(index)];
  Task& task = TaskOf(gang, index);
  if (task.state == Task::State::kIdle) return;
  task.state = Task::State::kIdle;
  task.status = status;
  const bool launcher_runs = gang.launcher_runs || !gang.job.empty();
  if (!status.ok() || stopping_ || !launcher_runs || !AllAre(gang, Task::State::kIdle))
    return Report(index, status);
  gang.held = index;
  if (!gang.job.empty()) gang.ask_at = now + kAskAtTheEnd;
  gang.patience = now + kLauncherPatience;
}

void GangController::Report(std::size_t index, const ExitStatus& status) {
  Tell(ProcessExited{index, status});
}

// --- the queue -------------------------------------------------------------------------------------------

void GangController::Run(Command command, std::vector<std::string> words) {
  commands_.emplace(++last_command_, std::move(command));
  Do(RunCommand{last_command_, std::move(words)});
}

void GangController::CommandEnded(CommandId id, const std::string& printed, const ExitStatus& status,
                                  TimePoint now) {
  const auto found = commands_.find(id);
  if (found == commands_.end()) return;
  const Command command = std::move(found->second);
  commands_.erase(found);
  Gang& gang = gangs_[command.gang];
  if (command.kind == Command::Kind::kAsk) {
    gang.asking = false;
    if (gang.job != command.job) return AskLater(gang, now);
    const auto report = gang.queue->report(gang.job, printed, status.ShellCode());
    if (report) {
      gang.failed_asks = 0;
      return OnReport(gang, *report, now);
    }
    if (++gang.failed_asks == kFailedAsks) {
      const std::string said = LastLine(printed);
      Say(Severity::kWarning, fmt::format("{} does not report the state of job {}{}", gang.queue->name,
                                          gang.job, said.empty() ? "" : fmt::format(": {}", said)));
    }
    if (gang.failed_asks >= kFailedAsks) EndLostProcesses(gang, now);
    if (!stopping_) AskLater(gang, now);
  } else if (command.kind == Command::Kind::kClear) {
    gang.asking = false;
    if (gang.job == command.job) EndGang(gang, LostStatus(command.story), now);
  } else {
    if (command.kind == Command::Kind::kCancel && !status.ok()) {
      // Some queues report an error if the job to cancel is already over, as it may be once its processes
      // have ended.
      const std::string said = LastLine(printed);
      if (gang.queue->returns) {
        return Run({Command::Kind::kAskWhyNotCancelled, gang.id, command.job, said},
                   gang.queue->ask(command.job));
      }
      // Unless queue->returns, the launcher runs as long as the job: once it has ended, the job is over.
      if (gang.launcher_runs) WarnNotCancelled(gang, command.job, said);
    } else if (command.kind == Command::Kind::kAskWhyNotCancelled) {
      const auto report = gang.queue->report(command.job, printed, status.ShellCode());
      if (!report || report->state != JobState::kOver) WarnNotCancelled(gang, command.job, command.story);
    }
    if (gang.job == command.job && !gang.launcher_runs) EndGang(gang, kStopped, now);
  }
}

void GangController::WarnNotCancelled(const Gang& gang, const std::string& job, const std::string& said) {
  Say(Severity::kWarning,
      fmt::format("job {} of {} could not be cancelled: {}", job, gang.queue->name, said));
}

void GangController::AskLater(Gang& gang, TimePoint now) {
  const bool settled = !gang.held && AllAre(gang, Task::State::kRunning);
  gang.ask_at = now + (settled ? std::chrono::milliseconds(kAskLater) : kAskSoon);
}

void GangController::Ask(Gang& gang) {
  if (gang.job.empty() || !gang.queue->returns || std::exchange(gang.asking, true)) return;
  Run({Command::Kind::kAsk, gang.id, gang.job}, gang.queue->ask(gang.job));
}

void GangController::OnReport(Gang& gang, const JobReport& report, TimePoint now) {
  const bool pending = report.state == JobState::kPending;
  if (report.words != std::exchange(gang.last_report, report.words)) {
    Say(pending ? Severity::kInfo : Severity::kDebug,
        fmt::format("job {} of {}: {}", gang.job, gang.queue->name, report.words));
  }
  if (report.state == JobState::kOver) return OnOver(gang, report, now);
  const auto is_lost = [](const Task& task) { return task.state == Task::State::kLost; };
  const bool lost = std::any_of(gang.tasks.begin(), gang.tasks.end(), is_lost);
  if (pending) {
    Tell(JobWaits{});
    if (lost && !stopping_) {
      gang.requeued = true;
      ForgetMaster(gang);
      Tell(JobRequeued{fmt::format("job {} was put back into the queue of {}", gang.job, gang.queue->name)});
    }
  } else if (lost && ++gang.asks_about_loss >= kAsksAboutLoss) {
    EndLostProcesses(gang, now);
  }
  if (!stopping_) AskLater(gang, now);
}

/// Ends the processes for whose loss the queue gives no reason.
void GangController::EndLostProcesses(Gang& gang, TimePoint now) {
  for (std::size_t i = gang.first; i < gang.end(); ++i) {
    const Task& task = TaskOf(gang, i);
    if (task.state == Task::State::kLost) End(i, ExitStatus(task.status), now);
  }
}

void GangController::OnOver(Gang& gang, const JobReport& report, TimePoint now) {
  const bool all_ended = gang.held && AllAre(gang, Task::State::kIdle);
  const std::string story =
      fmt::format("ended with job {} of {}: {}", gang.job, gang.queue->name, report.words);
  if (report.stays) {
    gang.asking = true;  // prevents further queries
    return Run({Command::Kind::kClear, gang.id, gang.job, story}, gang.queue->cancel(gang.job));
  }
  EndGang(gang, all_ended ? ExitStatus{} : LostStatus(story), now);
}

void GangController::CancelJob(Gang& gang) {
  gang.cancel_at.reset();
  if (!gang.job.empty()) Run({Command::Kind::kCancel, gang.id, gang.job}, gang.queue->cancel(gang.job));
}

// --- the end ---------------------------------------------------------------------------------------------

/// Makes the agents end their processes; the launcher ends with them. A queued job is canceled only when its
/// agents have left or have had time to: the queue would kill the processes immediately, and their last
/// output and files would be lost.
void GangController::Stop(TimePoint now) {
  stopping_ = true;
  for (Gang& gang : gangs_) {
    if (const auto held = std::exchange(gang.held, std::nullopt)) Report(*held, TaskOf(gang, *held).status);
    for (std::size_t i = gang.first; i < gang.end(); ++i) {
      Task& task = TaskOf(gang, i);
      if (task.agent == Task::Agent::kHere) {
        task.agent = Task::Agent::kToldToEnd;
        Do(EndAgent{i});
      } else if (task.agent == Task::Agent::kNone && (gang.requeued || !gang.launched) &&
                 task.state != Task::State::kIdle) {
        End(i, kStopped, now);
      }
    }
    gang.gone = false;
    gang.begin_at.reset();
    gang.relaunch_at.reset();
    gang.ask_at.reset();
    if (gang.requeued) continue;  // the job stays in the queue, and its agents will arrive again
    gang.stopped = true;
    const bool any_here = AnyAgentIsHere(gang);
    const TimePoint end = now + (any_here ? kStopGrace + kLastWordsPatience : std::chrono::milliseconds{0});
    if (!any_here) {
      CancelJob(gang);
    } else if (!gang.job.empty()) {
      gang.cancel_at = end;
    }
    if (gang.Submits()) {
      gang.patience = now + kLauncherPatience;
    } else {
      gang.patience = gang.cancel_at ? end + kLastWordsPatience : end;
    }
  }
}

void GangController::Kill() {
  for (Gang& gang : gangs_) {
    if (gang.cancel_at) CancelJob(gang);
    // A launcher that submits a job must not be killed: the job might stay in the queue, its number unknown.
    if (gang.launcher_runs && !gang.Submits()) Do(KillLauncher{gang.id});
  }
}

void GangController::OnImpatience(Gang& gang) {
  if (const auto held = std::exchange(gang.held, std::nullopt)) {
    Say(Severity::kWarning,
        fmt::format("{} does not end although all its processes have ended; stopping it", gang.name));
    Report(*held, TaskOf(gang, *held).status);
  } else if (!gang.stopped) {
    return;
  }
  if (gang.launcher_runs) Do(StopLauncher{gang.id});
}

void GangController::BeginWithoutMaster(Gang& gang, TimePoint now) {
  gang.goes_without_master = true;
  Say(Severity::kWarning,
      fmt::format("worker 0 did not connect within {} s; the others start without its address (MASTER_ADDR)",
                  kMasterPatience.count()));
  LaunchAll(gang, now);
}

void GangController::Tick(TimePoint now) {
  for (Gang& gang : gangs_) {
    if (gang.cancel_at && *gang.cancel_at <= now) CancelJob(gang);
    if (gang.patience && *gang.patience <= now) {
      gang.patience.reset();
      OnImpatience(gang);
    }
    if (gang.relaunch_at && *gang.relaunch_at <= now) {
      gang.relaunch_at.reset();
      Relaunch(gang, now);
    }
    if (gang.begin_at && *gang.begin_at <= now) BeginWithoutMaster(gang, now);
    if (gang.ask_at && *gang.ask_at <= now) {
      gang.ask_at.reset();
      Ask(gang);
    }
  }
}

std::optional<TimePoint> GangController::NextDeadline() const {
  std::optional<TimePoint> next;
  for (const Gang& gang : gangs_) {
    for (const auto& deadline :
         {gang.patience, gang.relaunch_at, gang.begin_at, gang.ask_at, gang.cancel_at}) {
      if (deadline && (!next || *deadline < *next)) next = deadline;
    }
  }
  return next;
}

}  // namespace warren::submit
