// The body of a request to an OpenTelemetry collector: an ExportTraceServiceRequest in the JSON encoding of
// OTLP 1.x, which differs from that of protobuf in that ids are hexadecimal. Does no I/O.
#pragma once

#include <span>
#include <string>

#include "submit/trace/span.h"

namespace warren::submit {

/// `resource`: the attributes of the process that sends the spans. Invalid UTF-8 is replaced.
std::string OtlpJson(const Attributes& resource, const TraceContext& context, std::span<const Span> spans);

/// What a collector that answered with success has rejected: "3 spans rejected: too old"; empty if nothing.
std::string RejectedByCollector(const std::string& answer);

}  // namespace warren::submit
