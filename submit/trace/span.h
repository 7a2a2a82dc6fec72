// The spans of a trace as values, in OpenTelemetry's terms. docs/how-to/watching.md describes the spans of a
// job.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace warren::submit {

/// The name of the span of each training round. A job may have very many of these spans.
inline constexpr const char* kRoundSpan = "round";

using AttributeValue = std::variant<std::string, std::int64_t, double, bool>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

struct SpanEvent {
  std::int64_t when_ns = 0;  ///< since the Unix epoch
  std::string name;
  Attributes attributes;
};

/// The maximum number of events in a span, which is the default of OpenTelemetry's SDKs. Further events are
/// only counted.
inline constexpr std::size_t kMostSpanEvents = 128;

struct Span {
  std::string id;      ///< 16 hexadecimal digits
  std::string parent;  ///< the ID of the parent span; empty: none
  std::string name;
  std::int64_t begin_ns = 0;  ///< since the Unix epoch
  std::int64_t end_ns = 0;
  Attributes attributes;
  std::vector<SpanEvent> events;
  std::int64_t dropped_events = 0;
  bool has_failed = false;
  std::string error = {};  ///< why it failed; empty if it did not
};

/// The trace that the spans of a job belong to (W3C Trace Context).
struct TraceContext {
  std::string trace_id;  ///< 32 hexadecimal digits
  std::string parent;    ///< the ID of the caller's span; empty: the job begins the trace
  std::string state;     ///< the caller's TRACESTATE; may be empty
};

}  // namespace warren::submit
