#include "submit/job/run.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "posix/cpu_quota.h"
#include "submit/cluster/clusters.h"
#include "submit/cluster/core_choice.h"
#include "submit/cluster/dump_queue.h"
#include "submit/cluster/local.h"
#include "submit/job/address.h"
#include "submit/job/admission.h"
#include "submit/job/output.h"
#include "submit/job/plan.h"
#include "submit/job/separate_programs.h"
#include "submit/job/watch.h"
#include "submit/options/job_name.h"
#include "submit/output/deadline_timer.h"
#include "submit/output/log_folder.h"
#include "submit/process/children.h"
#include "submit/process/environment.h"
#include "submit/trace/tracing.h"
#include "tracker/environment.h"
#include "tracker/host_address.h"
#include "tracker/input_watch.h"
#include "tracker/server.h"
#include "wire/job_token.h"
#include "wire/report.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

/// The interval of the workers' reports, in seconds.
constexpr int kReportSeconds = 1;
/// The key of the commands that clean up shipped files.
constexpr char kCaller[] = "files";
/// The signal that makes dmlc-submit show the stacks of all running processes.
constexpr int kDumpSignal = SIGUSR2;

/// The binding of the processes to cores; empty unless the processes run on this machine and are to be bound.
Binding BindingHere(const Options& options, int usable_cores) {
  const Bind bind = BindOf(options);
  if (ClusterOf(options).core_sharing != CoreSharing::kHere || bind == Bind::kNone) return {};
  const char* threads = std::getenv("OMP_NUM_THREADS");
  return BindProcesses(bind, ReadHostCores(),
                       ProcessesToBind(options, options.num_workers, options.num_servers, usable_cores,
                                       threads != nullptr ? threads : ""));
}

/// The token that the user has set for the job in the environment, otherwise a random one. If dmlc-submit
/// runs in a process of another job, the environment contains that job's token, which this job must not
/// share.
wire::JobToken TokenOfJob() {
  if (std::getenv("DMLC_TASK_ID") != nullptr) return wire::JobToken::Random();
  return tracker::TokenFromEnvironment().value_or(wire::JobToken::Random());
}

std::unique_ptr<Tracing> TracingOf(asio::io_context& io, const Options& options) {
  return Tracing::FromEnvironment(
      io, JobName(options),
      {{"warren.cluster", options.cluster}, {"warren.workers", std::int64_t{options.num_workers}}});
}

/// Connects the supervisor to processes, the tracker, the console, signals and the clock.
class JobRun : public JobView {
 public:
  JobRun(asio::io_context& io, Console& console, const Options& options, const FoundCommand& command,
         const JobStart& start)
      : io_(io),
        console_(console),
        options_(options),
        command_(command),
        on_begin_(start.on_begin),
        signals_(io),
        timer_(io),
        children_(io, NumProcesses()),
        scheduler_(io, children_, EventsOfCluster()),
        host_(HostOfJob(options)),
        cluster_(ClusterOf(options).make({io, children_, options, host_.address, EventsOfCluster()})) {
    if (!start.cleanup.empty()) children_.SetCleanupCommand(kCaller, start.cleanup);
    MakePlan();
    const ClusterEntry& cluster = ClusterOf(options);
    supervisor_.emplace(
        RestartPolicy{options.num_restarts, options.max_restarts, options.min_workers, !cluster.runs_here,
                      options.min_workers && cluster.hosts_from ? cluster.hosts_from(options) : "",
                      !options.host_discovery.empty(), cluster.replaces_workers},
        plan_, *this);
    watch_.emplace(io, console, options, start.began, plan_, server_ != nullptr, token_, tracing_.get(),
                   CallbacksOfWatch());
    OpenOutput();
    HandleSignals();
    if (options.until_stdin_closes) input_.emplace(io, [this] { Tell(&Supervisor::Signalled, SIGTERM); });
    ListenToConsole();  // last: if this constructor throws, the destructor does not reset the callbacks
  }

  ~JobRun() override {
    console_.on_room = nullptr;
    console_.on_reader_gone = nullptr;
    children_.SetCleanupCommand(kCaller, "");  // the caller cleans up
  }
  JobRun(const JobRun&) = delete;
  JobRun& operator=(const JobRun&) = delete;

  JobResult Run() {
    asio::post(io_, [this] {
      SayWhoTakesWhichCores();
      SayWhoIsBound();
      const std::string record_error = watch_->Begin();
      if (on_begin_) on_begin_(record_error);
      Tell(&Supervisor::Begin);
    });
    io_.run();
    return result_;
  }

