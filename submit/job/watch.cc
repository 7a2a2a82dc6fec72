#include "submit/job/watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "posix/private_file.h"
#include "submit/monitor/kept_page.h"
#include "submit/monitor/live_line.h"
#include "submit/monitor/page_state.h"
#include "submit/monitor/web_request.h"
#include "submit/options/job_name.h"
#include "submit/output/log_folder.h"
#include "submit/process/whole_file.h"

namespace warren::submit {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kBetweenLooks{1};
/// A longer gap between two checks means that this process was suspended.
constexpr std::chrono::seconds kStoodStill{4};
/// The minimum duration of a job for which the slowest rank is logged at the end, in seconds.
constexpr double kLongJobSeconds = 10;
/// The maximum number of findings logged at a time. More of them, e.g. if a file system is unavailable, would
/// flood the log.
constexpr std::size_t kMostFindings = 8;
constexpr std::size_t kMostDumps = 8;
/// The minimum time between two writes of the evaluations to the history while the job runs, in seconds.
constexpr double kBetweenKeptSeconds = 10;
constexpr std::size_t kMostKeptEvaluations = 500;

JobSnapshot FactsOf(const Options& options, std::chrono::system_clock::time_point began) {
  JobSnapshot job;
  job.name = JobName(options);
  job.command = fmt::format("{}", fmt::join(options.command, " "));
  job.cluster = options.cluster;
  job.began = began;
  job.world_size = options.num_workers;
  return job;
}

JobRecord RecordOf(const Options& options, std::chrono::system_clock::time_point began) {
  JobRecord record = RecordOfThisProcess(began);
  record.name = JobName(options);
  record.command = options.command;
  record.cluster = options.cluster;
  record.workers = options.num_workers;
  if (!options.log_dir.empty()) record.log_dir = std::filesystem::absolute(options.log_dir).string();
  record.detached = options.detach;
  return record;
}

}  // namespace

JobWatch::JobWatch(boost::asio::io_context& io, Console& console, const Options& options,
                   std::chrono::system_clock::time_point began, const std::vector<PlannedProcess>& plan,
                   bool joins, const wire::JobToken& token, Tracing* tracing, WatchCallbacks callbacks)
    : console_(console),
      options_(options),
      tracing_(tracing),
      callbacks_(std::move(callbacks)),
      monitor_(
          FactsOf(options, began),
          {options.hang_timeout, kSampleInterval, joins, tracing != nullptr ? &tracing->trace() : nullptr},
          plan, Clock::now()),
      began_(began),
      output_(plan.size()),
      usage_(plan.size()),
      timer_(io) {
  for (const PlannedProcess& process : plan) {
    std::filesystem::path path = process.log_file;
    stack_files_.push_back(path.empty() ? "" : path.replace_extension(".stack").string());
  }
  if (!options.timeline.empty()) timeline_.emplace(options.timeline, Clock::now());
  if (!options.metrics && !options.dashboard) return;
  web_ = std::make_unique<WebServer>(
      io, WebServerOptions{options.metrics, options.dashboard, PageToken(token)},
      WebServerCallbacks{[this] { return monitor_.Snapshot(Clock::now()); }, SourcesOfPage(token)});
}

PageSources JobWatch::SourcesOfPage(const wire::JobToken& token) {
  PageSources page;
  page.output = &output_;
  page.usage = &usage_;
  page.cancel = [this] {
    Say("the job was cancelled on its page");
    callbacks_.cancel();
  };
  page.dump = [this](std::size_t index) {
    if (index >= stack_files_.size() || !callbacks_.runs(index)) return false;
    Dump(index);
    return true;
  };
  page.history_folder = HistoryFolder(std::getenv("XDG_STATE_HOME"), std::getenv("HOME"));
  page.own_id = JobId(RecordOf(options_, began_));
  page.view_token = ViewToken(token);
  return page;
}

JobWatch::~JobWatch() {
  console_.on_resize = nullptr;
}

std::string JobWatch::Begin() {
  runs_ = true;
  last_look_ = Clock::now();
  JobRecord record = RecordOf(options_, began_);
  if (web_) record.dashboard = web_->PageUrl();
  history_.emplace(std::move(record));
  if (web_ && !web_->MetricsUrl().empty()) Say(fmt::format("metrics: {}", web_->MetricsUrl()));
  if (web_ && !web_->PageUrl().empty()) Say(fmt::format("dashboard: {}", web_->PageUrl()));
  if (tracing_ != nullptr) spdlog::info("traces: {}", tracing_->Describe());
  console_.on_resize = [this] { ShowLine(); };
  WaitToLook();
  return history_->error();
}

void JobWatch::WaitToLook() {
  timer_.expires_after(kBetweenLooks);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) Tick();
  });
}

