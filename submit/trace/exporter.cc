#include "submit/trace/exporter.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "wire/printable.h"

namespace warren::submit {
namespace {

PostRequest RequestOf(const TraceSettings& settings, std::string body) {
  PostRequest request{settings.host,   settings.port,    settings.authority,
                      settings.target, settings.headers, std::move(body)};
  request.headers.emplace_back("User-Agent", "dmlc-submit");
  request.headers.emplace_back("Content-Type", "application/json");
  return request;
}

std::optional<tls::Context> TlsOf(const TraceSettings& settings) {
  if (!settings.is_https) return std::nullopt;
  return tls::Context::ForWebClients(settings.authorities);
}

/// Whether OTLP allows sending a request again after an answer with this status.
bool IsTransient(unsigned status) {
  return status == 429 || (status >= 502 && status <= 504);
}

/// Limit on the length of the reason in the warning about lost spans, which may come from the collector.
constexpr std::size_t kMostReasonBytes = 300;

double Seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

TraceExporter::TraceExporter(boost::asio::io_context& io, const TraceSettings& settings, TraceContext context)
    : io_(io),
      settings_(settings),
      context_(std::move(context)),
      tls_(TlsOf(settings)),
      timer_(io),
      end_timer_(io) {}

TraceExporter::~TraceExporter() {
  Stop();
}

void TraceExporter::Send(std::vector<Span> spans) {
  if (waiting_.size() + spans.size() > kMostWaitingSpans) {
    Lose(fmt::format("more than {} spans wait to be sent; rounds are left out", kMostWaitingSpans));
    // All other spans are kept. They include the ancestors of all spans: those of the job, its attempts and
    // its generations.
    const auto is_round = [](const Span& span) { return span.name == kRoundSpan; };
    std::erase_if(spans, is_round);
    if (waiting_.size() + spans.size() > kMostWaitingSpans) std::erase_if(waiting_, is_round);
  }
  std::move(spans.begin(), spans.end(), std::back_inserter(waiting_));
  if (batch_.empty()) SendNext();
}

void TraceExporter::SendNext() {
  const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kSpansPerRequest));
  batch_.assign(std::move_iterator(waiting_.begin()), std::move_iterator(waiting_.begin() + count));
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  tries_ = 0;
  if (batch_.empty()) return CheckEnd();
  BeginTry();
}

void TraceExporter::BeginTry() {
  ++tries_;
  post_ =
      std::make_shared<HttpPost>(io_, RequestOf(settings_, OtlpJson(settings_.resource, context_, batch_)));
  post_->Start(tls_, settings_.request_timeout, [this](const PostResult& result) { OnResult(result); });
}

void TraceExporter::OnResult(const PostResult& result) {
  if (!result.error.empty()) return EndTry(result.error, result.connected || !done_);
  if (result.status < 200 || result.status > 299) {
    return EndTry(fmt::format("HTTP status {} {}", result.status, result.reason), IsTransient(result.status));
  }
  EndTry(RejectedByCollector(result.body), false);
}

void TraceExporter::EndTry(const std::string& error, bool may_try_again) {
  Stop();
  if (!error.empty() && may_try_again && tries_ < kTries && !has_lost_) {
    timer_.expires_after(kBeforeNextTry);
    timer_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) BeginTry();
    });
    return;
  }
  if (!error.empty()) Lose(error);
  SendNext();
}

void TraceExporter::Stop() {
  timer_.cancel();
  if (post_) post_->Cancel();
  post_.reset();
}

void TraceExporter::Lose(const std::string& why) {
  if (std::exchange(has_lost_, true)) {
    spdlog::debug("spans of the job are lost: {}", why);
    return;
  }
  spdlog::warn("spans of the job are lost, which does not affect it otherwise: {}: {}", settings_.url,
               wire::PrintableLine(why.substr(0, kMostReasonBytes)));
}

void TraceExporter::Finish(std::chrono::milliseconds limit, std::function<void()> done) {
  done_ = std::move(done);
  end_timer_.expires_after(limit);
  end_timer_.async_wait([this, limit](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    Lose(
        fmt::format("the collector has not taken them within {} s after the end of the job", Seconds(limit)));
    Stop();
    batch_.clear();
    waiting_.clear();
    CheckEnd();
  });
  CheckEnd();
}

void TraceExporter::CheckEnd() {
  if (!done_ || !batch_.empty() || !waiting_.empty()) return;
  end_timer_.cancel();
  std::exchange(done_, nullptr)();
}

}  // namespace warren::submit
