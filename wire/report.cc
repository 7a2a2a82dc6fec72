// The encoder of reports. Separate from the decoder (report_stream.cc), which workers do not need.
#include "wire/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "wire/printable.h"

namespace warren::wire {
namespace {

using Buffer = fmt::memory_buffer;

template <typename... Arguments>
void Add(Buffer& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Arguments>(arguments)...);
}

/// Quotes text as a JSON string of one line, after making it printable. Truncates it at a character boundary
/// to `max_bytes`, not counting JSON's escapes.
std::string Quoted(std::string_view text, std::size_t max_bytes = kMaxReportedNameBytes) {
  const auto is_inside = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
  const auto cut = [&](std::string_view whole) {
    std::size_t end = std::min(whole.size(), max_bytes);
    while (end > 0 && end < whole.size() && is_inside(whole[end])) --end;
    return whole.substr(0, end);
  };
  const std::string shown = PrintableLines(cut(text));
  std::string quoted = "\"";
  for (const char c : cut(shown)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' || c == '\t' ? ' ' : c;
  }
  return quoted + '"';
}

double Seconds(double value) {
  return std::isfinite(value) ? std::max(value, 0.0) : 0.0;
}

void AddCall(Buffer& out, const ReportedCall& call) {
  Add(out, R"(,"call":{{"number":{},"name":{},"inside":{},"seconds":{:.6f}}})", call.number,
      Quoted(call.name), call.inside, Seconds(call.seconds));
}

void AddTraffic(Buffer& out, const std::vector<ReportedTraffic>& all) {
  const char* separator = R"(,"traffic":[)";
  for (std::size_t i = 0; i < std::min(all.size(), kMaxReportedTraffic); ++i) {
    Add(out, R"({}{{"collective":{},"algorithm":{},"calls":{},"bytes":{},"seconds":{:.6f}}})", separator,
        Quoted(all[i].collective), Quoted(all[i].algorithm), all[i].calls, all[i].bytes,
        Seconds(all[i].seconds));
    separator = ",";
  }
  if (!all.empty()) Add(out, "]");
}

void AddWaits(Buffer& out, const std::vector<ReportedWait>& waits) {
  const char* separator = R"(,"waits":[)";
  for (std::size_t i = 0; i < std::min(waits.size(), kMaxReportedWaits); ++i) {
    Add(out, R"({}[{},{:.6f}])", separator, waits[i].call, Seconds(waits[i].seconds));
    separator = ",";
  }
  if (!waits.empty()) Add(out, "]");
}

void AddProgress(Buffer& out, const ReportedProgress& progress) {
  Add(out, R"(,"progress":{{"round":{},"of":{},"metrics":[)", progress.round, progress.of);
  const char* separator = "";
  for (std::size_t i = 0; i < std::min(progress.metrics.size(), kMaxReportedMetrics); ++i) {
    const auto& [name, value] = progress.metrics[i];
    Add(out, "{}[{},{}]", separator, Quoted(name),
        std::isfinite(value) ? fmt::format("{}", value) : std::string("null"));
    separator = ",";
  }
  Add(out, "]}}");
}

void AddReading(Buffer& out, const ReportedReading& reading) {
  Add(out, R"(,"reading":{{"what":{},"rows":{},"bytes":{},"total_bytes":{},"seconds":{:.6f}}})",
      Quoted(reading.what), reading.rows, reading.bytes, reading.total_bytes, Seconds(reading.seconds));
}

void AddTrace(Buffer& out, const std::vector<TracedEvent>& trace) {
  const char* separator = R"(,"trace":[)";
  for (std::size_t i = 0; i < std::min(trace.size(), kMaxTracedEvents); ++i) {
    const TracedEvent& event = trace[i];
    Add(out, R"({}[{},{},{},{},{{)", separator, Quoted(event.line), Quoted(event.name), event.begin_ns,
        event.length_ns);
    const char* comma = "";
    for (std::size_t j = 0; j < std::min(event.numbers.size(), kMaxTracedNumbers); ++j) {
      Add(out, "{}{}:{}", comma, Quoted(event.numbers[j].first), event.numbers[j].second);
      comma = ",";
    }
    Add(out, "}}]");
    separator = ",";
  }
  if (!trace.empty()) Add(out, "]");
}

}  // namespace

std::string Encode(const ClockAnswer& answer) {
  return Writer().String(fmt::format("{}", answer.now_ns)).Take();
}

ClockAnswer DecodeClockAnswer(std::string_view bytes) {
  ClockAnswer answer;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), answer.now_ns);
  if (error != std::errc{} || end != bytes.data() + bytes.size()) {
    throw ProtocolError(
        fmt::format("the tracker's clock shows \"{}\", which is not a number", Printable(bytes)));
  }
  return answer;
}

std::string Encode(const WorkerReport& report) {
  Buffer out;
  Add(out, R"({{"task":{},"rank":{},"host":{},"pid":{})", Quoted(report.task_id, kMaxReportedTaskIdBytes),
      report.rank, Quoted(report.host), report.pid);
  if (Seconds(report.every) > 0) Add(out, R"(,"every":{:.6f})", report.every);
  if (report.call) AddCall(out, *report.call);
  AddTraffic(out, report.traffic);
  AddWaits(out, report.waits);
  if (report.waits_dropped > 0) Add(out, R"(,"waits_dropped":{})", report.waits_dropped);
  if (report.progress) AddProgress(out, *report.progress);
  if (report.reading) AddReading(out, *report.reading);
  AddTrace(out, report.trace);
  if (report.asks_clock) Add(out, R"(,"asks_clock":true)");
  Add(out, "}}");
  return Writer().String({out.data(), out.size()}).Take();
}

}  // namespace warren::wire
