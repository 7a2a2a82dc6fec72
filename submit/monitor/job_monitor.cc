#include "submit/monitor/job_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "submit/monitor/evaluation_line.h"
#include "wire/whole_number.h"

namespace warren::submit {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The approximate period that WorkerSnapshot::makes_wait_now covers.
constexpr seconds kLately{30};
constexpr seconds kBetweenWaits{5};
/// A process that uses at least this many cores is busy. The timers of a sleeping process use less.
constexpr double kBusyCores = 0.01;
/// Limit on reported durations, in seconds. Longer ones are implausible and are reduced to it.
constexpr double kLongest = 1e8;
/// If a worker has not reported for this long (or for three report intervals, if they are longer), it no
/// longer counts as reading data.
constexpr seconds kReadingIsOld{20};
/// A source of round numbers is considered silent if it has given none for this long while the other source
/// has given at least two.
constexpr seconds kSourceIsSilent{10};
/// Unless another interval is set, all workers together send at most this many reports per second.
constexpr int kReportsPerSecond = 256;
/// Longer stacks are truncated.
constexpr std::size_t kMostStackBytes = std::size_t{32} << 10;

double Seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

JobMonitor::JobMonitor(JobSnapshot job, const MonitorOptions& options,
                       const std::vector<PlannedProcess>& plan, TimePoint now)
    : job_(std::move(job)),
      options_(options),
      began_(now),
      workers_(plan.size()),
      most_ranks_(static_cast<std::size_t>(job_.world_size)),
      report_interval_(
          std::max(milliseconds(1000), milliseconds(1000) * job_.world_size / kReportsPerSecond)),
      hang_watch_(options.hang_timeout, options.sample_interval),
      waiting_(most_ranks_) {
  job_.workers.resize(plan.size());
  for (std::size_t i = 0; i < plan.size(); ++i) {
    WorkerSnapshot& worker = job_.workers[i];
    worker.name = ProcessName(plan[i].role, plan[i].task_id);
    worker.role = tracker::RoleName(plan[i].role);
    worker.index = i;
  }
  const auto first = std::find_if(plan.begin(), plan.end(), [](const PlannedProcess& process) {
    return process.role == tracker::Role::kWorker;
  });
  first_worker_ = static_cast<std::size_t>(first - plan.begin());
}

double JobMonitor::SecondsAt(TimePoint time) const {
  return Seconds(time - began_);
}

// --- processes ---------------------------------------------------------------------------------------------

void JobMonitor::Started(std::size_t index, const submit::Started& where, TimePoint now) {
  Worker& worker = workers_[index];
  WorkerSnapshot& shown = job_.workers[index];
  if (worker.starts++ > 0) {
    ++shown.restarts;
    restarted_ = true;
  }
  worker = {.runs_since = now, .starts = worker.starts, .state_since = now, .busy = now, .call_since = now};
  shown.state = WorkerState::kWaiting;
  shown.trouble.clear();
  shown.stack.clear();
  shown.sample.reset();
  shown.call.reset();
  shown.progress.reset();
  shown.reading.reset();
  shown.cores_used = 0;
  Located(index, where, now);
}

void JobMonitor::Located(std::size_t index, const submit::Started& where, TimePoint now) {
  WorkerSnapshot& shown = job_.workers[index];
  if (!where.host.empty()) shown.host = where.host;
  if (where.pid > 0) shown.pid = where.pid;
  const bool is_there = !where.host.empty() || where.pid > 0;
  if (is_there && options_.trace != nullptr) options_.trace->Runs(index, workers_.size(), now);
  if (is_there && shown.state == WorkerState::kWaiting) {
    shown.state = options_.joins && shown.role == "worker" ? WorkerState::kStarting : WorkerState::kRunning;
  }
}

TracedProcess JobMonitor::Traced(std::size_t index) const {
  const WorkerSnapshot& shown = job_.workers[index];
  return {index, shown.name, shown.rank, shown.host};
}

void JobMonitor::Exited(std::size_t index, const ExitStatus& status, TimePoint now) {
  if (options_.trace != nullptr) options_.trace->Exited(Traced(index), status, now);
  workers_[index].runs_since.reset();
  WorkerSnapshot& shown = job_.workers[index];
  shown.state = status.ok() ? WorkerState::kSucceeded : WorkerState::kFailed;
  shown.cores_used = 0;
  shown.reading.reset();
  shown.trouble.clear();
}

void JobMonitor::StopBegins() {
  if (options_.trace != nullptr) options_.trace->StopBegins();
}

void JobMonitor::AttemptEnded(const std::string& why, std::optional<std::size_t> culprit, TimePoint now) {
  if (options_.trace == nullptr) return;
  options_.trace->AttemptEnded(why, culprit ? std::optional(Traced(*culprit)) : std::nullopt, now);
}

void JobMonitor::BeginsAgain(TimePoint now) {
  if (options_.trace != nullptr) options_.trace->BeginsAgain(now);
  ++job_.job_restarts;
  restarted_ = true;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i] = {};
    WorkerSnapshot& shown = job_.workers[i];
    shown.state = WorkerState::kWaiting;
    shown.rank.reset();
    shown.trouble.clear();
  }
  waiting_.BeginAgain();
  joining_since_.reset();
  joining_was_told_ = false;
  printed_ = reported_ = {};
}