/// Shows text that the user has asked for, even with --quiet, and writes it to --log-file.
void JobWatch::Say(const std::string& text) const {
  if (options_.quiet) console_.Message(Severity::kInfo, text);
  spdlog::info("{}", text);
}

void JobWatch::Tick() {
  if (!runs_) return;
  const auto now = Clock::now();
  const auto since = now - std::exchange(last_look_, now);
  // This process was suspended by Ctrl-Z, or its machine slept; the workers may have continued.
  if (since > kStoodStill) monitor_.StoodStill(since - kBetweenLooks);
  Report(monitor_.Look(now));
  if (monitor_.JoiningTakesLong(now)) {
    const std::string missing = callbacks_.missing();
    if (!missing.empty())
      spdlog::warn("workers have waited for others for {:.0f} s: {}",
                   std::chrono::duration<double>(options_.hang_timeout).count(), missing);
  }
  if (const double seconds = monitor_.SecondsAt(now); web_ && usage_.IsDue(seconds))
    usage_.Add(seconds, monitor_.UsageNow());
  if (monitor_.SecondsAt(now) - kept_at_seconds_ >= kBetweenKeptSeconds)
    KeepEvaluations(monitor_.Snapshot(now));
  ShowLine();
  if (tracing_ != nullptr) tracing_->Tick(now);
  WaitToLook();
}

// --- terminal ----------------------------------------------------------------------------------------------

void JobWatch::ShowLine() {
  if (joining_ || !runs_) return;
  if (options_.log_format == LogFormat::kJson) return SayInJson(monitor_.Snapshot(Clock::now()));
  if (console_.interactive()) {
    console_.ShowStatus(LiveLine(monitor_.Snapshot(Clock::now()), console_.width()));
  }
}

void JobWatch::ShowJoining(int joined, int expected) {
  joining_ = true;
  if (console_.interactive()) console_.ShowStatus(ProgressBar(joined, expected));
}

void JobWatch::StopShowingJoining() {
  joining_ = false;
  console_.HideStatus();
}

/// Writes the job's progress as a JSON object, if a round has ended since the last object.
void JobWatch::SayInJson(const JobSnapshot& job) {
  if (job.evaluations.empty() || said_round_ == job.round) return;
  said_round_ = job.round;
  nlohmann::json line = {{"source", "progress"}, {"seconds", job.seconds}, {"round", job.round}};
  if (job.rounds > 0) line["rounds"] = job.rounds;
  if (job.seconds_left) line["seconds_left"] = *job.seconds_left;
  for (const auto& [name, value] : job.evaluations.back().metrics) {
    if (std::isfinite(value)) line["metrics"][name] = value;
  }
  console_.Object(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// --- findings ----------------------------------------------------------------------------------------------

void JobWatch::Report(const std::vector<Finding>& findings) {
  std::size_t dumps = 0;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    const bool is_over = finding.kind == Finding::Kind::kGoesOn;
    const bool is_last = i + 1 == kMostFindings && findings.size() > kMostFindings;
    const std::string text =
        is_last ? fmt::format("{} (and {} more like this)", finding.text, findings.size() - kMostFindings)
                : finding.text;
    const LogLine line{is_over ? Severity::kInfo : Severity::kWarning, text};
    Write(line);
    monitor_.Said(line.severity, text, Clock::now());
    if (options_.dump_on_hang && finding.kind == Finding::Kind::kAllIdle) DumpAll();
    const bool has_stack =
        !is_over && finding.kind != Finding::Kind::kSilent && finding.kind != Finding::Kind::kAllIdle;
    if (options_.dump_on_hang && has_stack && ++dumps <= kMostDumps) Dump(finding.worker);
    if (is_last) break;
  }
}

void JobWatch::DumpAll() {
  const JobSnapshot job = monitor_.Snapshot(Clock::now());
  std::size_t count = 0;
  for (const WorkerSnapshot& worker : job.workers) {
    const bool runs = worker.state == WorkerState::kStarting || worker.state == WorkerState::kRunning ||
                      worker.state == WorkerState::kStuck;
    if (!runs) continue;
    if (++count > kMostDumps) {
      spdlog::info("the stacks of the other workers are not shown");
      break;
    }
    Dump(worker.index);
  }
}

void JobWatch::Dump(std::size_t index) {
  if (!dumped_.insert(index).second) return;  // only one debugger can attach to a process
  monitor_.Dumped(index, true);
  callbacks_.dump(index, [this, index](const std::string& text) {
    dumped_.erase(index);
    monitor_.Dumped(index, false);
    monitor_.TookStack(index, fmt::format("After {:.1f} s:\n{}", monitor_.SecondsAt(Clock::now()), text));
    ShowDump(index, text);
  });
}

void JobWatch::ShowDump(std::size_t index, const std::string& text) {
  Say(fmt::format("stack of {}:\n{}", monitor_.Describe(index), text));
  if (stack_files_[index].empty()) return;
  const posix::Descriptor made = posix::OpenPrivate(stack_files_[index].c_str(), O_APPEND);
  if (!(std::ofstream(stack_files_[index], std::ios::app) << text << '\n').flush()) {
    spdlog::warn("cannot write '{}'", stack_files_[index]);
  }
}

void JobWatch::OnReport(const wire::WorkerReport& report) {
  monitor_.Reported(report, Clock::now());
  if (timeline_) timeline_->Add(report);
}

void JobWatch::OnOutput(std::size_t index, Stream stream, std::string_view piece) {
  if (web_) output_.Add(index, stream, piece);
  if (stream == Stream::kOut && monitor_.Speaks(index)) monitor_.Printed(piece, Clock::now());
}

void JobWatch::OnTrackerPrint(int rank, std::string_view text) {
  const auto now = Clock::now();
  monitor_.WroteByTracker(rank, now);
  const std::size_t index = monitor_.WorkerOfRank(rank).value_or(monitor_.first_worker());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    monitor_.Printed(line, now);
    if (web_ && index < output_.processes()) output_.Add(index, Stream::kOut, line);
    text.remove_prefix(end);
  }
}

