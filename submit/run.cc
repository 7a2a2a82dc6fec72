#include "submit/run.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "submit/admission.h"
#include "submit/cluster/clusters.h"
#include "submit/cluster/local.h"
#include "submit/job_address.h"
#include "submit/judgement.h"
#include "submit/member.h"
#include "submit/process/children.h"
#include "submit/process/cores.h"
#include "submit/process/environment.h"
#include "tracker/host_address.h"
#include "tracker/server.h"
#include "wire/job_token.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

/// A process that SIGKILL does not end within this sits in the kernel (a dead network file system, say);
/// nobody can wait for that.
constexpr std::chrono::seconds kKillPatience{5};
/// And longer for a launcher to end, and for a queue to take the job out: its commands may be programs of
/// Java.
constexpr std::chrono::seconds kClusterPatience{25};

/// Whose cleanup command it is.
constexpr char kCaller[] = "files";

/// "the other 3 processes were stopped", as it applies.
std::string OthersStopped(std::size_t count) {
  if (count == 0) return {};
  return count == 1 ? "; the other process was stopped"
                    : fmt::format("; the other {} processes were stopped", count);
}

void MakeLogDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    throw std::runtime_error(fmt::format("cannot make the log directory '{}': {}", path, error.message()));
}

class JobRun {
 public:
  JobRun(asio::io_context& io, Console& console, const Options& options, const FoundCommand& command,
         const std::string& farewell)
      : io_(io),
        console_(console),
        options_(options),
        command_(command),
        signals_(io),
        patience_(io),
        children_(io, NumProcesses()),
        scheduler_(children_, EventsOfCluster()),
        host_(HostOfJob(options)),
        cluster_(MakeCluster(io, children_, options, host_.address, EventsOfCluster())),
        judgement_(
            io, [this](std::size_t index) { return members_[index].running; },
            [this](FailureCase gathered) { Judge(std::move(gathered)); }) {
    if (!farewell.empty()) children_.SetCleanupCommand(kCaller, farewell);
    MakePlan();
    MakeMembers();
    ListenToConsole();
    HandleSignals();
  }

  ~JobRun() {
    console_.on_room = nullptr;
    console_.on_reader_gone = nullptr;
    children_.SetCleanupCommand(kCaller, "");  // who called does it
  }
  JobRun(const JobRun&) = delete;
  JobRun& operator=(const JobRun&) = delete;

  JobResult Run() {
    asio::post(io_, [this] { Begin(); });
    io_.run();
    return {exit_code_, interrupted_};
  }

 private:
  // --- set-up ----------------------------------------------------------------------------------------------

  std::size_t NumProcesses() const {
    const auto workers = static_cast<std::size_t>(options_.num_workers);
    const auto servers = static_cast<std::size_t>(options_.num_servers);
    return servers == 0 ? workers : workers + servers + 1;  // the scheduler comes with servers
  }

  /// Begins to listen for the workers; what they are told depends on where.
  void MakePlan() {
    if (host_.port != 0 && !plan_.empty()) host_ = HostOfJob(options_, ++starts_);
    std::uint16_t port = host_.port;
    if (port != 0) {
      spdlog::debug("the processes are to find the job at {} port {}", host_.address, port);
    } else if (options_.num_servers > 0) {
      port = FindSchedulerPort(io_, options_, host_.address);
    } else if (!options_.no_tracker) {
      StartTracker(host_.address);
      port = server_->port();
    }
    if (!host_.why.empty() && port != 0) {
      spdlog::info(
          "the processes reach this machine at {} port {}, the address of {} (--host-ip gives another)",
          host_.address, port, host_.why);
    }
    plan_ = Plan(options_, {AddressOf(options_, host_.address, port, token_.ToHex()), command_,
                            InheritedNames(), cores_});
  }

  /// The user's own number needs no words, nor does a worker that has a machine for itself.
  void SayWhoTakesWhichCores() const {
    if (options_.num_workers < 2 || ThreadsOf(options_, InheritedNames()) != Threads::kShare) return;
    if (options_.cluster == kLocal) {
      const int threads = ThreadsOfWorker(cores_, options_.num_workers);
      spdlog::info(
          "{} of {} core{} for each worker (OMP_NUM_THREADS={}; --worker-cores gives another number)",
          threads, cores_, cores_ == 1 ? "" : "s", threads);
    } else {
      spdlog::info(
          "each worker gets its share of its host's cores (OMP_NUM_THREADS; --worker-cores gives a number)");
    }
  }