 private:
  // --- set-up ----------------------------------------------------------------------------------------------

  std::size_t NumProcesses() const {
    const auto workers = static_cast<std::size_t>(options_.num_workers);
    const auto servers = static_cast<std::size_t>(options_.num_servers);
    return servers == 0 ? workers : workers + servers + 1;  // servers come with a scheduler
  }

  /// Starts the tracker if the job needs one here, and plans the processes, which are given the address of
  /// the tracker or scheduler.
  void MakePlan() {
    if (host_.port != 0 && !plan_.empty()) host_ = HostOfJob(options_, ++starts_);
    std::uint16_t port = host_.port;
    if (port != 0) {
      spdlog::debug("processes look for the job at {} port {}", host_.address, port);
    } else if (options_.num_servers > 0) {
      port = FindSchedulerPort(io_, options_, host_.address);
    } else if (!options_.no_tracker) {
      StartTracker(host_.address);
      port = server_->port();
    }
    if (!host_.why.empty() && port != 0) {
      spdlog::info("tracker address: {} port {}, from {} (change it with --host-ip)", host_.address, port,
                   host_.why);
    }
    plan_ = Plan(options_,
                 {AddressOf(options_, host_.address, port, token_.ToHex()), command_, InheritedNames(),
                  cores_, binding_, ChooseMasterPort(io_), server_ && WantsReports() ? kReportSeconds : 0,
                  tracing_ ? tracing_->EnvironmentOfProcesses() : tracker::Environment()});
  }

  /// Whether anything reads the workers' reports.
  bool WantsReports() const {
    return options_.hang_timeout.count() > 0 || console_.interactive() ||
           options_.log_format == LogFormat::kJson || options_.metrics || options_.dashboard ||
           !options_.timeline.empty() || tracing_;
  }

  /// Logs how the workers share the cores, unless the user or the cluster decides that or there is only one
  /// worker.
  void SayWhoTakesWhichCores() const {
    if (options_.num_workers < 2 || ThreadsOf(options_, InheritedNames()) != Threads::kShare) return;
    if (ClusterOf(options_).core_sharing == CoreSharing::kHere) {
      const int threads = ThreadsOfWorker(options_, options_.num_workers, options_.num_servers, cores_);
      spdlog::info("each worker uses {} of {} core{} (OMP_NUM_THREADS={}; change it with --worker-cores)",
                   threads, cores_, cores_ == 1 ? "" : "s", threads);
    } else {
      spdlog::info(
          "each worker uses an equal share of its host's cores (OMP_NUM_THREADS; change it with --worker-cores)");
    }
  }

  void SayWhoIsBound() const {
    if (!binding_.why_not.empty()) {
      spdlog::log(binding_.too_few ? spdlog::level::warn : spdlog::level::info, "{}",
                  NotBoundStory(BindOf(options_), binding_));
    }
    if (binding_.workers.empty()) return;
    for (const PlannedProcess& process : plan_) {
      if (process.cores.empty()) continue;
      spdlog::debug("{} is bound to {}", ProcessName(process.role, process.task_id),
                    NamedCores(process.cores));
    }
  }

  void StartTracker(const std::string& host) {
    tracker::ServerOptions server;
    server.bind_address = options_.host_ip.empty() ? host : tracker::BindAddressFor(host);
    server.port = options_.port;
    server.port_end = options_.port_end;
    server.begin_anywhere = !options_.port_was_chosen;
    server.job = {options_.num_workers, options_.sort_by, true, options_.timeout};
    server.job.admission = AdmissionOf(options_, token_);
    if (options_.min_workers) {
      server.job.elastic = {*options_.min_workers, options_.num_workers, options_.replace_within,
                            options_.timeout};
    }
    server_ = std::make_unique<tracker::Server>(io_, server, EventsOfTracker());
    spdlog::debug("tracker listens at {} port {}", host, server_->port());
  }

  void OpenOutput() {
    if (!options_.log_dir.empty()) log_folder_ = BeginLogFolder(options_.log_dir);
    output_.emplace(
        io_, console_, plan_, options_.log_dir, options_.show_all_errors,
        [this](std::size_t index, Stream stream) { return SpeakerOf(index, stream); },
        [this](std::size_t index, Stream stream, std::string_view piece) {
          watch_->OnOutput(index, stream, piece);
        });
  }

  WatchCallbacks CallbacksOfWatch() {
    return {[this] { return server_ ? server_->job().DescribeMissing() : std::string(); },
            [this](std::size_t index, std::function<void(std::string)> done) {
              dumps_.Ask(RunnerOf(plan_[index]), index, std::move(done));
            },
            [this](std::size_t index) { return supervisor_->process(index).running; },
            [this] { Tell(&Supervisor::Signalled, SIGTERM); }};
  }