void JobWatch::ClusterKeeps(const std::vector<KeptJob>& jobs) {
  if (history_ && runs_) history_->SetKeptJobs(jobs);
}

void JobWatch::OnLog(const LogLine& line) {
  if (line.severity == Severity::kDebug) return;
  if (timeline_) timeline_->Mark(line.text, Clock::now());
  monitor_.Said(line.severity, line.text, Clock::now());
}

// --- end of the job ----------------------------------------------------------------------------------------

/// Writes the page to --log-dir and returns its path; empty if the page is not wanted or cannot be written.
std::string JobWatch::KeepPage(const JobSnapshot& job) const {
  if (options_.log_dir.empty() || !options_.dashboard) return {};
  const std::filesystem::path path = std::filesystem::absolute(options_.log_dir) / kKeptPage;
  // Commands may contain secrets, so the file must be new: an earlier job's file may belong to another user
  // or be open elsewhere.
  std::error_code there_is_none;
  std::filesystem::remove(path, there_is_none);
  try {
    WritePrivateFile(path.string(), KeptPage(job, output_, usage_), O_EXCL);
  } catch (const std::runtime_error&) {
    spdlog::warn("cannot write the page '{}'", path.string());
    return {};
  }
  return path.string();
}

/// Writes the evaluations to the history, for comparison with later jobs, if there are new ones.
void JobWatch::KeepEvaluations(const JobSnapshot& job) {
  kept_at_seconds_ = job.seconds;
  const double latest = job.evaluations.empty() ? 0 : job.evaluations.back().seconds;
  if (!history_ || std::exchange(kept_evaluation_, latest) == latest) return;
  history_->KeepEvaluations(EvaluationsJson(job, kMostKeptEvaluations));
}

void JobWatch::Finish(const JobResult& result, const std::string& story, std::optional<std::size_t> culprit,
                      std::function<void()> done) {
  runs_ = false;
  timer_.cancel();
  console_.HideStatus();
  const auto now = Clock::now();
  monitor_.Finished(result.exit_code, story, culprit, now);
  const JobSnapshot job = monitor_.Snapshot(now);
  if (options_.log_format == LogFormat::kJson) SayInJson(job);  // rounds since the last Tick
  const std::string straggler = StragglerSentence(job, false);
  if (job.seconds >= kLongJobSeconds && !straggler.empty()) spdlog::info("{}", straggler);
  RecordedEnd end;
  end.seconds = job.seconds;
  end.exit_code = result.exit_code;
  end.how = result.interrupted      ? HowEnded::kInterrupted
            : result.exit_code == 0 ? HowEnded::kSucceeded
                                    : HowEnded::kFailed;
  end.story = story;
  if (culprit) {
    const WorkerSnapshot& worker = job.workers[*culprit];
    end.failed_by = FailedBy{worker.name, worker.rank, worker.host};
  }
  end.restarts = job.job_restarts;
  for (const WorkerSnapshot& worker : job.workers) end.restarts += worker.restarts;
  end.page = KeepPage(job);
  KeepEvaluations(job);
  if (timeline_) timeline_->Finish();
  // The output is flushed first, because readers of launcher.log stop when the record contains the job's end.
  if (options_.detach) console_.Flush(std::nullopt);
  if (history_) history_->End(std::move(end));
  if (tracing_ != nullptr) {
    done = [tracing = tracing_, interrupted = result.interrupted, after = std::move(done)] {
      tracing->Finish(interrupted, after);
    };
  }
  if (!web_) return done();
  web_->Finish(job, std::move(done));
}

}  // namespace warren::submit
