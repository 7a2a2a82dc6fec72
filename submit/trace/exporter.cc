#include "submit/trace/exporter.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/write.hpp>
#include <iterator>
#include <utility>

namespace warren::submit {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::size_t kMostAnswerBytes = 1 << 20;

http::request<http::string_body> RequestOf(const TraceSettings& settings, std::string body) {
  http::request<http::string_body> request{http::verb::post, settings.target, 11, std::move(body)};
  request.set(http::field::host, settings.authority);
  request.set(http::field::user_agent, "dmlc-submit");
  for (const auto& [name, value] : settings.headers) request.set(name, value);
  request.set(http::field::content_type, "application/json");
  request.keep_alive(false);
  request.prepare_payload();
  return request;
}

/// The answers after which OTLP allows another try.
bool IsTransient(http::status status) {
  return status == http::status::too_many_requests || status == http::status::bad_gateway ||
         status == http::status::service_unavailable || status == http::status::gateway_timeout;
}

double Seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

/// One try to send a batch. Its handlers may be called once more after its end, even after that of the
/// exporter.
struct TraceExporter::Exchange {
  explicit Exchange(asio::io_context& io) : stream(io) { parser.body_limit(kMostAnswerBytes); }

  beast::tcp_stream stream;
  http::request<http::string_body> request;
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  bool is_over = false;
};

TraceExporter::TraceExporter(asio::io_context& io, const TraceSettings& settings, TraceContext context)
    : io_(io), settings_(settings), context_(std::move(context)), lookup_(io), timer_(io), end_timer_(io) {}

TraceExporter::~TraceExporter() {
  CloseConnection();
}

void TraceExporter::Send(std::vector<Span> spans) {
  const std::size_t room = kMostWaitingSpans - std::min(waiting_.size(), kMostWaitingSpans);
  if (spans.size() > room) {
    Lose("the collector takes fewer spans than the job has");
    spans.resize(room);
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
  const auto exchange = exchange_ = std::make_shared<Exchange>(io_);
  exchange->request = RequestOf(settings_, OtlpJson(settings_.resource, context_, batch_));
  timer_.expires_after(settings_.request_timeout);
  timer_.async_wait([this, exchange](const beast::error_code& error) {
    if (error || exchange->is_over) return;
    EndTry(fmt::format("no answer within {} s", Seconds(settings_.request_timeout)), true);
  });
  const auto read = [this, exchange](const beast::error_code& error, std::size_t) {
    if (exchange->is_over) return;
    if (error) return EndTry(error.message(), true);
    OnAnswer(exchange->parser.get());
  };
  const auto written = [this, exchange, read](const beast::error_code& error, std::size_t) {
    if (exchange->is_over) return;
    if (error) return EndTry(error.message(), true);
    http::async_read(exchange->stream, exchange->buffer, exchange->parser, read);
  };
  const auto connected = [this, exchange, written](const beast::error_code& error, const auto&) {
    if (exchange->is_over) return;
    if (error) return EndTry(error.message(), !done_);
    http::async_write(exchange->stream, exchange->request, written);
  };
  lookup_.Start(
      settings_.host, settings_.port,
      [this, exchange, connected](const std::string& error, const NameLookup::Endpoints& endpoints) {
        if (exchange->is_over) return;
        if (!error.empty()) return EndTry(error, !done_);
        exchange->stream.async_connect(endpoints, connected);
      });
}

void TraceExporter::OnAnswer(const Answer& answer) {
  if (http::to_status_class(answer.result()) != http::status_class::successful) {
    return EndTry(fmt::format("HTTP status {} {}", answer.result_int(), std::string(answer.reason())),
                  IsTransient(answer.result()));
  }
  EndTry(RejectedByCollector(answer.body()), false);
}

void TraceExporter::EndTry(const std::string& error, bool may_try_again) {
  CloseConnection();
  if (!error.empty() && may_try_again && tries_ < kTries && !has_lost_) {
    timer_.expires_after(kBeforeNextTry);
    timer_.async_wait([this](const beast::error_code& cancelled) {
      if (!cancelled) BeginTry();
    });
    return;
  }
  if (!error.empty()) Lose(error);
  SendNext();
}

void TraceExporter::CloseConnection() {
  lookup_.Cancel();
  timer_.cancel();
  if (!exchange_) return;
  exchange_->is_over = true;
  exchange_->stream.close();
  exchange_.reset();
}

void TraceExporter::Lose(const std::string& why) {
  if (std::exchange(has_lost_, true)) {
    spdlog::debug("spans of the job are lost: {}", why);
    return;
  }
  spdlog::warn("spans of the job are lost, which does not affect it otherwise: {}: {}", settings_.url, why);
}

void TraceExporter::Finish(std::chrono::milliseconds limit, std::function<void()> done) {
  done_ = std::move(done);
  end_timer_.expires_after(limit);
  end_timer_.async_wait([this, limit](const beast::error_code& cancelled) {
    if (cancelled) return;
    Lose(
        fmt::format("the collector has not taken them within {} s after the end of the job", Seconds(limit)));
    CloseConnection();
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
