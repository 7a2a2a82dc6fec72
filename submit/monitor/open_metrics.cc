#include "submit/monitor/open_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>

#include "wire/printable.h"

namespace warren::submit {
namespace {

using Label = std::pair<std::string_view, std::string_view>;

constexpr std::array kStates = {WorkerState::kWaiting, WorkerState::kStarting,  WorkerState::kRunning,
                                WorkerState::kStuck,   WorkerState::kSucceeded, WorkerState::kFailed};

/// Appends a label's value as valid UTF-8, with the escapes that the format requires.
void AppendValue(std::string& text, std::string_view value) {
  for (const char c : wire::PrintableLines(value)) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
}

std::string LabelsOf(std::initializer_list<Label> labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    fmt::format_to(std::back_inserter(text), "{}{}=\"", text.empty() ? "" : ",", name);
    AppendValue(text, value);
    text += '"';
  }
  return text;
}

/// Builds the text of the metrics, one family after the other.
class Exposition {
 public:
  /// Begins a family of metrics. `name`: e.g. "warren_job_elapsed_seconds". `unit`: the last part of the name
  /// if it is a unit, otherwise empty.
  void Begin(std::string_view name, std::string_view type, std::string_view unit, std::string_view help) {
    name_ = name;
    is_counter_ = type == "counter";
    suffix_ = is_counter_ ? "_total" : type == "info" ? "_info" : "";
    Append("# TYPE {} {}\n", name, type);
    if (!unit.empty()) Append("# UNIT {} {}\n", name, unit);
    Append("# HELP {} {}\n", name, help);
  }

  void Add(std::string_view labels, double value) {
    Append("{}{}", name_, suffix_);
    if (!labels.empty()) text_.append("{").append(labels).append("}");
    text_ += ' ';
    if (is_counter_ && !(std::isfinite(value) && value >= 0)) value = 0;  // must be finite and not negative
    if (std::isnan(value)) {
      text_ += "NaN\n";
    } else if (std::isinf(value)) {
      text_ += value > 0 ? "+Inf\n" : "-Inf\n";
    } else {
      Append("{}\n", value);
    }
  }

  std::string Finish() { return std::move(text_) + "# EOF\n"; }