  void StartTracker(const std::string& host) {
    tracker::ServerOptions server;
    server.bind_address = options_.host_ip.empty() ? host : tracker::BindAddressFor(host);
    server.port = options_.port;
    server.port_end = options_.port_end;
    server.begin_anywhere = !options_.port_was_chosen;
    server.job = {options_.num_workers, options_.sort_by, true, options_.timeout};
    server.job.admission = AdmissionOf(options_, token_, server.bind_address);
    server_ = std::make_unique<tracker::Server>(io_, server, EventsOfTracker());
    spdlog::debug("tracker listens at {} port {}", host, server_->port());
  }

  void MakeMembers() {
    if (!options_.log_dir.empty()) MakeLogDirectory(options_.log_dir);
    members_.resize(plan_.size());
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      members_[i].process = &plan_[i];
      members_[i].name = ProcessName(plan_[i].role, plan_[i].task_id);
      members_[i].OpenLog();
    }
  }

  void ListenToConsole() {
    console_.on_room = [this] {
      children_.ResumeOutput();
      cluster_->ResumeOutput();
    };
    console_.on_reader_gone = [this] {
      Fail(kReaderGone, "standard output was closed by its reader" + OthersStopped(num_running_));
    };
  }

  void HandleSignals() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction current {};
      sigaction(signal, nullptr, &current);
      // nohup and background jobs of scripts have some ignored, and want it so.
      if (current.sa_handler != SIG_IGN || signal == SIGTERM) signals_.add(signal);
    }
    WaitForSignal();
  }

  void WaitForSignal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      WaitForSignal();
      OnSignal(signal);
    });
  }

  void OnSignal(int signal) {
    if (phase_ == Phase::kStopping) {
      if (signal == SIGINT) KillAll();
      return;
    }
    interrupted_ = true;
    const std::string processes =
        num_running_ == 1 ? "its process was" : fmt::format("its {} processes were", num_running_);
    Fail(128 + signal,
         fmt::format("the job was interrupted by {}; {} stopped", SignalName(signal), processes));
  }

  // --- starting --------------------------------------------------------------------------------------------

  void Begin() {
    if (starts_ == 0 && job_restarts_ == 0) SayWhoTakesWhichCores();
    cluster_->Prepare([this] { StartNext(); });
  }

  /// Starts one process and comes back for the next, so that the tracker, signals and output are served
  /// between.
  void StartNext() {
    if (phase_ != Phase::kRunning || num_started_ == members_.size()) return;
    StartMember(num_started_++);
    asio::post(io_, [this] { StartNext(); });
  }

  void StartMember(std::size_t index) {
    Member& member = members_[index];
    ++member.attempt;
    member.tail.clear();
    if (member.attempt > 0) member.WriteLog(fmt::format("--- attempt {} ---\n", member.attempt + 1));
    try {
      member.started = ClusterOf(member).Start(index, *member.process, member.attempt);
    } catch (const StartError& error) {
      return Fail(error.exit_code,
                  fmt::format("{}: {}{}", member.name, error.what(), OthersStopped(num_running_)));
    }
    member.running = true;
    ++num_running_;
    spdlog::debug("started {}, attempt {}", member.Describe(), member.attempt + 1);
  }

  // --- what processes do -----------------------------------------------------------------------------------

  /// The scheduler of a parameter-server job mostly runs here: all others are told this address before they
  /// start.
  Cluster& ClusterOf(const Member& member) {
    const bool is_here = member.process->role == tracker::Role::kScheduler && !cluster_->runs_scheduler();
    return is_here ? static_cast<Cluster&>(scheduler_) : *cluster_;
  }

  /// Another than those of the processes.
  std::uint64_t LauncherSpeaker(Stream stream) const {
    return members_.size() * 2 + (stream == Stream::kOut ? 1 : 2);
  }

  ClusterEvents EventsOfCluster() {
    ClusterEvents events;
    events.output = [this](std::size_t index, Stream stream, std::string_view bytes) {
      OnOutput(index, stream, bytes);
    };
    events.located = [this](std::size_t index, const Started& where) {
      members_[index].started = where;
      spdlog::debug("{} runs", members_[index].Describe());
    };
    events.exited = [this](std::size_t index, const ExitStatus& status) { OnExit(index, status); };
    events.said = [this](const std::string& launcher, Stream stream, std::string_view piece) {
      console_.WriteLine(stream, {LauncherSpeaker(stream), launcher, 0}, piece);
    };
    events.waits = [this] {
      if (server_) server_->WaitAnew();
    };
    events.idle = [this] { FinishWhenAllAreGone(); };
    events.requeued = [this](const std::string& story) {
      if (phase_ == Phase::kRunning) BeginAgain(story, "");
    };
    events.tracker_failed = [this](const std::string& story) {
      if (phase_ == Phase::kRunning) OnTrackerFailed(story);
    };
    events.trouble = [this](const std::string& story) {
      Fail(kTrouble, story + OthersStopped(num_running_));
    };
    return events;
  }

  Speaker SpeakerOf(std::size_t index, Stream stream) const {
    const Member& member = members_[index];
    const int number = member.rank.value_or(member.process->task_id);
    const bool is_worker = member.process->role == tracker::Role::kWorker;
    return {index * 2 + (stream == Stream::kOut ? 1 : 2), is_worker ? std::to_string(number) : member.name,
            number};
  }

  void ShowPiece(std::size_t index, Stream stream, std::string_view piece) {
    members_[index].AddToTail(piece);
    console_.WriteLine(stream, SpeakerOf(index, stream), piece);
  }

  void OnOutput(std::size_t index, Stream stream, std::string_view bytes) {
    Member& member = members_[index];
    member.WriteLog(bytes);
    LineSplitter& splitter = stream == Stream::kOut ? member.out : member.err;
    splitter.Append(bytes, [&](std::string_view piece) { ShowPiece(index, stream, piece); });
    if (!console_.full()) return;
    children_.PauseOutput();
    cluster_->PauseOutput();
  }

  void OnExit(std::size_t index, const ExitStatus& status) {
    Member& member = members_[index];
    member.running = false;
    --num_running_;
    member.out.Finish([&](std::string_view piece) { ShowPiece(index, Stream::kOut, piece); });
    member.err.Finish([&](std::string_view piece) { ShowPiece(index, Stream::kErr, piece); });
    member.tail_line_open = false;
    spdlog::debug("{} {}", member.Describe(), status.Describe());
    if (phase_ == Phase::kRunning) {
      if (status.ok()) {
        OnSuccess(index);
      } else if (status.was_taken_away() && HasDoneItsPart(member)) {
        spdlog::warn(
            "{} {} after all workers had left the job, which is done; what its program does after "
            "Finalize it may not have done",
            member.Describe(), status.Describe());
        OnSuccess(index);
      } else {
        OnFailure(index, status);
      }
    }
    FinishWhenAllAreGone();
  }

  void OnSuccess(std::size_t index) {
    Member& member = members_[index];
    member.succeeded = true;
    ++num_succeeded_;
    if (!server_) return;
    if (!server_->job().all_assigned()) {
      left_unjoined_.push_back(index);
      CheckThatJobCanStart();
    } else {
      // What it last said to the tracker may still be on its way.
      const auto settled = std::make_shared<asio::steady_timer>(io_, kSettleTime);
      settled->async_wait([this, index, settled, restarts = job_restarts_](const boost::system::error_code&) {
        if (restarts == job_restarts_) CheckThatItWasLinked(index);
      });
    }
  }

  /// When a worker has gone without joining and another waits for it at the tracker, the wait has no end.
  void CheckThatJobCanStart() {
    if (phase_ != Phase::kRunning || left_unjoined_.empty() || num_running_ == 0 || num_joined_ == 0) return;
    if (judgement_.due()) return;  // it may not be that one, but one that was lost
    if (!server_->job().all_assigned()) {
      GiveUpOn(members_[left_unjoined_.front()], "without joining the job at the tracker");
    }
  }

  /// The same for one that joined and went before its links were made.
  void CheckThatItWasLinked(std::size_t index) {
    if (phase_ != Phase::kRunning || num_running_ == 0) return;
    const Member& member = members_[index];
    if (!member.succeeded) return;  // it has been judged meanwhile
    const std::string task = std::to_string(member.process->task_id);
    if (!linked_ && !server_->job().TaskHasLinked(task))
      return GiveUpOn(member, "before its links were made");
    if (linked_ && !HasLeft(member)) {
      left_unfinished_.push_back(index);
      CheckThatAllCanBeLinkedAgain();
    }
  }

  /// And for one that went without Finalize, when the others have to be linked again: it will not come.
  void CheckThatAllCanBeLinkedAgain() {
    if (phase_ != Phase::kRunning || left_unfinished_.empty() || num_running_ == 0) return;
    if (judgement_.due()) return;
    if (server_->job().linked() || server_->job().finished()) return;
    GiveUpOn(members_[left_unfinished_.front()], "without Finalize");
  }

  void GiveUpOn(const Member& member, const char* when) {
    Fail(kTrouble,
         fmt::format("{} exited with code 0 {}, where others wait for it: the job can never {}{}",
                     member.Describe(), when, linked_ ? "go on" : "start", OthersStopped(num_running_)));
  }

  /// All workers have ended the job at the tracker, this one among them.
  bool HasDoneItsPart(const Member& member) const {
    return server_ && member.process->role == tracker::Role::kWorker && server_->job().finished();
  }

  /// A worker that has left the job at the tracker cannot take part in it again.
  bool HasLeft(const Member& member) const {
    return server_ && member.process->role == tracker::Role::kWorker &&
           (server_->job().finished() ||
            server_->job().TaskHasShutDown(std::to_string(member.process->task_id)));
  }

  void OnFailure(std::size_t index, const ExitStatus& status) {
    Failure failure{index, status, HasLeft(members_[index])};
    if (!server_ || !server_->job().is_collective()) return Handle(failure);
    const std::string task = std::to_string(members_[index].process->task_id);
    failure.gone_after = server_->job().GoneAfter(task);
    judgement_.Add(failure);
    server_->TaskFailed(task, status.Describe());
    if (num_running_ == 0) judgement_.JudgeNow();
  }

  // --- workers that fail together --------------------------------------------------------------------------

  void OnBroken(const std::string& task_id, const std::string& story) {
    if (phase_ == Phase::kRunning) judgement_.Accuse(WorkerOfTask(task_id), story);
  }

  /// Deals with the failures, that of the worker first with which it began.
  void Judge(FailureCase gathered) {
    if (phase_ != Phase::kRunning) return;
    Member* const first = gathered.first ? &members_[*gathered.first] : nullptr;
    if (first != nullptr && first->running) return FailOrBeginAgain(kTrouble, gathered.story);
    if (first != nullptr && first->succeeded) {  // so it said, in the middle of the job
      first->succeeded = false;
      --num_succeeded_;
      std::erase(left_unjoined_, *gathered.first);
      std::erase(left_unfinished_, *gathered.first);
      Failure failure;
      failure.index = *gathered.first;
      failure.gone_after = server_->job().GoneAfter(std::to_string(first->process->task_id));
      failure.story = gathered.story;
      gathered.failures.push_back(std::move(failure));
    }
    gathered.PutInOrder();
    for (const Failure& failure : gathered.failures) {
      if (phase_ == Phase::kRunning) Handle(failure);
    }
  }

  void Handle(const Failure& failure) {
    const auto& [index, status, has_left, gone_after, story] = failure;
    Member& member = members_[index];
    const int attempts = options_.num_restarts + 1;
    // XGBoost 2.1's begin anew together, whoever of them had left.
    const bool together = server_ && server_->job().is_collective() && !server_->job().finished();
    const bool left = together ? num_succeeded_ > 0 : has_left;
    const bool scheduler = member.process->role == tracker::Role::kScheduler;
    const std::string what =
        fmt::format("{} {}{} on attempt {} of {}", member.Describe(), status.Describe(),
                    story.empty() ? "" : fmt::format(" ({})", story), member.restarts + 1, attempts);
    if (member.restarts < options_.num_restarts && !left && !scheduler) {
      spdlog::warn("{}; starting it again", what);
      ++member.restarts;
      StartMember(index);
      return;
    }
    std::string why_final;
    if (member.restarts < options_.num_restarts) {
      why_final = left && together ? ", not started again because others have ended already"
                  : left           ? ", not started again because it had left the job at the tracker"
                                   : ", not started again because the others know the scheduler that ended";
    }
    tail_of_ = &member;
    FailOrBeginAgain(status.ok() ? kTrouble : status.ShellCode(), what + why_final);
  }

  void FailOrBeginAgain(int exit_code, const std::string& story) {
    if (MayBeginAgain()) return BeginAgain(story);
    // Some may have stopped already, as the tracker told them.
    const bool all_stop = server_ && server_->job().is_collective();
    const std::size_t others = members_.size() - num_succeeded_;
    Fail(exit_code, story + AfterRestarts() +
                        OthersStopped(all_stop ? others - std::min<std::size_t>(others, 1) : num_running_));
  }

  // --- all over again --------------------------------------------------------------------------------------

  bool MayBeginAgain() const { return phase_ == Phase::kRunning && job_restarts_ < options_.max_restarts; }

  /// ", after the job had been started again 3 times", as it applies.
  std::string AfterRestarts() const {
    if (job_restarts_ == 0) return {};
    return fmt::format(", after the job had been started again {}",
                       job_restarts_ == 1 ? "once" : fmt::format("{} times", job_restarts_));
  }

  /// Stops what runs; when all are gone the job begins anew.
  void BeginAgain(const std::string& why) {
    ++job_restarts_;
    BeginAgain(why, fmt::format(" (restart {} of {})", job_restarts_, options_.max_restarts));
  }
  void BeginAgain(const std::string& why, const std::string& count) {
    phase_ = Phase::kRestarting;
    spdlog::warn("{}; starting all {} processes again{}", why, members_.size(), count);
    StopAll();
  }

  void StartAnew() {
    patience_.cancel();
    children_.EndLeftovers();
    server_.reset();  // its port is free now
    int attempt = 0;
    for (const Member& member : members_) attempt = std::max(attempt, member.attempt);
    try {
      MakePlan();
    } catch (const std::exception& error) {
      return Fail(kTrouble, fmt::format("the job cannot be started again: {}", error.what()));
    }
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member& member = members_[i];
      member.process = &plan_[i];
      member.attempt = attempt;  // all count on from the highest
      member.restarts = 0;
      member.succeeded = false;
      member.rank.reset();
    }
    num_started_ = num_succeeded_ = 0;
    num_joined_ = 0;
    left_unjoined_.clear();
    left_unfinished_.clear();
    judgement_.Clear();
    tail_of_ = nullptr;
    linked_ = false;
    begin_ = Clock::now();
    phase_ = Phase::kRunning;
    Begin();
  }

  // --- what the tracker says -------------------------------------------------------------------------------

  /// The index of the worker with this task id, if it is one that was given out here. Only workers are
  /// members when there is a tracker.
  std::optional<std::size_t> WorkerOfTask(const std::string& task_id) const {
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(task_id.data(), task_id.data() + task_id.size(), index);
    const bool whole = error == std::errc{} && end == task_id.data() + task_id.size();
    return whole && index < members_.size() ? std::optional(index) : std::nullopt;
  }

  tracker::ServerEvents EventsOfTracker() {
    tracker::ServerEvents events;
    events.joined = [this](int joined, int expected) { OnJoined(joined, expected); };
    events.assigned = [this](const std::string& task_id, int rank, const std::string&) {
      if (const auto index = WorkerOfTask(task_id)) members_[*index].rank = rank;
      asio::post(io_, [this] { CheckThatAllCanBeLinkedAgain(); });
    };
    events.linked = [this] { OnLinked(); };
    events.broken = [this](const std::string& task_id, const std::string& story) {
      OnBroken(task_id, story);
    };
    events.print = [this](const std::string& text) { console_.Print(text); };
    events.finished = [this](const std::string& failure) {
      if (!failure.empty()) OnTrackerFailed(failure);
      // A process that starts a second job here is refused instead of waiting for an answer.
      server_->Stop();
    };
    return events;
  }

  void OnTrackerFailed(const std::string& story) {
    if (MayBeginAgain()) {
      BeginAgain(story);
    } else {
      Fail(kTrouble, story + AfterRestarts());
    }
  }

  void OnJoined(int joined, int expected) {
    num_joined_ = joined;
    if (!linked_ && phase_ == Phase::kRunning) console_.ShowProgress(joined, expected);
    CheckThatJobCanStart();
  }

  void OnLinked() {
    console_.RemoveProgress();
    if (std::exchange(linked_, true) || !console_.interactive()) return;
    const auto took = std::chrono::duration<double>(Clock::now() - begin_);
    console_.Message(fmt::format("dmlc-submit: all {} workers are up ({:.1f} s)\n",
                                 server_->job().world_size(), took.count()));
  }

  // --- the end ---------------------------------------------------------------------------------------------

  /// The job cannot go on: stops everything. Only the first reason counts.
  void Fail(int exit_code, std::string story) {
    if (phase_ == Phase::kStopping) return;
    phase_ = Phase::kStopping;
    exit_code_ = exit_code;
    story_ = std::move(story);
    StopAll();
  }

  void KillAll() {
    scheduler_.Kill();
    cluster_->Kill();
  }

  /// Stops all processes; FinishWhenAllAreGone follows.
  void StopAll() {
    console_.RemoveProgress();
    // The workers that are stopped now would be reported as lost connections, and bury the story.
    if (server_) server_->Stop();
    scheduler_.Stop();
    cluster_->Stop();
    patience_.expires_after(kStopGrace + kKillPatience);
    patience_.async_wait([this](const boost::system::error_code& error) {
      if (!error) GiveUpWaiting();
    });
    asio::post(io_, [this] { FinishWhenAllAreGone(); });
  }

  void GiveUpWaiting() {
    if (num_running_ == 0 && !std::exchange(waited_for_cluster_, true)) {
      patience_.expires_after(kClusterPatience);
      return patience_.async_wait([this](const boost::system::error_code& error) {
        if (!error) GiveUpWaiting();
      });
    }
    for (const Member& member : members_) {
      if (member.running)
        spdlog::error("{} does not end even on SIGKILL; it is left behind", member.Describe());
    }
    if (phase_ == Phase::kRestarting) {
      return Fail(kTrouble, "the job cannot be started again beside a process of it that does not end");
    }
    Finish();
  }

  void FinishWhenAllAreGone() {
    if (num_running_ > 0 || (phase_ != Phase::kRunning && cluster_->busy())) return;
    if (phase_ == Phase::kRestarting) return StartAnew();
    if (phase_ == Phase::kStopping || num_succeeded_ == members_.size()) Finish();
  }

  void Finish() {
    if (std::exchange(finished_, true)) return;
    console_.RemoveProgress();
    if (server_) server_->Stop();
    if (!story_.empty()) TellStory();
    signals_.cancel();
    io_.stop();
  }

  void TellStory() {
    if (tail_of_ != nullptr && !tail_of_->tail.empty()) {
      spdlog::info("the last output of {}:", tail_of_->name);
      for (const std::string& line : tail_of_->tail) spdlog::info("  | {}", line);
    }
    spdlog::error("{}", story_);
  }

  asio::io_context& io_;
  Console& console_;
  const Options& options_;
  const FoundCommand& command_;
  asio::signal_set signals_;
  asio::steady_timer patience_;
  Children children_;
  LocalCluster scheduler_;
  /// The same when the whole job is started again: what a queue keeps for it has this one.
  const wire::JobToken token_ = wire::JobToken::Random();
  const int cores_ = UsableCores();
  JobHost host_;
  int starts_ = 0;  ///< of the whole job, before this one
  std::unique_ptr<Cluster> cluster_;
  Judgement judgement_;
  Clock::time_point begin_ = Clock::now();
  std::vector<PlannedProcess> plan_;
  std::vector<Member> members_;              ///< one for each of plan_
  std::unique_ptr<tracker::Server> server_;  ///< none in a parameter-server job

  std::size_t num_started_ = 0;
  std::size_t num_running_ = 0;
  std::size_t num_succeeded_ = 0;
  int num_joined_ = 0;
  std::vector<std::size_t> left_unjoined_;
  std::vector<std::size_t> left_unfinished_;  ///< with success, linked, without having said so to the tracker
  bool linked_ = false;

  enum class Phase { kRunning, kRestarting, kStopping };
  Phase phase_ = Phase::kRunning;
  int job_restarts_ = 0;
  bool finished_ = false;
  int exit_code_ = 0;
  bool interrupted_ = false;
  bool waited_for_cluster_ = false;
  std::string story_;                ///< why the job failed
  const Member* tail_of_ = nullptr;  ///< whose last output belongs to the story
};

}  // namespace

JobResult RunJob(asio::io_context& io, Console& console, const Options& options, const FoundCommand& command,
                 const std::string& farewell) {
  return JobRun(io, console, options, command, farewell).Run();
}

std::string ShowDryRun(const Options& options, const FoundCommand& command) {
  const bool servers = options.num_servers > 0;
  const JobHost host = HostOfJob(options);
  std::string text = servers ? "# DMLC_PS_ROOT_PORT: the port is " : "# DMLC_TRACKER_PORT: the port is ";
  if (options.port == 0) {
    text += "any free one, shown as 0\n";
  } else {
    text += fmt::format("{} from {} to {}; {} is shown\n", servers ? "a free one" : "the first free one",
                        options.port, options.port_end, options.port);
  }
  if (host.port != 0 || (options.no_tracker && !servers)) text.clear();
  const tracker::JobAddress address =
      AddressOf(options, host.address, host.port != 0 ? host.port : options.port,
                options.dry_run ? kShownSecret : wire::JobToken::Random().ToHex());
  return text + ShowCluster(options, Plan(options, {address, command, InheritedNames(), UsableCores()}),
                            host.address);
}

}  // namespace warren::submit
