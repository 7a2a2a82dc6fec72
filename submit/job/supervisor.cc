#include "submit/job/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "submit/process/watchdog.h"
#include "tracker/unranked_workers.h"
#include "wire/whole_number.h"

namespace warren::submit {
namespace {

/// The exit code that shells report for a process killed by this signal.
constexpr int FromSignal(int signal) {
  return 128 + signal;
}

/// "; the other 3 processes were stopped", or an empty string if `count` is 0.
std::string OthersStopped(std::size_t count) {
  if (count == 0) return {};
  return count == 1 ? "; the other process was stopped"
                    : fmt::format("; the other {} processes were stopped", count);
}

}  // namespace

Supervisor::Supervisor(RestartPolicy policy, const std::vector<PlannedProcess>& plan, const JobView& view)
    : policy_(std::move(policy)),
      view_(view),
      processes_(plan.size()),
      seating_(policy_.hosts_from, static_cast<std::size_t>(policy_.min_workers.value_or(0))) {
  for (std::size_t i = 0; i < plan.size(); ++i) {
    processes_[i].role = plan[i].role;
    processes_[i].task_id = plan[i].task_id;
    processes_[i].name = ProcessName(plan[i].role, plan[i].task_id);
    processes_[i].left_out = has_seats();
  }
}

std::optional<Action> Supervisor::NextAction() {
  if (actions_.empty()) return std::nullopt;
  Action action = std::move(actions_.front());
  if (std::holds_alternative<StopAll>(action)) stop_is_due_ = false;
  actions_.pop_front();
  return action;
}

std::optional<TimePoint> Supervisor::NextDeadline() const {
  if (phase_ == Phase::kFinished) return std::nullopt;
  std::optional<TimePoint> next = patience_;
  const auto consider = [&](TimePoint time) { next = std::min(next.value_or(time), time); };
  if (arbiter_.deadline()) consider(*arbiter_.deadline());
  if (seating_.next_change()) consider(*seating_.next_change());
  for (const Settling& one : settling_) consider(one.until);
  return next;
}

void Supervisor::Do(Action action) {
  if (phase_ != Phase::kFinished) actions_.push_back(std::move(action));
}

void Supervisor::DoAll(std::vector<Action> actions) {
  for (Action& action : actions) Do(std::move(action));
}

void Supervisor::DoSoon(bool& what) {
  what = true;
  Do(ResumeSoon{});
}

void Supervisor::Resume(TimePoint now) {
  now_ = now;
  // The end is checked first: the steps below may stop all processes and thereby request another check, which
  // must follow StopAll.
  if (std::exchange(check_end_soon_, false)) FinishWhenAllAreGone();
  if (std::exchange(reseat_soon_, false)) Reseat();
  if (std::exchange(start_soon_, false)) StartNext();
  if (std::exchange(check_links_soon_, false)) CheckThatAllCanBeLinkedAgain();
  if (std::exchange(handle_case_soon_, false) && arbiter_.pending()) HandleCase();
}

void Supervisor::Tick(TimePoint now) {
  now_ = now;
  if (patience_ && *patience_ <= now) GiveUpWaiting();
  if (seating_.next_change() && *seating_.next_change() <= now) {
    Reseat();
    TellIfItWaits();
  }
  for (const Settling& one : std::exchange(settling_, {})) {
    if (one.until > now) {
      settling_.push_back(one);
    } else {
      CheckThatItWasLinked(one.index);
    }
  }
  if (arbiter_.deadline() && *arbiter_.deadline() <= now) {
    const auto first = arbiter_.first();
    if (arbiter_.IsRipe(first && processes_[*first].running)) HandleCase();
  }
}

// --- starting ----------------------------------------------------------------------------------------------

void Supervisor::Begin(TimePoint now) {
  now_ = begin_ = now;
  if (is_running()) Do(PrepareCluster{});
}

void Supervisor::Prepared(TimePoint now) {
  now_ = now;
  prepared_ = true;
  if (!has_seats()) return StartNext();
  Reseat();
  TellIfItWaits();
}

/// Starts one process at a time, so that the tracker, signals and output are served between starts.
void Supervisor::StartNext() {
  if (!is_running()) return;
  if (has_seats()) {
    if (!seating_.has_next()) return;
    StartOne(seating_.TakeNext());
  } else {
    if (num_started_ == processes_.size()) return;
    StartOne(num_started_++);
  }
  DoSoon(start_soon_);
}

void Supervisor::StartOne(std::size_t index) {
  Do(StartProcess{index, ++processes_[index].attempt, processes_[index].seat});
}

void Supervisor::Started(std::size_t index, const submit::Started& where, TimePoint now) {
  now_ = now;
  ProcessState& process = processes_[index];
  process.where = where;
  process.running = true;
  ++num_running_;
  Do(LogLine{Severity::kDebug,
             fmt::format("started {}, attempt {}", process.Describe(), process.attempt + 1)});
}

void Supervisor::StartFailed(std::size_t index, int exit_code, const std::string& why, TimePoint now) {
  now_ = now;
  Fail(exit_code, fmt::format("{}: {}{}", processes_[index].name, why, OthersStopped(num_running_)));
}

void Supervisor::Located(std::size_t index, const submit::Started& where, TimePoint now) {
  now_ = now;
  processes_[index].where = where;
  Do(LogLine{Severity::kDebug, fmt::format("{} runs", processes_[index].Describe())});
}

// --- process events ----------------------------------------------------------------------------------------

void Supervisor::Exited(std::size_t index, const ExitStatus& status, TimePoint now) {
  now_ = now;
  ProcessState& process = processes_[index];
  process.running = false;
  --num_running_;
  const std::string what = fmt::format("{} {}", process.Describe(), status.Describe());
  Do(LogLine{Severity::kDebug, what});
  if (is_running()) {
    // A process that was asked to leave may have finished its work instead. Once the job's work is done
    // (IsOver), it counts like any other process, unless SIGTERM ended it.
    if (process.leaving && (!IsOver() || status.ShellCode() == FromSignal(SIGTERM))) {
      OnLossOfSeat(index, status);
    } else if (status.ok()) {
      OnSuccess(index);
    } else if (status.was_taken_away() && HasDoneItsPart(process)) {
      Do(LogLine{
          Severity::kWarning,
          what +
              " after all workers had left the job; the job is complete, but the program may not have finished its work after Finalize"});
      OnSuccess(index);
    } else if (IsLoss(status) && !view_.work_is_done()) {
      if (has_seats()) {
        OnLossOfSeat(index, status);
      } else {
        OnLoss(index, status);
      }
    } else if (IsLoss(status) && !process.rank) {
      process.left_out = true;
      Do(LogLine{Severity::kWarning, what + " after the job's work was done, in which it took no part"});
    } else {
      OnFailure(index, status);
    }
  }
  FinishWhenAllAreGone();
}

void Supervisor::OnSuccess(std::size_t index) {
  processes_[index].succeeded = true;
  ++num_succeeded_;
  if (!view_.has_tracker()) return;
  if (!view_.all_assigned() && !policy_.min_workers) {
    left_unjoined_.push_back(index);
    CheckThatJobCanStart();
  } else if (!policy_.min_workers || any_joined_) {
    settling_.push_back({now_ + kSettleTime, index});
  }
}

/// Returns whether a worker of an elastic job was lost: its host is gone, a signal ended it, or its exit code
/// is the one that stands for SIGTERM or SIGKILL. Other exit codes are failures: an error that a program
/// reports would recur in a new process.
bool Supervisor::IsLoss(const ExitStatus& status) const {
  return policy_.min_workers && (status.host_lost || status.signal != 0 ||
                                 status.code == FromSignal(SIGTERM) || status.code == FromSignal(SIGKILL));
}

/// Restarts the worker if its place may still be used. The other workers continue as long as enough are left.
void Supervisor::OnLoss(std::size_t index, const ExitStatus& status) {
  ProcessState& process = processes_[index];
  const std::string what = fmt::format("{} {}", process.Describe(), status.Describe());
  Do(ReportFailure{std::to_string(process.task_id), status.Describe()});
  const std::string& place = policy_.places_are_hosts ? process.where.host : process.name;
  losses_.Add(place, false, now_);
  const bool again = !status.place_lost && (policy_.cluster_replaces || !losses_.IsLeftOut(place, now_));
  process.left_out = !again;
  const std::size_t left = NumLeft(processes_);
  if (left < static_cast<std::size_t>(*policy_.min_workers)) return FailForWantOfWorkers(index, status, left);
  Do(LogLine{Severity::kWarning, fmt::format("{}; {}{}", what, OthersGoOn(),
                                             again               ? ", and it is started again"
                                             : status.place_lost ? " without it: its place is gone"
                                                                 : " without it: " + LossesStory(place))});
  process.rank.reset();
  if (again) {
    ++process.restarts;
    StartOne(index);
  }
  // If the cluster replaces workers itself, it may not be able to start all of them, so their number is
  // unknown.
  if (!policy_.cluster_replaces) Do(ExpectWorkers{static_cast<int>(left)});
}

void Supervisor::FailForWantOfWorkers(std::size_t index, const ExitStatus& status, std::size_t num_left) {
  culprit_ = index;
  FailOrBeginAgain(status.ShellCode(),
                   fmt::format("{} {}; {} of at least {} workers are left", processes_[index].Describe(),
                               status.Describe(), num_left, *policy_.min_workers));
}

std::string Supervisor::OthersGoOn() const {
  if (num_running_ == 0) return "no other one runs";
  return num_running_ == 1 ? "the other one goes on" : fmt::format("the other {} go on", num_running_);
}

// --- seats -------------------------------------------------------------------------------------------------

void Supervisor::HostsChanged(const std::vector<HostRoom>& hosts, TimePoint now) {
  now_ = now;
  DoAll(seating_.SetHosts(hosts, prepared_ && is_running()));
  Reseat();
  if (prepared_) TellIfItWaits();
}

/// Starts processes in free seats, and asks processes whose seats are gone to leave.
void Supervisor::Reseat() {
  if (!has_seats() || !prepared_ || !is_running() || IsOver()) return seating_.Rest();
  DoAll(seating_.Reseat(processes_, losses_, now_));
  if (seating_.has_next()) DoSoon(start_soon_);
}

void Supervisor::TellIfItWaits() {
  DoAll(seating_.TellIfItWaits(is_running() && !IsOver()));
}

/// Handles the end of a process that was lost or that left as requested: takes its seat away.
void Supervisor::OnLossOfSeat(std::size_t index, const ExitStatus& status) {
  ProcessState& process = processes_[index];
  const std::string what = fmt::format("{} {}", process.Describe(), status.Describe());
  const bool was_asked = std::exchange(process.leaving, false);
  process.last_host = process.seat->host;
  process.rank.reset();
  Unseat(process);
  Do(ReportFailure{std::to_string(process.task_id), status.Describe()});
  const bool host_ends = status.host_lost || status.ShellCode() == FromSignal(SIGTERM);
  const bool left_out = !was_asked && losses_.Add(process.last_host, host_ends, now_);
  Reseat();
  if (!was_asked && seating_.has_too_few() && !(policy_.awaits_hosts && seating_.num_possible() > 0)) {
    return FailForWantOfWorkers(index, status, seating_.num_possible());
  }
  std::string then = IsOver() ? " without it" : " without it until a host has room";
  if (num_running_ == 0) then.clear();
  if (process.seat && process.seat->host == process.last_host) then = ", and it is started again";
  if (process.seat && process.seat->host != process.last_host) {
    then = fmt::format(", and it is started again on {}", process.seat->host);
  }
  Do(LogLine{
      was_asked ? Severity::kInfo : Severity::kWarning,
      fmt::format("{}{}; {}{}", what, was_asked ? ", as it was asked to leave" : "", OthersGoOn(), then)});
  if (left_out) {
    Do(LogLine{Severity::kWarning,
               fmt::format("{}, and gets no more until {} minutes have passed without a loss",
                           LossesStory(process.last_host), kLossMemory.count())});
  }
  if (process.seat) ++process.restarts;
  TellIfItWaits();
}

/// Fails the job if a worker has exited with code 0 without joining while others are waiting at the tracker:
/// their wait would never end.
void Supervisor::CheckThatJobCanStart() {
  if (!is_running() || left_unjoined_.empty() || num_running_ == 0 || num_joined_ == 0) return;
  if (arbiter_.pending()) return;  // another worker's failure may be the reason instead
  if (!view_.all_assigned()) {
    GiveUpOn(processes_[left_unjoined_.front()], "without joining the job at the tracker");
  }
}

/// Checks a worker that exited with code 0 while others are running. Fails an elastic job if its work is not
/// done, and any other job if the worker was never linked. If all workers have been linked and this one did
/// not announce its shutdown, records it for CheckThatAllCanBeLinkedAgain.
void Supervisor::CheckThatItWasLinked(std::size_t index) {
  if (!is_running() || num_running_ == 0) return;
  const ProcessState& process = processes_[index];
  if (!process.succeeded) return;  // counted as failed in the meantime
  if (policy_.min_workers) {
    if (!view_.work_is_done()) GiveUpOn(process, "before the job's work was done");
    return;
  }
  if (!linked_ && !TaskOf(process).has_linked) return GiveUpOn(process, "before it was linked");
  if (linked_ && !HasLeft(process)) {
    left_unfinished_.push_back(index);
    CheckThatAllCanBeLinkedAgain();
  }
}

/// Fails the job if a worker has ended without Finalize and the others must be linked again: the ended worker
/// will not rejoin.
void Supervisor::CheckThatAllCanBeLinkedAgain() {
  if (!is_running() || left_unfinished_.empty() || num_running_ == 0) return;
  if (arbiter_.pending()) return;
  if (view_.linked() || view_.finished()) return;
  GiveUpOn(processes_[left_unfinished_.front()], "without Finalize");
}

void Supervisor::GiveUpOn(const ProcessState& process, const char* when) {
  Fail(kTrouble,
       fmt::format("{} exited with code 0 {} while others wait for it; the job cannot {}{}",
                   process.Describe(), when, linked_ ? "continue" : "start", OthersStopped(num_running_)));
}

JobView::Task Supervisor::TaskOf(const ProcessState& process) const {
  return view_.TaskOf(std::to_string(process.task_id));
}

/// Whether the process is a worker and all workers have left the job at the tracker.
bool Supervisor::HasDoneItsPart(const ProcessState& process) const {
  return view_.has_tracker() && process.role == tracker::Role::kWorker && view_.finished();
}

/// Whether the process is a worker that, according to the tracker, has left the job and so cannot rejoin.
bool Supervisor::HasLeft(const ProcessState& process) const {
  return view_.has_tracker() && process.role == tracker::Role::kWorker &&
         (view_.finished() || TaskOf(process).has_shut_down);
}

void Supervisor::OnFailure(std::size_t index, const ExitStatus& status) {
  const ProcessState& process = processes_[index];
  Failure failure{index, status, HasLeft(process)};
  if (!is_collective()) return Handle(failure);
  failure.gone_after = TaskOf(process).gone_after;
  arbiter_.Add(std::move(failure), now_);
  Do(ReportFailure{std::to_string(process.task_id), status.Describe()});
  if (num_running_ == 0) DoSoon(handle_case_soon_);
}

// --- failures ----------------------------------------------------------------------------------------------

/// Handles the collected failures, the original one first. If the worker whose error was reported to the
/// tracker first is still running, the reported error stands for all failures.
void Supervisor::HandleCase() {
  FailureCase gathered = arbiter_.Take();
  if (!is_running()) return;
  if (gathered.first && processes_[*gathered.first].running) {
    culprit_ = gathered.first;
    return FailOrBeginAgain(kTrouble, gathered.story);
  }
  if (gathered.first && processes_[*gathered.first].succeeded) TakeBackSuccess(*gathered.first, gathered);
  gathered.PutInOrder();
  for (const Failure& failure : gathered.failures) {
    if (is_running()) Handle(failure);
  }
}

/// Counts a worker that exited with code 0 in the middle of the job as failed.
void Supervisor::TakeBackSuccess(std::size_t index, FailureCase& gathered) {
  processes_[index].succeeded = false;
  --num_succeeded_;
  std::erase(left_unjoined_, index);
  std::erase(left_unfinished_, index);
  Failure failure;
  failure.index = index;
  failure.gone_after = TaskOf(processes_[index]).gone_after;
  failure.story = gathered.story;
  gathered.failures.push_back(std::move(failure));
}

void Supervisor::Handle(const Failure& failure) {
  ProcessState& process = processes_[failure.index];
  // Workers of XGBoost 2.1 or later all end and restart together. This is possible unless one of them has
  // already succeeded, even if this worker has left the job.
  const bool together = is_collective() && !view_.finished();
  const bool left = together ? num_succeeded_ > 0 : failure.left;
  const bool scheduler = process.role == tracker::Role::kScheduler;
  const std::string what =
      fmt::format("{} {}{}{}", process.Describe(), failure.status.Describe(),
                  failure.story.empty() ? "" : fmt::format(" ({})", failure.story), Attempt(process));
  if (process.restarts < policy_.num_restarts && !left && !scheduler) {
    Do(ShowErrorOf{failure.index});
    Do(LogLine{Severity::kWarning, what + "; starting it again"});
    ++process.restarts;
    return StartOne(failure.index);
  }
  std::string why_final;
  if (process.restarts < policy_.num_restarts) {
    why_final = left && together ? ", not started again because others have already ended"
                : left           ? ", not started again because it had already left the job"
                                 : ", not started again because the others cannot switch to a new scheduler";
  }
  culprit_ = failure.index;
  FailOrBeginAgain(failure.status.ok() ? kTrouble : failure.status.ShellCode(), what + why_final);
}

/// " on attempt 1 of 3"; empty in an elastic job, in which the number of attempts is not fixed.
std::string Supervisor::Attempt(const ProcessState& process) const {
  if (policy_.min_workers) return {};
  return fmt::format(" on attempt {} of {}", process.restarts + 1, policy_.num_restarts + 1);
}

void Supervisor::FailOrBeginAgain(int exit_code, const std::string& story) {
  if (MayBeginAgain()) return BeginAgain(story);
  // With XGBoost 2.1 or later, the tracker has already told the other workers to stop, so those that have
  // ended count as stopped, too.
  const std::size_t others = processes_.size() - num_succeeded_;
  Fail(exit_code,
       story + AfterRestarts() +
           OthersStopped(is_collective() ? others - std::min<std::size_t>(others, 1) : num_running_));
}

// --- restarts of the job -----------------------------------------------------------------------------------

bool Supervisor::MayBeginAgain() const {
  return is_running() && job_restarts_ < policy_.max_restarts;
}

/// ", after the job had been started again 3 times", or an empty string if it was not.
std::string Supervisor::AfterRestarts() const {
  if (job_restarts_ == 0) return {};
  return fmt::format(", after the job had been started again {}",
                     job_restarts_ == 1 ? "once" : fmt::format("{} times", job_restarts_));
}

void Supervisor::BeginAgain(const std::string& why) {
  ++job_restarts_;
  StopToBeginAgain(why, fmt::format(" (restart {} of {})", job_restarts_, policy_.max_restarts));
}

/// Stops all processes; once they are gone, the job starts over.
void Supervisor::StopToBeginAgain(const std::string& why, const std::string& count) {
  phase_ = Phase::kRestarting;
  restart_story_ = why;
  if (culprit_ && !processes_[*culprit_].running) Do(ShowErrorOf{*culprit_});
  Do(LogLine{Severity::kWarning,
             fmt::format("{}; starting all {} processes again{}", why, processes_.size(), count)});
  StopEverything();
}

void Supervisor::Requeued(const std::string& story, TimePoint now) {
  now_ = now;
  if (is_running()) StopToBeginAgain(story, "");
}

void Supervisor::Replanned(TimePoint now) {
  now_ = now;
  if (phase_ != Phase::kReplanning) return;
  int attempt = 0;
  for (const ProcessState& process : processes_) attempt = std::max(attempt, process.attempt);
  for (ProcessState& process : processes_) {
    process.attempt = attempt;  // all processes continue from the highest attempt
    process.restarts = 0;
    process.succeeded = process.leaving = false;
    process.left_out = has_seats();
    process.seat.reset();
    process.rank.reset();
  }
  if (!has_seats()) losses_.Clear();
  prepared_ = false;
  seating_.Clear();
  num_started_ = num_succeeded_ = 0;
  num_joined_ = 0;
  any_joined_ = false;
  linked_ = false;
  settling_.clear();
  left_unjoined_.clear();
  left_unfinished_.clear();
  arbiter_.Clear();
  start_soon_ = reseat_soon_ = check_links_soon_ = handle_case_soon_ = check_end_soon_ = false;
  waited_for_cluster_ = false;
  culprit_.reset();
  phase_ = Phase::kRunning;
  Begin(now);
}

void Supervisor::ReplanFailed(const std::string& why, TimePoint now) {
  now_ = now;
  Fail(kTrouble, fmt::format("the job cannot be started again: {}", why));
}

// --- tracker events ----------------------------------------------------------------------------------------

/// The index of the worker with this task id, or nullopt if the id is not from this plan. In a job with a
/// tracker, all processes are workers.
std::optional<std::size_t> Supervisor::WorkerOfTask(const std::string& task_id) const {
  const auto index = wire::WholeNumber<std::size_t>(task_id);
  return index && *index < processes_.size() ? index : std::nullopt;
}

void Supervisor::Joined(int joined, int expected, TimePoint now) {
  now_ = now;
  num_joined_ = joined;
  any_joined_ = any_joined_ || joined > 0;
  if (!linked_ && is_running()) Do(ShowProgress{joined, expected});
  CheckThatJobCanStart();
}

void Supervisor::Assigned(const std::string& task_id, int rank, TimePoint now) {
  now_ = now;
  if (const auto index = WorkerOfTask(task_id)) processes_[*index].rank = rank;
  if (seating_.keeps_one()) DoSoon(reseat_soon_);
  DoSoon(check_links_soon_);  // not now, since the tracker is still assigning ranks
}

void Supervisor::Linked(TimePoint now) {
  now_ = now;
  Do(HideProgress{});
  if (!std::exchange(linked_, true)) Do(TellAllAreUp{now - begin_});
}

void Supervisor::Broken(const std::string& task_id, const std::string& story, TimePoint now) {
  now_ = now;
  if (is_running()) arbiter_.Accuse(WorkerOfTask(task_id), story, now);
}

void Supervisor::TrackerFinished(const std::string& failure, TimePoint now) {
  now_ = now;
  if (!failure.empty()) OnTrackerFailed(failure);
  // The tracker stops, so that a process that tries to start a second job is rejected instead of waiting. In
  // an elastic job, the tracker keeps running, to tell workers that arrive too late that the work is done.
  if (!policy_.min_workers || !failure.empty()) Do(StopTracker{});
}

void Supervisor::TrackerFailed(const std::string& story, TimePoint now) {
  now_ = now;
  if (is_running()) OnTrackerFailed(story);
}

void Supervisor::OnTrackerFailed(const std::string& story) {
  if (MayBeginAgain()) {
    BeginAgain(story);
  } else {
    Fail(kTrouble, story + AfterRestarts());
  }
}

// --- the end -----------------------------------------------------------------------------------------------

void Supervisor::Trouble(const std::string& story, TimePoint now) {
  now_ = now;
  Fail(kTrouble, story + OthersStopped(num_running_));
}

void Supervisor::ReaderGone(TimePoint now) {
  now_ = now;
  Fail(kReaderGone, "standard output was closed by its reader" + OthersStopped(num_running_));
}

void Supervisor::Signalled(int signal, TimePoint now) {
  now_ = now;
  if (phase_ == Phase::kStopping) {
    if (signal == SIGINT) Do(KillAll{});
    return;
  }
  result_.interrupted = true;
  const std::string processes =
      num_running_ == 1 ? "its process was" : fmt::format("its {} processes were", num_running_);
  Fail(128 + signal, fmt::format("the job was interrupted by {}; {} stopped", SignalName(signal), processes));
}

/// Stops everything, because the job cannot continue. Only the first reason counts.
void Supervisor::Fail(int exit_code, const std::string& story) {
  if (phase_ == Phase::kStopping || phase_ == Phase::kFinished) return;
  phase_ = Phase::kStopping;
  result_.exit_code = exit_code;
  story_ = story;
  StopEverything();
}

/// Stops the tracker and all processes; FinishWhenAllAreGone follows.
void Supervisor::StopEverything() {
  Do(HideProgress{});
  // The tracker stops as well. Otherwise, it would report the stopped workers as lost, and these messages
  // would hide the cause.
  Do(StopAll{});
  stop_is_due_ = true;
  patience_ = now_ + kStopGrace + kKillPatience;
  DoSoon(check_end_soon_);
}

void Supervisor::GiveUpWaiting() {
  // Processes of a job in a queue only count as ended once the command that cancels the job has ended.
  const bool is_busy = view_.cluster_is_busy();
  if ((num_running_ == 0 || is_busy) && !std::exchange(waited_for_cluster_, true)) {
    patience_ = now_ + kClusterPatience;
    return;
  }
  patience_.reset();
  for (const ProcessState& process : processes_) {
    if (!process.running) continue;
    Do(LogLine{Severity::kError,
               fmt::format("{} did not end even after SIGKILL; it is left running", process.Describe())});
  }
  if (phase_ == Phase::kRestarting) {
    return Fail(kTrouble, num_running_ > 0
                              ? "the job cannot be started again while one of its processes does not end"
                              : "the job cannot be started again while a command that stops it does not end");
  }
  if (is_busy) {
    Do(LogLine{Severity::kWarning,
               fmt::format("commands that stop the job have not ended within {} s; check whether parts of it "
                           "are left in the cluster",
                           kClusterPatience.count())});
  }
  Finish();
}

void Supervisor::ClusterIdle(TimePoint now) {
  now_ = now;
  FinishWhenAllAreGone();
}

void Supervisor::FinishWhenAllAreGone() {
  if (stop_is_due_) return;  // StopAll may still make the cluster busy
  if (num_running_ > 0 || (!is_running() && view_.cluster_is_busy())) return;
  const auto num_left_out = static_cast<std::size_t>(std::count_if(
      processes_.begin(), processes_.end(), [](const ProcessState& one) { return one.left_out; }));
  if (phase_ == Phase::kRestarting) {
    phase_ = Phase::kReplanning;
    patience_.reset();
    Do(ShowErrors{culprit_, false});
    Do(Replan{restart_story_, culprit_});
  } else if (phase_ == Phase::kStopping ||
             (num_succeeded_ + num_left_out == processes_.size() && (!has_seats() || num_succeeded_ > 0))) {
    Finish();
  }
}

void Supervisor::Finish() {
  if (phase_ == Phase::kFinished) return;
  Do(HideProgress{});
  Do(StopTracker{});
  if (!story_.empty()) {
    Do(ShowErrors{culprit_, true});
    Do(LogLine{Severity::kError, story_});
  } else if (view_.has_tracker() && !any_joined_ && processes_.size() > 1) {
    Do(TellOfSeparatePrograms{static_cast<int>(processes_.size())});  // all are workers if there is a tracker
  }
  Do(FinishJob{result_, story_, story_.empty() ? std::nullopt : culprit_});
  phase_ = Phase::kFinished;
}

}  // namespace warren::submit