// --- the tracker -------------------------------------------------------------------------------------------

void JobMonitor::Joined(int joined, int expected, TimePoint now) {
  if (options_.trace != nullptr) options_.trace->Joined(joined, expected, now);
  if (joined >= expected || joined == 0) {
    joining_since_.reset();
  } else if (!joining_since_) {
    joining_since_ = now;
    joining_was_told_ = false;
  }
}

void JobMonitor::Assigned(const std::string& task_id, int rank) {
  const auto index = WorkerOf(task_id);
  if (!index) return;
  job_.workers[*index].rank = rank;
  if (job_.workers[*index].state == WorkerState::kStarting)
    job_.workers[*index].state = WorkerState::kRunning;
}

void JobMonitor::Linked(TimePoint now) {
  if (options_.trace != nullptr) options_.trace->Linked(now);
  if (!linked_) linked_ = now;
  joining_since_.reset();
}

void JobMonitor::GenerationBegan(const tracker::GenerationBegan& generation, TimePoint now) {
  if (options_.trace != nullptr)
    options_.trace->GenerationBegan(generation.number, generation.size, generation.text, now);
  job_.generation = generation.number;
  job_.world_size = generation.size;
  waiting_.BeginAgain(static_cast<std::size_t>(generation.size));
  if (generation.number == 1) return;
  job_.seconds_between_generations += generation.seconds;
  for (WorkerSnapshot& worker : job_.workers) worker.rank.reset();  // each member is given a new one
}

bool JobMonitor::JoiningTakesLong(TimePoint now) {
  if (options_.hang_timeout == milliseconds::zero() || !joining_since_ || joining_was_told_) return false;
  joining_was_told_ = now - *joining_since_ >= options_.hang_timeout;
  return joining_was_told_;
}

/// Returns the index of the worker with this task ID, or nullopt. The tracker knows only the task IDs of
/// workers.
std::optional<std::size_t> JobMonitor::WorkerOf(const std::string& task_id) const {
  const auto task = wire::WholeNumber<std::size_t>(task_id);
  return task && *task < workers_.size() - first_worker_ ? std::optional(first_worker_ + *task)
                                                         : std::nullopt;
}

// --- reports and samples -----------------------------------------------------------------------------------

void JobMonitor::Reported(const wire::WorkerReport& report, TimePoint now) {
  const auto index = WorkerOf(report.task_id);
  // The worker may have ended in the meantime, or may not belong to this job.
  if (!index || !workers_[*index].runs_since) return;
  Worker& worker = workers_[*index];
  WorkerSnapshot& shown = job_.workers[*index];
  if (worker.reported) worker.report_gap = std::max(worker.report_gap, now - *worker.reported);
  const std::chrono::duration<double> every(std::clamp(report.every, 0.0, kLongest));
  worker.report_gap = std::max(worker.report_gap, std::chrono::duration_cast<TimePoint::duration>(every));
  worker.reported = now;
  // Usually, the rank is already known (Assigned).
  if (!shown.rank && report.rank >= 0) shown.rank = report.rank;
  if (shown.host.empty()) shown.host = report.host;
  if (shown.state == WorkerState::kStarting && (report.rank >= 0 || report.progress))
    shown.state = WorkerState::kRunning;
  if (report.call) {
    worker.call_since =
        now - std::chrono::duration_cast<std::chrono::nanoseconds>(
                  std::chrono::duration<double>(std::clamp(report.call->seconds, 0.0, kLongest)));
    shown.call = report.call;
  }
  if (!report.traffic.empty()) {
    shown.traffic = report.traffic;
    shown.seconds_in_collectives = 0;
    for (const wire::ReportedTraffic& traffic : shown.traffic)
      shown.seconds_in_collectives += traffic.seconds;
  }
  if (report.rank >= 0 && report.call) {
    const std::uint64_t inside = report.call->inside ? 1 : 0;
    const std::uint64_t last_ended = report.call->number - std::min(inside, report.call->number);
    waiting_.Add(static_cast<std::size_t>(report.rank), report.waits, last_ended);
    if (report.waits_dropped > 0) waiting_.Forget(last_ended);
  }
  if (report.progress) TakeProgress(*index, *report.progress, now);
  if (report.reading) shown.reading = report.reading;  // if absent, reading may continue
  if (shown.reading && shown.reading->what.empty()) shown.reading.reset();
  if (waits_before_.empty() || now - waits_before_.back().when >= kBetweenWaits) {
    Waits waits{now, {}};
    for (std::size_t rank = 0; rank < most_ranks_; ++rank) {
      waits.seconds.push_back(waiting_.MadeWait(rank));
    }
    waits_before_.push_back(std::move(waits));
    while (now - waits_before_.front().when > kLately) waits_before_.pop_front();
  }
}

