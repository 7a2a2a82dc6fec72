// The body of a request to an OpenTelemetry collector: an ExportTraceServiceRequest in the JSON encoding of
// OTLP 1.x, which differs from protobuf's JSON encoding in that IDs are hexadecimal. Does no I/O.
#pragma once

#include <span>
#include <string>

#include "submit/trace/span.h"

namespace warren::submit {

/// Returns the body of a request with these spans. `resource`: the attributes of the process that sends the
/// spans. Invalid UTF-8 is replaced.
std::string OtlpJson(const Attributes& resource, const TraceContext& context, std::span<const Span> spans);

/// Describes the spans that a collector has rejected in a successful answer: "3 spans rejected: too old";
/// empty if it has rejected none.
std::string RejectedByCollector(const std::string& answer);

}  // namespace warren::submit
