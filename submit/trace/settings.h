// The destination of a job's traces and other settings, from OpenTelemetry's standard environment variables.
// Does no I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "submit/output/log_line.h"
#include "submit/trace/span.h"
#include "wire/variables.h"

namespace warren::submit {

struct TraceSettings {
  std::string url;  ///< for messages, without the query, which may contain a key
  bool is_https = false;
  std::string authorities = {};  ///< file with certificates of trusted authorities; empty: this machine's
  std::string host;              ///< the host in the URL, a name or an address, IPv6 without brackets
  std::string port;
  std::string authority;  ///< the value of the request's Host header
  std::string target;     ///< path and query
  std::vector<std::pair<std::string, std::string>> headers;
  Attributes resource;  ///< from OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
  std::chrono::milliseconds request_timeout{10'000};
  std::chrono::milliseconds final_timeout{5'000};  ///< how long the end of the job may wait for the collector
  std::optional<TraceContext> caller;              ///< from TRACEPARENT and TRACESTATE; nullopt: none
};

struct FoundTraceSettings {
  std::optional<TraceSettings> settings;  ///< nullopt: no traces
  std::vector<LogLine> messages;          ///< problems with the variables, and notes on their effect
};

FoundTraceSettings FindTraceSettings(const wire::LookUp& look_up);

}  // namespace warren::submit