void JobMonitor::Sampled(std::size_t index, const ProcessSample& sample, TimePoint now) {
  Worker& worker = workers_[index];
  WorkerSnapshot& shown = job_.workers[index];
  if (!worker.runs_since) return;
  ProcessSample seen = sample;
  // A debugger started by dmlc-submit stops the process briefly. This is ignored: the earlier state is kept.
  if (worker.is_dumped && seen.state == 't') seen.state = shown.sample ? shown.sample->state : '?';
  if (!shown.sample || shown.sample->state != seen.state) worker.state_since = now;
  if (shown.sample && worker.sampled && now > *worker.sampled) {
    const double used = sample.cpu_seconds - shown.sample->cpu_seconds;
    shown.cores_used = std::max(0.0, used / Seconds(now - *worker.sampled));
    if (shown.cores_used >= kBusyCores) worker.busy = now;
  }
  if (!worker.sampled_first) worker.sampled_first = worker.busy = now;
  worker.sampled_before = worker.sampled;
  worker.sampled = worker.heard = now;
  shown.sample = seen;
}

void JobMonitor::Wrote(std::size_t index, TimePoint now) {
  workers_[index].printed = now;
}

void JobMonitor::WroteByTracker(int rank, TimePoint now) {
  if (const auto index = WorkerOfRank(rank)) Wrote(*index, now);
}

void JobMonitor::Dumped(std::size_t index, bool begins) {
  workers_[index].is_dumped = begins;
}

void JobMonitor::TookStack(std::size_t index, const std::string& text) {
  job_.workers[index].stack = text.substr(0, kMostStackBytes);
}

void JobMonitor::OutputPaused(bool paused, TimePoint now) {
  if (paused == output_paused_.has_value()) return;
  if (paused) {
    output_paused_ = now;
    return;
  }
  for (Worker& worker : workers_) {
    if (!worker.sampled || *worker.sampled >= *output_paused_) continue;  // samples from this host go on
    for (auto* time : {&*worker.heard, &worker.state_since, &worker.busy}) *time += now - *output_paused_;
  }
  output_paused_.reset();
}

void JobMonitor::ReportsEnd() {
  for (Worker& worker : workers_) worker.reported.reset();
}

void JobMonitor::StoodStill(TimePoint::duration how_long) {
  for (Worker& worker : workers_) {
    for (auto* time : {&worker.heard, &worker.sampled, &worker.sampled_before, &worker.sampled_first,
                       &worker.reported, &worker.printed}) {
      if (*time) **time += how_long;
    }
    for (auto* time : {&worker.state_since, &worker.busy, &worker.call_since}) *time += how_long;
  }
  for (auto* time : {&joining_since_, &round_ended_, &output_paused_}) {
    if (*time) **time += how_long;
  }
}

// --- progress ----------------------------------------------------------------------------------------------

bool JobMonitor::Speaks(std::size_t index) const {
  const auto& rank = job_.workers[index].rank;
  return rank ? *rank == 0 : index == first_worker_;
}

void JobMonitor::Printed(std::string_view line, TimePoint now) {
  if (const auto evaluation = ParseEvaluation(line)) {
    printed_.Say(now, reported_);
    AddEvaluation(evaluation->round, evaluation->metrics, now);
    // Reports take precedence, because XGBoost counts printed rounds from 0 and starts over after a restart.
    if (!reported_.Speaks(printed_, now)) SetRound(evaluation->round, now);
  }
}

