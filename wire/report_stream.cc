#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "wire/printable.h"
#include "wire/report.h"

namespace warren::wire {
namespace {

using Json = nlohmann::json;

constexpr double kMaxSeconds = 1e12;

[[noreturn]] void Refuse(const char* name, const std::string& expected) {
  throw ProtocolError(fmt::format("the report's \"{}\" is not valid; expected {}", name, expected));
}

/// Returns the member, or nullptr if it is missing or null.
const Json* Find(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json* FindObject(const Json& object, const char* name) {
  const Json* found = Find(object, name);
  if (found != nullptr && !found->is_object()) Refuse(name, "an object");
  return found;
}

/// Returns the member's list, empty if it is missing. Throws ProtocolError unless it is a list of at most
/// `max` entries.
const Json& List(const Json& object, const char* name, std::size_t max) {
  static const Json empty = Json::array();
  const Json* found = Find(object, name);
  if (found == nullptr) return empty;
  if (!found->is_array() || found->size() > max)
    Refuse(name, fmt::format("a list of at most {} entries", max));
  return *found;
}

std::string TextOf(const Json& value, const char* name, std::size_t max_bytes) {
  const auto* text = value.get_ptr<const Json::string_t*>();
  if (text == nullptr || text->size() > max_bytes)
    Refuse(name, fmt::format("a text of at most {} bytes", max_bytes));
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (std::all_of(text->begin(), text->end(), is_plain)) return *text;
  return PrintableLine(*text);
}

std::string Text(const Json& object, const char* name, std::size_t max_bytes = kMaxReportedNameBytes) {
  const Json* found = Find(object, name);
  return found == nullptr ? std::string() : TextOf(*found, name, max_bytes);
}

std::uint64_t CountOf(const Json& value, const char* name) {
  if (!value.is_number_unsigned()) Refuse(name, "a whole number, at least 0");
  return value.get<std::uint64_t>();
}

std::uint64_t Count(const Json& object, const char* name) {
  const Json* found = Find(object, name);
  return found == nullptr ? 0 : CountOf(*found, name);
}

template <typename Number>
Number Whole(const Json& object, const char* name, Number absent, Number low) {
  const Json* found = Find(object, name);
  if (found == nullptr) return absent;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<Number>::max());
  const bool fits = found->is_number_unsigned()
                        ? found->get<std::uint64_t>() <= kMost
                        : found->is_number_integer() && found->get<std::int64_t>() >= low;
  if (!fits) Refuse(name, fmt::format("a whole number from {} to {}", low, kMost));
  return found->get<Number>();
}

double SecondsOf(const Json& value, const char* name) {
  const double seconds = value.is_number() ? value.get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) Refuse(name, "a number of seconds");
  return seconds;
}

double Seconds(const Json& object, const char* name = "seconds") {
  const Json* found = Find(object, name);
  return found == nullptr ? 0 : SecondsOf(*found, name);
}

bool Truth(const Json& object, const char* name) {
  const Json* found = Find(object, name);
  if (found == nullptr) return false;
  if (!found->is_boolean()) Refuse(name, "true or false");
  return found->get<bool>();
}

void RequirePair(const Json& value, const char* name) {
  if (!value.is_array() || value.size() != 2) Refuse(name, "a list of pairs");
}

ReportedCall ReadCall(const Json& object) {
  return {Count(object, "number"), Text(object, "name"), Truth(object, "inside"), Seconds(object)};
}

std::vector<ReportedTraffic> ReadTraffic(const Json& list) {
  std::vector<ReportedTraffic> all;
  for (const Json& object : list) {
    if (!object.is_object()) Refuse("traffic", "a list of objects");
    all.push_back({Text(object, "collective"), Text(object, "algorithm"), Count(object, "calls"),
                   Count(object, "bytes"), Seconds(object)});
  }
  return all;
}

std::vector<ReportedWait> ReadWaits(const Json& list) {
  std::vector<ReportedWait> waits;
  for (const Json& pair : list) {
    RequirePair(pair, "waits");
    waits.push_back({CountOf(pair[0], "waits"), SecondsOf(pair[1], "waits")});
  }
  return waits;
}

ReportedProgress ReadProgress(const Json& object) {
  ReportedProgress progress;
  progress.round = Whole<std::int64_t>(object, "round", 0, 0);
  progress.of = Whole<std::int64_t>(object, "of", 0, 0);
  for (const Json& pair : List(object, "metrics", kMaxReportedMetrics)) {
    RequirePair(pair, "metrics");
    if (!pair[1].is_number() && !pair[1].is_null()) Refuse("metrics", "a list of names and numbers");
    progress.metrics.emplace_back(
        TextOf(pair[0], "metrics", kMaxReportedNameBytes),
        pair[1].is_null() ? std::numeric_limits<double>::quiet_NaN() : pair[1].get<double>());
  }
  return progress;
}

ReportedReading ReadReading(const Json& object) {
  return {Text(object, "what"), Count(object, "rows"), Count(object, "bytes"), Count(object, "total_bytes"),
          Seconds(object)};
}

std::int64_t TimeOf(const Json& value) {
  if (!value.is_number_integer()) Refuse("trace", "a list of events");
  return value.get<std::int64_t>();
}

std::vector<TracedEvent> ReadTrace(const Json& list) {
  std::vector<TracedEvent> trace;
  for (const Json& event : list) {
    if (!event.is_array() || event.size() != 5 || !event[4].is_object()) Refuse("trace", "a list of events");
    TracedEvent read{TextOf(event[0], "trace", kMaxReportedNameBytes),
                     TextOf(event[1], "trace", kMaxReportedNameBytes),
                     TimeOf(event[2]),
                     CountOf(event[3], "trace"),
                     {}};
    if (event[4].size() > kMaxTracedNumbers) Refuse("trace", "a list of events");
    for (const auto& [name, number] : event[4].items())
      read.numbers.emplace_back(name, CountOf(number, "trace"));
    trace.push_back(std::move(read));
  }
  return trace;
}

WorkerReport ReadReport(const std::string& text) {
  const Json object = Json::parse(text);
  if (!object.is_object()) throw ProtocolError("the report is not a JSON object");
  WorkerReport report;
  report.task_id = Text(object, "task", kMaxReportedTaskIdBytes);
  report.rank = Whole<int>(object, "rank", -1, -1);
  report.host = Text(object, "host");
  report.pid = Whole<int>(object, "pid", 0, 0);
  report.every = Seconds(object, "every");
  if (const Json* call = FindObject(object, "call")) report.call = ReadCall(*call);
  report.traffic = ReadTraffic(List(object, "traffic", kMaxReportedTraffic));
  report.waits = ReadWaits(List(object, "waits", kMaxReportedWaits));
  report.waits_dropped = Count(object, "waits_dropped");
  if (const Json* progress = FindObject(object, "progress")) report.progress = ReadProgress(*progress);
  if (const Json* reading = FindObject(object, "reading")) report.reading = ReadReading(*reading);
  report.trace = ReadTrace(List(object, "trace", kMaxTracedEvents));
  report.asks_clock = Truth(object, "asks_clock");
  return report;
}

}  // namespace

std::optional<WorkerReport> ReportStream::Next() {
  const auto text = reader_.String("report", kMaxReportBytes);
  if (!text) return std::nullopt;
  try {
    return ReadReport(*text);
  } catch (const Json::exception&) {
    throw ProtocolError(fmt::format("the report is not a JSON object: \"{}\"", Printable(*text)));
  }
}

}  // namespace warren::wire
