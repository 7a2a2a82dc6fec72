#include "submit/monitor/merged_timeline.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace warren::submit {
namespace {

/// The process ID of the job's own events. Reports whose rank is not lower are ignored.
constexpr int kJob = 1 << 20;

std::string Quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::int64_t Nanoseconds(tracker::TimePoint time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// Formats the time as microseconds with three decimals.
std::string Microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}{}.{:03}", nanoseconds < 0 ? "-" : "", std::abs(nanoseconds / 1000),
                     std::abs(nanoseconds % 1000));
}

}  // namespace

MergedTimeline::MergedTimeline(tracker::TimePoint began) : began_ns_(Nanoseconds(began)) {
  NameProcess(kJob, "dmlc-submit");
}

void MergedTimeline::Write(const std::string& event) {
  text_ += has_events_ ? ",\n" : "\n";
  text_ += event;
  has_events_ = true;
}

void MergedTimeline::NameProcess(int process, const std::string& name) {
  if (std::exchange(processes_[process], name) == name) return;
  Write(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", process,
                    Quoted(name)));
  Write(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})",
                    process, process == kJob ? -1 : process));
}

std::int64_t MergedTimeline::LineOf(int process, const std::string& name) {
  const auto [place, is_new] =
      lines_.try_emplace({process, name}, static_cast<std::int64_t>(lines_.size()) + 1);
  if (is_new) {
    Write(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process,
                      place->second, Quoted(name)));
  }
  return place->second;
}

void MergedTimeline::Add(const wire::WorkerReport& report) {
  if (report.trace.empty() || report.rank < 0 || report.rank >= kJob) return;
  NameProcess(report.rank, fmt::format("rank {} on {}", report.rank, report.host));
  for (const wire::TracedEvent& event : report.trace) {
    std::string numbers;
    for (const auto& [name, number] : event.numbers) {
      numbers += fmt::format("{}{}:{}", numbers.empty() ? "" : ",", Quoted(name), number);
    }
    const std::int64_t line = LineOf(report.rank, event.line);
    Write(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                      Quoted(event.name), report.rank, line, Microseconds(event.begin_ns - began_ns_),
                      Microseconds(static_cast<std::int64_t>(event.length_ns)), numbers));
  }
}

void MergedTimeline::Mark(std::string_view what, tracker::TimePoint when) {
  const std::int64_t line = LineOf(kJob, "the job");
  Write(fmt::format(R"({{"ph":"i","s":"g","name":{},"pid":{},"tid":{},"ts":{}}})", Quoted(what), kJob, line,
                    Microseconds(Nanoseconds(when) - began_ns_)));
}

void MergedTimeline::Finish() {
  text_ += "\n]\n";
}

}  // namespace warren::submit