void JobMonitor::TakeProgress(std::size_t index, const wire::ReportedProgress& progress, TimePoint now) {
  WorkerSnapshot& shown = job_.workers[index];
  const bool is_new = !shown.progress || shown.progress->round != progress.round ||
                      shown.progress->metrics != progress.metrics;
  shown.progress = progress;
  if (progress.of > 0) job_.rounds = progress.of;
  // The first running worker that reports progress represents all workers; the others may be slightly behind.
  const auto speaker =
      std::find_if(job_.workers.begin(), job_.workers.end(), [this](const WorkerSnapshot& worker) {
        return worker.progress.has_value() && workers_[worker.index].runs_since.has_value();
      });
  if (!is_new || speaker->index != index) return;
  reported_.Say(now, printed_);
  // A report without metrics may lag behind the printed lines. Adding it would discard later evaluations.
  if (!progress.metrics.empty() || !printed_.Speaks(reported_, now)) {
    AddEvaluation(progress.round, progress.metrics, now);
  }
  SetRound(progress.round, now);
}

void JobMonitor::AddEvaluation(std::int64_t round, const std::vector<std::pair<std::string, double>>& metrics,
                               TimePoint now) {
  auto& evaluations = job_.evaluations;
  // Restarted workers may repeat rounds; a new training run begins with the first round.
  bool begins = std::exchange(restarted_, false);
  while (!evaluations.empty() && evaluations.back().round > round) {
    evaluations.pop_back();
    begins = true;
  }
  if (begins && !evaluations.empty() && evaluations.back().round == round) evaluations.pop_back();
  bool is_new = false;
  if (!evaluations.empty() && evaluations.back().round == round) {
    Evaluation& last = evaluations.back();
    for (const auto& metric : metrics) {
      const auto found = std::find_if(last.metrics.begin(), last.metrics.end(),
                                      [&](const auto& one) { return one.first == metric.first; });
      if (found == last.metrics.end()) {
        last.metrics.push_back(metric);
      } else {
        found->second = metric.second;
      }
    }
  } else {
    evaluations.push_back({round, SecondsAt(now), metrics, begins});
    is_new = true;
    round_ended_ = now;
  }
  if (options_.trace != nullptr)
    options_.trace->Evaluated(round, job_.rounds, evaluations.back().metrics, is_new, now);
  if (evaluations.size() > kMaxEvaluations) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < evaluations.size(); i += 2) {
      if (i > 0) evaluations[i].begins |= evaluations[i - 1].begins;
      evaluations[kept++] = std::move(evaluations[i]);
    }
    evaluations.resize(kept);
  }
}

void JobMonitor::RoundSource::Say(TimePoint now, RoundSource& other) {
  said = now;
  ++unanswered;
  other.unanswered = 0;
}

bool JobMonitor::RoundSource::Speaks(const RoundSource& other, TimePoint now) const {
  return said && (other.unanswered < 2 || now - *said < kSourceIsSilent);
}

void JobMonitor::SetRound(std::int64_t round, TimePoint now) {
  job_.round = round;
  round_seconds_ = SecondsAt(now);
}

// --- hangs -------------------------------------------------------------------------------------------------

std::string JobMonitor::Describe(std::size_t index) const {
  const WorkerSnapshot& shown = job_.workers[index];
  return DescribeProcess(shown.name, shown.rank, {shown.pid, shown.host});
}

std::optional<Signs> JobMonitor::SignsOf(std::size_t index) const {
  const Worker& worker = workers_[index];
  const WorkerSnapshot& shown = job_.workers[index];
  if (!worker.runs_since || shown.role != "worker") return std::nullopt;
  Signs signs;
  signs.name = Describe(index);
  signs.host = shown.host;
  signs.since = *worker.runs_since;
  signs.sampled = worker.heard;
  signs.sampled_first = worker.sampled_first;
  signs.state = shown.sample ? shown.sample->state : '?';
  signs.state_since = worker.state_since;
  signs.busy = worker.busy;
  signs.printed = worker.printed;
  if (worker.sampled_before) {
    signs.cores = shown.cores_used;
    signs.cores_since = *worker.sampled_before;
  }
  signs.reported = worker.reported;
  signs.report_gap = std::max(worker.report_gap, report_interval_);
  if (shown.call) {
    signs.call = shown.call->number;
    signs.call_name = shown.call->name;
    signs.inside = shown.call->inside;
    signs.call_since = worker.call_since;
  }
  return signs;
}

