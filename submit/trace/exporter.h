// Sends spans to an OpenTelemetry collector: OTLP over HTTP, as JSON, in batches, one request at a time.
// Failures never affect the job: a batch that cannot be sent is dropped. Only the first such failure is
// logged as a warning.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "submit/trace/http_post.h"
#include "submit/trace/otlp_json.h"
#include "submit/trace/settings.h"

namespace warren::submit {

/// The maximum number of spans in a request, which is the default of OpenTelemetry's SDKs.
inline constexpr std::size_t kSpansPerRequest = 512;
/// If more spans than this wait to be sent, the spans of rounds are dropped.
inline constexpr std::size_t kMostWaitingSpans = 16'384;
/// The maximum number of tries for a batch. A batch is sent again if the collector is overloaded or does not
/// answer, unless spans have been lost before.
inline constexpr int kTries = 2;
inline constexpr std::chrono::seconds kBeforeNextTry{1};

class TraceExporter {
 public:
  /// `settings` must outlive this object. Throws std::runtime_error if the URL is https and TLS cannot be set
  /// up.
  TraceExporter(boost::asio::io_context& io, const TraceSettings& settings, TraceContext context);
  ~TraceExporter();
  TraceExporter(const TraceExporter&) = delete;
  TraceExporter& operator=(const TraceExporter&) = delete;

  void Send(std::vector<Span> spans);
  /// Calls `done` once all spans have been sent or dropped, after `limit` at the latest, and possibly before
  /// this function returns. Send must not be called afterwards.
  void Finish(std::chrono::milliseconds limit, std::function<void()> done);

 private:
  void SendNext();
  void BeginTry();
  /// `error`: empty if the batch has been sent.
  void EndTry(const std::string& error, bool may_try_again);
  void OnResult(const PostResult& result);
  void Stop();
  void Lose(const std::string& why);
  void CheckEnd();

  boost::asio::io_context& io_;
  const TraceSettings& settings_;
  const TraceContext context_;
  const std::optional<tls::Context> tls_;
  std::deque<Span> waiting_;
  std::vector<Span> batch_;          ///< the spans that are being sent
  std::shared_ptr<HttpPost> post_;   ///< the current request, or null
  boost::asio::steady_timer timer_;  ///< for the pause before the next try
  boost::asio::steady_timer end_timer_;
  int tries_ = 0;
  bool has_lost_ = false;
  std::function<void()> done_;  ///< set by Finish; null again once called
};

}  // namespace warren::submit