  void ListenToConsole() {
    console_.on_room = [this] {
      watch_->monitor().OutputPaused(false, Clock::now());
      children_.ResumeOutput();
      cluster_->ResumeOutput();
    };
    console_.on_reader_gone = [this] { Tell(&Supervisor::ReaderGone); };
  }

  void HandleSignals() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction current {};
      sigaction(signal, nullptr, &current);
      // Signals that are ignored at the start stay ignored, except SIGTERM: nohup ignores SIGHUP, and shells
      // ignore SIGINT in background jobs of scripts.
      if (current.sa_handler != SIG_IGN || signal == SIGTERM) signals_.add(signal);
    }
    signals_.add(kDumpSignal);
    WaitForSignal();
  }

  void WaitForSignal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      WaitForSignal();
      if (signal == kDumpSignal) return DumpAll();
      Tell(&Supervisor::Signalled, signal);
    });
  }

  /// Shows the stacks of all running processes; called when the user sends kDumpSignal.
  void DumpAll() {
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      if (supervisor_->process(i).running) watch_->Dump(i);
    }
  }

  // --- the supervisor --------------------------------------------------------------------------------------

  /// Passes an event to the supervisor and carries out its actions. Events caused by these actions are passed
  /// on immediately, but the actions that follow from them are carried out afterwards.
  template <typename... Arguments, typename... Values>
  void Tell(void (Supervisor::*event)(Arguments...), Values&&... values) {
    (*supervisor_.*event)(std::forward<Values>(values)..., Clock::now());
    if (std::exchange(carrying_out_, true)) return;
    while (const std::optional<Action> action = supervisor_->NextAction()) {
      std::visit([this](const auto& one) { this->Do(one); }, *action);
    }
    carrying_out_ = false;
    WaitForDeadline();
  }

  void TellSoon(void (Supervisor::*event)(TimePoint)) {
    asio::post(io_, [this, event] { Tell(event); });
  }

  void WaitForDeadline() {
    timer_.Set(supervisor_->NextDeadline(), [this] { Tell(&Supervisor::Tick); });
  }

  void Do(const PrepareCluster&) {
    cluster_->Prepare([this] { Tell(&Supervisor::Prepared); });
  }

  void Do(const StartProcess& start) {
    output_->Begin(start.index, start.attempt);
    PlannedProcess process = plan_[start.index];
    process.seat = start.seat;
    try {
      const Started where = RunnerOf(process).Start(start.index, process, start.attempt);
      watch_->monitor().Started(start.index, where, Clock::now());
      Tell(&Supervisor::Started, start.index, where);
    } catch (const StartError& error) {
      Tell(&Supervisor::StartFailed, start.index, error.exit_code, std::string(error.what()));
    }
  }

  void Do(const AskToLeave& ask) { cluster_->AskToLeave(ask.index); }

  void Do(const ResumeSoon&) { TellSoon(&Supervisor::Resume); }

  void Do(const ReportFailure& failure) {
    if (server_) server_->TaskFailed(failure.task_id, failure.how);
  }

  void Do(const ExpectWorkers& expected) {
    if (server_) server_->Expect(expected.num_workers);
  }

  void Do(const StopTracker&) {
    if (server_) server_->Stop();
  }

  void Do(const StopAll&) {
    output_->StopBegins();
    watch_->monitor().StopBegins();
    if (server_) server_->Stop();
    scheduler_.Stop();
    cluster_->Stop();
  }

  void Do(const KillAll&) {
    scheduler_.Kill();
    cluster_->Kill();
  }

  void Do(const Replan& replan) {
    children_.EndLeftovers();
    watch_->monitor().AttemptEnded(replan.why, replan.culprit, Clock::now());
    server_.reset();  // frees its port
    try {
      MakePlan();
    } catch (const std::exception& error) {
      return Tell(&Supervisor::ReplanFailed, std::string(error.what()));
    }
    watch_->monitor().BeginsAgain(Clock::now());
    Tell(&Supervisor::Replanned);
  }

  void Do(const LogLine& line) {
    Write(line);
    watch_->OnLog(line);
  }

  void Do(const ShowErrorOf& whose) { output_->ShowErrorOf(whose.index); }
  void Do(const ShowErrors& errors) { output_->ShowErrors(errors.culprit, errors.repeat_last_output); }

  void Do(const ShowProgress& progress) { watch_->ShowJoining(progress.joined, progress.expected); }
  void Do(const HideProgress&) { watch_->StopShowingJoining(); }

  void Do(const TellAllAreUp& up) {
    if (!console_.interactive()) return;
    console_.Message(Severity::kInfo, fmt::format("all {} workers are up ({:.1f} s)",
                                                  server_->job().world_size(), up.took.count()));
  }

  void Do(const TellOfSeparatePrograms& programs) {
    std::vector<std::string> words = options_.command;
    words.front() = command_.file;
    const std::string story = SeparateProgramsStory(programs.num_workers, words, SearchPath());
    if (!story.empty()) Do(LogLine{Severity::kWarning, story});
  }

  /// Makes the next signal other than kDumpSignal end the waits that follow the job, e.g. for the collector
  /// of traces.
  void EndWithNextSignal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (signal == kDumpSignal) return EndWithNextSignal();
      io_.stop();
    });
  }

  void Do(const FinishJob& finish) {
    output_->ShowRest();
    result_ = finish.result;
    signals_.cancel();
    EndWithNextSignal();
    input_.reset();
    watch_->Finish(finish.result, finish.story, finish.culprit, [this] { io_.stop(); });
  }

  // --- queries of the supervisor ---------------------------------------------------------------------------

  bool has_tracker() const override { return server_ != nullptr; }
  bool is_collective() const override { return server_->job().is_collective(); }
  bool all_assigned() const override { return server_->job().all_assigned(); }
  bool linked() const override { return server_->job().linked(); }
  bool finished() const override { return server_->job().finished(); }
  bool work_is_done() const override {
    return server_ ? server_->job().work_is_done() : cluster_->work_is_done();
  }
  Task TaskOf(const std::string& task_id) const override {
    const tracker::Job& job = server_->job();
    return {job.TaskHasLinked(task_id), job.TaskHasShutDown(task_id), job.GoneAfter(task_id)};
  }
  bool cluster_is_busy() const override { return cluster_->busy(); }

  // --- events ----------------------------------------------------------------------------------------------

  /// Returns the cluster that runs this process. The scheduler of a parameter-server job usually runs on this
  /// machine, because all other processes are given the scheduler's address before they start.
  Cluster& RunnerOf(const PlannedProcess& process) {
    const bool is_here = process.role == tracker::Role::kScheduler && !cluster_->runs_scheduler();
    return is_here ? static_cast<Cluster&>(scheduler_) : *cluster_;
  }

  ClusterEvents EventsOfCluster() {
    ClusterEvents events;
    events.output = [this](std::size_t index, Stream stream, std::string_view bytes) {
      OnOutput(index, stream, bytes);
    };
    events.located = [this](std::size_t index, const Started& where) {
      watch_->monitor().Located(index, where, Clock::now());
      Tell(&Supervisor::Located, index, where);
    };
    events.exited = [this](std::size_t index, const ExitStatus& status) {
      output_->Finish(index, status.ok());
      watch_->monitor().Exited(index, status, Clock::now());
      Tell(&Supervisor::Exited, index, status);
    };
    events.sampled = [this](std::size_t index, const ProcessSample& sample) {
      spdlog::debug("{}: state {}, {:.1f} s of CPU, {} MB", supervisor_->process(index).name, sample.state,
                    sample.cpu_seconds, sample.resident_bytes >> 20);
      watch_->monitor().Sampled(index, sample, Clock::now());
    };
    events.said = [this](const std::string& launcher, Stream stream, std::string_view piece) {
      const std::uint64_t id = SpeakerId(plan_.size(), stream);  // differs from those of the processes
      console_.WriteLine(stream, {id, launcher, 0, "launcher"}, piece);
    };
    events.waits = [this] {
      if (server_) server_->WaitAnew();
    };
    events.hosts_changed = [this](const std::vector<HostRoom>& hosts) {
      Tell(&Supervisor::HostsChanged, hosts);
    };
    events.idle = [this] { Tell(&Supervisor::ClusterIdle); };
    events.keeps = [this](const std::vector<KeptJob>& jobs) { watch_->ClusterKeeps(jobs); };
    events.requeued = [this](const std::string& story) { Tell(&Supervisor::Requeued, story); };
    events.tracker_failed = [this](const std::string& story) { Tell(&Supervisor::TrackerFailed, story); };
    events.trouble = [this](const std::string& story) { Tell(&Supervisor::Trouble, story); };
    return events;
  }

  tracker::ServerEvents EventsOfTracker() {
    tracker::ServerEvents events;
    events.joined = [this](int joined, int expected) {
      watch_->monitor().Joined(joined, expected, Clock::now());
      Tell(&Supervisor::Joined, joined, expected);
    };
    events.assigned = [this](const std::string& task_id, int rank, const std::string&) {
      watch_->monitor().Assigned(task_id, rank);
      output_->Assigned(task_id, rank);
      Tell(&Supervisor::Assigned, task_id, rank);
    };
    events.linked = [this] {
      watch_->monitor().Linked(Clock::now());
      Tell(&Supervisor::Linked);
    };
    events.generation_began = [this](const tracker::GenerationBegan& generation) {
      watch_->monitor().GenerationBegan(generation, Clock::now());
      if (generation.number > 1) watch_->OnLog({Severity::kInfo, generation.text});
    };
    events.broken = [this](const std::string& task_id, const std::string& story) {
      Tell(&Supervisor::Broken, task_id, story);
    };
    events.reported = [this](const wire::WorkerReport& report) {
      if (options_.debug_log) spdlog::debug("report: {}", wire::Encode(report).substr(sizeof(std::int32_t)));
      watch_->OnReport(report);
    };
    events.print = [this](int rank, const std::string& text) {
      watch_->OnTrackerPrint(rank, text);
      output_->TrackerPrint(text);
    };
    events.finished = [this](const std::string& failure) {
      watch_->monitor().ReportsEnd();
      Tell(&Supervisor::TrackerFinished, failure);
      if (failure.empty() && options_.min_workers) cluster_->WorkersFinished();
    };
    return events;
  }

  static std::uint64_t SpeakerId(std::size_t index, Stream stream) {
    return index * 2 + (stream == Stream::kOut ? 1 : 2);
  }

  Speaker SpeakerOf(std::size_t index, Stream stream) const {
    const ProcessState& process = supervisor_->process(index);
    const int number = process.rank.value_or(process.task_id);
    const bool is_worker = process.role == tracker::Role::kWorker;
    return {SpeakerId(index, stream),
            is_worker ? std::to_string(number) : process.name,
            number,
            std::string(tracker::RoleName(process.role)),
            process.rank,
            process.task_id};
  }

  void OnOutput(std::size_t index, Stream stream, std::string_view bytes) {
    // The bytes count as output even if they are held back until their line ends.
    watch_->monitor().Wrote(index, Clock::now());
    output_->Append(index, stream, bytes);
    if (!console_.full()) return;
    watch_->monitor().OutputPaused(true, Clock::now());
    children_.PauseOutput();
    cluster_->PauseOutput();
  }

  asio::io_context& io_;
  Console& console_;
  const Options& options_;
  const FoundCommand& command_;
  const std::function<void(const std::string& record_error)> on_begin_;
  asio::signal_set signals_;
  std::optional<tracker::InputWatch> input_;  ///< with --until-stdin-closes
  DeadlineTimer timer_;
  Children children_;
  LocalCluster scheduler_;
  /// Kept when the whole job is restarted, because a queue's copy of the job contains the token.
  const wire::JobToken token_ = TokenOfJob();
  const int cores_ = posix::UsableCores();
  const Binding binding_ = BindingHere(options_, cores_);
  JobHost host_;
  int starts_ = 0;  ///< number of restarts of the job, counted only if the cluster runs the tracker
  std::unique_ptr<Cluster> cluster_;
  DumpQueue dumps_;
  const std::unique_ptr<Tracing> tracing_ = TracingOf(io_, options_);  ///< null if traces are off
  std::vector<PlannedProcess> plan_;
  std::optional<JobWatch> watch_;
  posix::Descriptor log_folder_;  ///< keeps other jobs out of --log-dir
  std::optional<JobOutput> output_;
  std::unique_ptr<tracker::Server> server_;  ///< null if dmlc-submit runs no tracker
  std::optional<Supervisor> supervisor_;
  bool carrying_out_ = false;
  JobResult result_;
};

}  // namespace

JobResult RunJob(asio::io_context& io, Console& console, const Options& options, const FoundCommand& command,
                 const JobStart& start) {
  return JobRun(io, console, options, command, start).Run();
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
  const int cores = posix::UsableCores();
  const Binding binding = BindingHere(options, cores);
  if (!binding.why_not.empty()) text += fmt::format("# {}\n", NotBoundStory(BindOf(options), binding));
  return text + ClusterOf(options).show(
                    options,
                    Plan(options, {address, command, InheritedNames(), cores, binding, kShownMasterPort}),
                    host.address);
}

}  // namespace warren::submit