std::vector<Finding> JobMonitor::Look(TimePoint now) {
  if (options_.hang_timeout == milliseconds::zero() || output_paused_) return {};
  std::vector<std::optional<Signs>> signs;
  for (std::size_t i = 0; i < workers_.size(); ++i) signs.push_back(SignsOf(i));
  std::vector<Finding> findings = hang_watch_.Look(signs, round_ended_, now);
  for (const Finding& finding : findings) {
    WorkerSnapshot& shown = job_.workers[finding.worker];
    const bool hangs = finding.kind == Finding::Kind::kStopped || finding.kind == Finding::Kind::kWaits ||
                       finding.kind == Finding::Kind::kSilent;
    if (hangs && shown.state == WorkerState::kRunning) shown.state = WorkerState::kStuck;
    if (!hangs && shown.state == WorkerState::kStuck) shown.state = WorkerState::kRunning;
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) job_.workers[i].trouble = hang_watch_.troubles()[i];
  return findings;
}

// --- output for people -------------------------------------------------------------------------------------

void JobMonitor::Said(Severity severity, const std::string& text, TimePoint now) {
  job_.events.push_back({SecondsAt(now), severity, text});
  if (job_.events.size() > kMaxEvents) job_.events.erase(job_.events.begin());
}

void JobMonitor::Finished(int exit_code, const std::string& story, std::optional<std::size_t> culprit,
                          TimePoint now) {
  if (options_.trace != nullptr) {
    options_.trace->Finished(exit_code, story, culprit ? std::optional(Traced(*culprit)) : std::nullopt, now);
  }
  finished_ = now;
  job_.is_over = true;
  job_.exit_code = exit_code;
  job_.story = story;
}

void JobMonitor::AddWaitingTimes(JobSnapshot& job, TimePoint now) const {
  if (!linked_) return;
  const double all = Seconds(now - *linked_);
  const Waits* before = waits_before_.empty() ? nullptr : &waits_before_.front();
  for (WorkerSnapshot& worker : job.workers) {
    if (worker.role != "worker" || !worker.rank) continue;
    const auto rank = static_cast<std::size_t>(*worker.rank);
    if (rank >= most_ranks_) continue;
    worker.seconds_waited = waiting_.Waited(rank);
    worker.seconds_made_wait = waiting_.MadeWait(rank);
    if (all > 0) worker.makes_wait = worker.seconds_made_wait / all;
    const double lately = before == nullptr ? 0 : Seconds(now - before->when);
    if (lately >= 1) worker.makes_wait_now = (worker.seconds_made_wait - before->seconds[rank]) / lately;
  }
}

std::vector<Usage> JobMonitor::UsageNow() const {
  std::vector<Usage> usage;
  for (const WorkerSnapshot& worker : job_.workers) {
    const bool runs = workers_[worker.index].runs_since.has_value() && worker.sample.has_value();
    usage.push_back(runs ? Usage{worker.cores_used, worker.sample->resident_bytes} : Usage{});
  }
  return usage;
}

std::optional<std::size_t> JobMonitor::WorkerOfRank(int rank) const {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (job_.workers[i].rank == rank) return i;
  }
  return std::nullopt;
}

JobSnapshot JobMonitor::Snapshot(TimePoint now) const {
  const TimePoint end = finished_.value_or(now);
  JobSnapshot job = job_;
  job.seconds = SecondsAt(end);
  AddWaitingTimes(job, end);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    WorkerSnapshot& worker = job.workers[i];
    if (worker.reading && workers_[i].reported &&
        end - *workers_[i].reported > std::max<TimePoint::duration>(kReadingIsOld, 3 * report_interval_)) {
      worker.reading.reset();
    }
    if (worker.reading && worker.reading->seconds > 0) {
      job.rows_per_second += static_cast<double>(worker.reading->rows) / worker.reading->seconds;
    }
  }
  const std::optional<double> seconds_per_round = SecondsPerRound(job.evaluations, 50);
  if (job.rounds > job.round && seconds_per_round) {
    const double left = static_cast<double>(job.rounds - job.round) * *seconds_per_round;
    job.seconds_left = std::max(0.0, left - (job.seconds - round_seconds_));
  }
  return job;
}

}  // namespace warren::submit
