#include "submit/trace/tracing.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "submit/output/log_line.h"
#include "wire/job_token.h"
#include "wire/variables.h"

namespace warren::submit {
namespace {

/// The time between two exports, which is the default of OpenTelemetry's SDKs.
constexpr std::chrono::seconds kBetweenExports{5};
/// Limit on the wait for the collector if a signal has stopped the job.
constexpr std::chrono::milliseconds kAfterInterrupt{500};

/// 16 random hexadecimal digits.
std::string NewSpanId() {
  const wire::Nonce nonce = wire::RandomNonce();
  return wire::ToHex(std::string_view(reinterpret_cast<const char*>(nonce.data()), nonce.size()))
      .substr(0, 16);
}

TraceContext ContextOf(const TraceSettings& settings) {
  return settings.caller ? *settings.caller : TraceContext{NewSpanId() + NewSpanId(), "", ""};
}

std::int64_t UnixNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::unique_ptr<Tracing> Tracing::FromEnvironment(boost::asio::io_context& io, const std::string& job,
                                                  Attributes attributes) {
  FoundTraceSettings found = FindTraceSettings(wire::FromEnvironment);
  for (const LogLine& message : found.messages) Write(message);
  if (!found.settings) return nullptr;
  const std::string url = found.settings->url;
  try {
    return std::make_unique<Tracing>(io, *std::move(found.settings), job, std::move(attributes));
  } catch (const std::runtime_error& error) {
    spdlog::warn("no traces are sent to {}: {}", url, error.what());
    return nullptr;
  }
}

Tracing::Tracing(boost::asio::io_context& io, TraceSettings settings, const std::string& job,
                 Attributes attributes)
    : settings_(std::move(settings)),
      trace_(ContextOf(settings_), job, std::move(attributes), std::chrono::steady_clock::now(),
             UnixNanoseconds(), NewSpanId),
      exporter_(io, settings_, trace_.context()),
      last_export_(std::chrono::steady_clock::now()) {}

tracker::Environment Tracing::EnvironmentOfProcesses() const {
  tracker::Environment environment = {{"TRACEPARENT", trace_.Traceparent()}};
  if (const std::string& state = trace_.context().state; !state.empty())
    environment.emplace_back("TRACESTATE", state);
  return environment;
}

std::string Tracing::Describe() const {
  return fmt::format("{} (trace {})", settings_.url, trace_.context().trace_id);
}

void Tracing::Tick(TimePoint now) {
  if (now - last_export_ < kBetweenExports) return;
  last_export_ = now;
  exporter_.Send(trace_.TakeEnded());
}

void Tracing::Finish(bool interrupted, std::function<void()> done) {
  exporter_.Send(trace_.TakeEnded());
  const auto limit = settings_.final_timeout;
  exporter_.Finish(interrupted ? std::min(limit, kAfterInterrupt) : limit, std::move(done));
}

}  // namespace warren::submit