 private:
  template <typename... Values>
  void Append(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  std::string text_;
  std::string_view name_;
  std::string_view suffix_;
  bool is_counter_ = false;
};

void AddJob(Exposition& out, const JobSnapshot& job) {
  out.Begin("warren_job", "info", "", "The job.");
  out.Add(LabelsOf({{"name", job.name}, {"cluster", job.cluster}}), 1);
  out.Begin("warren_job_start_time_seconds", "gauge", "seconds", "When the job began, since the epoch.");
  out.Add("", std::chrono::duration<double>(job.began.time_since_epoch()).count());
  out.Begin("warren_job_elapsed_seconds", "gauge", "seconds", "Since the job began.");
  out.Add("", job.seconds);
  if (job.seconds_left) {
    out.Begin("warren_job_remaining_seconds", "gauge", "seconds", "Until the last round, as it looks now.");
    out.Add("", *job.seconds_left);
  }
  out.Begin("warren_job_over", "gauge", "", "1 when the job has ended.");
  out.Add("", job.is_over ? 1 : 0);
  out.Begin("warren_job_restarts", "counter", "", "How often the whole job was started again.");
  out.Add("", job.job_restarts);
  out.Begin("warren_world_size", "gauge", "", "Ranks that the job has.");
  out.Add("", job.world_size);
  if (job.generation > 0) {
    out.Begin(
        "warren_generation", "gauge", "",
        "The number of the generation of an elastic job: 1, and 1 more with each change of its workers.");
    out.Add("", job.generation);
    out.Begin("warren_between_generations_seconds", "counter", "seconds",
              "Time from the loss or the coming of a worker to the next generation, in all.");
    out.Add("", job.seconds_between_generations);
  }
  out.Begin("warren_round", "gauge", "",
            "The latest round that has ended, as the program numbers rounds; 0 until the first one.");
  out.Add("", static_cast<double>(job.round));
  if (job.rounds > 0) {
    out.Begin("warren_rounds", "gauge", "", "Rounds in all.");
    out.Add("", static_cast<double>(job.rounds));
  }
  out.Begin("warren_rows_per_second", "gauge", "",
            "Rows of data that all workers read; 0: none is read now.");
  out.Add("", job.rows_per_second);
}

/// Adds the latest evaluation.
void AddEvaluation(Exposition& out, const JobSnapshot& job) {
  if (job.evaluations.empty()) return;
  const Evaluation& latest = job.evaluations.back();
  out.Begin("warren_evaluation_round", "gauge", "", "The round that warren_evaluation is of.");
  out.Add("", static_cast<double>(latest.round));
  out.Begin("warren_evaluation", "gauge", "", "The latest value of each evaluation metric.");
  std::vector<std::string_view> seen;
  for (const auto& [name, value] : latest.metrics) {
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.emplace_back(name);
    out.Add(LabelsOf({{"metric", name}}), value);
  }
}

void AddStates(Exposition& out, const JobSnapshot& job) {
  const auto add = [&](std::string_view role, std::string_view name, std::string_view help) {
    out.Begin(name, "gauge", "", help);
    for (const WorkerState state : kStates) {
      const auto count = std::count_if(
          job.workers.begin(), job.workers.end(),
          [&](const WorkerSnapshot& worker) { return worker.role == role && worker.state == state; });
      out.Add(LabelsOf({{"state", Name(state)}}), static_cast<double>(count));
    }
  };
  add("worker", "warren_workers", "Workers by state.");
  const bool any = std::any_of(job.workers.begin(), job.workers.end(),
                               [](const WorkerSnapshot& worker) { return worker.role == "server"; });
  if (any) add("server", "warren_servers", "Parameter servers by state.");
}

/// Adds the metrics that have one value per process. `labels`: the labels of each process.
void AddProcesses(Exposition& out, const JobSnapshot& job, const std::vector<std::string>& labels) {
  const auto add = [&](std::string_view name, std::string_view type, std::string_view unit,
                       std::string_view help, auto value) {
    out.Begin(name, type, unit, help);
    for (std::size_t i = 0; i < job.workers.size(); ++i) out.Add(labels[i], value(job.workers[i]));
  };
  using W = const WorkerSnapshot&;
  out.Begin("warren_worker", "info", "", "A process of the job and the host that it runs on.");
  for (std::size_t i = 0; i < job.workers.size(); ++i) {
    const WorkerSnapshot& worker = job.workers[i];
    out.Add(labels[i] + ',' + LabelsOf({{"host", worker.host}, {"role", worker.role}}), 1);
  }
  add("warren_worker_restarts", "counter", "", "How often the process was started again.",
      [](W w) { return w.restarts; });
  add("warren_worker_cpu_seconds", "counter", "seconds", "Processor time of the process and its children.",
      [](W w) { return w.sample ? w.sample->cpu_seconds : 0; });
  add("warren_worker_cores_used", "gauge", "", "Processor cores that the process keeps busy.",
      [](W w) { return w.cores_used; });
  add("warren_worker_resident_bytes", "gauge", "bytes", "Memory of the process and its children.",
      [](W w) { return w.sample ? static_cast<double>(w.sample->resident_bytes) : 0; });
  add("warren_worker_in_collectives_seconds", "counter", "seconds", "Time in collective calls.",
      [](W w) { return w.seconds_in_collectives; });
  add("warren_worker_waited_seconds", "counter", "seconds",
      "Of the time in collective calls, that for ranks that came late.",
      [](W w) { return w.seconds_waited; });
  add("warren_worker_made_others_wait_seconds", "counter", "seconds",
      "The longest that any other rank waited for this one, summed over calls.",
      [](W w) { return w.seconds_made_wait; });
}

void AddTraffic(Exposition& out, const JobSnapshot& job, const std::vector<std::string>& labels) {
  std::vector<std::pair<const wire::ReportedTraffic*, std::string>> rows;
  for (std::size_t i = 0; i < job.workers.size(); ++i) {
    for (const wire::ReportedTraffic& one : job.workers[i].traffic) {
      rows.emplace_back(
          &one, labels[i] + ',' + LabelsOf({{"collective", one.collective}, {"algorithm", one.algorithm}}));
    }
  }
  const auto add = [&](std::string_view name, std::string_view unit, std::string_view help, auto value) {
    out.Begin(name, "counter", unit, help);
    for (const auto& [traffic, with] : rows) out.Add(with, value(*traffic));
  };
  using T = const wire::ReportedTraffic&;
  add("warren_collective_calls", "", "Collective calls.", [](T t) { return static_cast<double>(t.calls); });
  add("warren_collective_bytes", "bytes",
      "Bytes of the rank's own buffers that went through collective calls.",
      [](T t) { return static_cast<double>(t.bytes); });
  add("warren_collective_seconds", "seconds", "Time in collective calls.", [](T t) { return t.seconds; });
}

}  // namespace

std::string OpenMetrics(const JobSnapshot& job) {
  // Users know a process by its rank, but the rank is unknown at first. So the label "worker" identifies the
  // process.
  std::vector<std::string> labels;
  labels.reserve(job.workers.size());
  for (const WorkerSnapshot& worker : job.workers) {
    labels.push_back(
        LabelsOf({{"worker", worker.name}, {"rank", worker.rank ? std::to_string(*worker.rank) : ""}}));
  }
  Exposition out;
  AddJob(out, job);
  AddEvaluation(out, job);
  AddStates(out, job);
  AddProcesses(out, job, labels);
  AddTraffic(out, job, labels);
  return out.Finish();
}

}  // namespace warren::submit
