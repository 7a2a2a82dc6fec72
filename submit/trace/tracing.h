// Traces a job if OpenTelemetry's environment variables request it (settings.h). This thin layer supplies the
// job's trace (job_trace.h) with the time and with random IDs, and sends its spans to the collector.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "submit/trace/exporter.h"
#include "submit/trace/job_trace.h"
#include "submit/trace/settings.h"
#include "tracker/environment.h"

namespace warren::submit {

class Tracing {
 public:
  /// Returns null if the environment variables request no traces, or if tracing cannot be set up. Logs
  /// problems with the variables. `job`: the job's name. `attributes`: those of the job's span.
  static std::unique_ptr<Tracing> FromEnvironment(boost::asio::io_context& io, const std::string& job,
                                                  Attributes attributes);

  /// Throws std::runtime_error if the URL is https and TLS cannot be set up.
  Tracing(boost::asio::io_context& io, TraceSettings settings, const std::string& job, Attributes attributes);

  /// The trace, to which the caller reports the job's events.
  JobTrace& trace() { return trace_; }
  /// The environment variables by which programs can make their own spans children of the current attempt's
  /// span.
  tracker::Environment EnvironmentOfProcesses() const;
  /// "http://collector:4318/v1/traces (trace 4bf92f3577b34da6a3ce929d0e0e4736)"
  std::string Describe() const;

  /// Call about once a second. Sends the spans that have ended, at most every 5 seconds.
  void Tick(TimePoint now);
  /// Sends the remaining spans, then calls `done`. `interrupted`: whether a signal has stopped the job; the
  /// time limit is then shorter.
  void Finish(bool interrupted, std::function<void()> done);

 private:
  const TraceSettings settings_;
  JobTrace trace_;
  TraceExporter exporter_;
  TimePoint last_export_;
};

}  // namespace warren::submit
