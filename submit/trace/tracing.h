// Traces a job if OpenTelemetry's environment variables ask for it (settings.h): a thin layer that has the
// clock, random ids and the collector's connection for the job's trace (job_trace.h).
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
  /// Logs what is wrong with the variables. Returns null if they ask for no traces.
  static std::unique_ptr<Tracing> FromEnvironment(boost::asio::io_context& io, const std::string& job,
                                                  Attributes attributes);

  /// Throws std::runtime_error if https is impossible here.
  Tracing(boost::asio::io_context& io, TraceSettings settings, const std::string& job, Attributes attributes);

  /// For the caller to report the job's events.
  JobTrace& trace() { return trace_; }
  /// The variables by which programs put their own spans below those of the current attempt.
  tracker::Environment EnvironmentOfProcesses() const;
  /// "http://collector:4318/v1/traces (trace 4bf92f3577b34da6a3ce929d0e0e4736)"
  std::string Describe() const;

  /// Call about once a second: sends the spans that have ended, but not each by itself.
  void Tick(TimePoint now);
  /// Sends the rest. Calls `done` afterwards, with a limit that is shorter if a signal has stopped the job.
  void Finish(bool interrupted, std::function<void()> done);

 private:
  const TraceSettings settings_;
  JobTrace trace_;
  TraceExporter exporter_;
  TimePoint last_export_;
};

}  // namespace warren::submit
