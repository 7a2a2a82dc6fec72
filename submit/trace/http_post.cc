#include "submit/trace/http_post.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <exception>
#include <sstream>
#include <system_error>

namespace warren::submit {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::size_t kMostAnswerBytes = 1 << 20;
constexpr std::size_t kReadBytes = 16 << 10;

std::string TextOf(const PostRequest& post) {
  http::request<http::string_body> request{http::verb::post, post.target, 11, post.body};
  request.set(http::field::host, post.authority);
  for (const auto& [name, value] : post.headers) request.set(name, value);
  request.keep_alive(false);
  request.prepare_payload();
  std::ostringstream text;
  text << request;
  return text.str();
}

}  // namespace

HttpPost::HttpPost(asio::io_context& io, PostRequest request)
    : request_(std::move(request)), unsent_(TextOf(request_)), lookup_(io), socket_(io), timer_(io) {
  ExpectAnswer();
}

void HttpPost::ExpectAnswer() {
  parser_.emplace();
  parser_->body_limit(kMostAnswerBytes);
  parser_->eager(true);
}

void HttpPost::Start(const std::optional<tls::Context>& tls, std::chrono::milliseconds limit, Done done) {
  tls_ = tls;
  done_ = std::move(done);
  timer_.expires_after(limit);
  timer_.async_wait([self = shared_from_this(), limit](const beast::error_code& cancelled) {
    if (!cancelled)
      self->Fail(fmt::format("no answer within {} s", std::chrono::duration<double>(limit).count()));
  });
  // The callback needs no shared pointer, because the lookup belongs to this object and is canceled with it.
  lookup_.Start(request_.host, request_.port,
                [this](const std::string& error, const NameLookup::Endpoints& endpoints) {
                  if (!error.empty()) return Fail(error);
                  Connect(endpoints);
                });
}

void HttpPost::Cancel() {
  done_ = nullptr;
  lookup_.Cancel();
  timer_.cancel();
  beast::error_code ignored;
  socket_.close(ignored);
}

void HttpPost::Connect(const NameLookup::Endpoints& endpoints) {
  asio::async_connect(
      socket_, endpoints, [self = shared_from_this()](const beast::error_code& error, const auto&) {
        if (!self->done_) return;
        if (error) return self->Fail(error.message());
        self->connected_ = true;
        try {
          self->socket_.non_blocking(true);
          if (self->tls_)
            self->session_.emplace(*self->tls_, self->request_.host, self->socket_.native_handle());
        } catch (const std::exception& problem) {
          return self->Fail(problem.what());
        }
        self->Proceed();
      });
}

/// Sends and receives as far as possible without waiting.
void HttpPost::Proceed() {
  if (!done_) return;
  while (done_ && (unsent_.empty() ? ReceiveSome() : SendSome())) {
  }
  if (done_) Wait();
}

/// Converts the result of a call of session_ to the number of bytes transferred; nullopt if the call would
/// block or has failed. A failure ends the request.
std::optional<std::size_t> HttpPost::Moved(ssize_t count) {
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno != EAGAIN && errno != EWOULDBLOCK)
    Fail(errno == EPROTO ? session_->error() : std::system_category().message(errno));
  return std::nullopt;
}

/// Like the overload above, for a call of socket_. Returns 0 at the end of the stream.
std::optional<std::size_t> HttpPost::Moved(std::size_t count, const beast::error_code& error) {
  if (!error) return count;
  if (error == asio::error::eof) return 0;
  if (error != asio::error::would_block) Fail(error.message());
  return std::nullopt;
}

/// Sends some bytes. Returns false if sending would block or the request is over.
bool HttpPost::SendSome() {
  beast::error_code error;
  const auto count = session_ ? Moved(session_->Send(nullptr, 0, unsent_.data(), unsent_.size()))
                              : Moved(socket_.write_some(asio::buffer(unsent_), error), error);
  if (count) unsent_.erase(0, *count);
  return count.has_value();
}

/// Receives and parses some bytes. Returns false if receiving would block or the request is over.
bool HttpPost::ReceiveSome() {
  std::array<char, kReadBytes> bytes;
  beast::error_code error;
  const auto count = session_ ? Moved(session_->Receive(bytes.data(), bytes.size()))
                              : Moved(socket_.read_some(asio::buffer(bytes), error), error);
  if (!count) return false;
  error = {};
  if (*count == 0) {
    if (parser_->got_some()) parser_->put_eof(error);
    if (!error && !parser_->is_done()) error = http::error::end_of_stream;
  } else {
    unparsed_.append(bytes.data(), *count);
    do {
      unparsed_.erase(0, parser_->put(asio::buffer(unparsed_), error));
      if (error == http::error::need_more) error = {};
    } while (!error && SkipInterim());
  }
  if (error) {
    Fail(error.message());
  } else if (parser_->is_done()) {
    OnEnd();
  }
  return done_ != nullptr;
}

void HttpPost::Wait() {
  const bool shakes_hands = session_ && !session_->established();
  const bool to_write = shakes_hands ? session_->wants_to_write() : !unsent_.empty();
  socket_.async_wait(to_write ? Socket::wait_write : Socket::wait_read,
                     [self = shared_from_this()](const beast::error_code& error) {
                       if (!self->done_) return;
                       if (error) return self->Fail(error.message());
                       self->Proceed();
                     });
}

/// If an interim response such as 100 Continue has been received, prepares for the next response and returns
/// true.
bool HttpPost::SkipInterim() {
  if (!parser_->is_done() || parser_->get().result_int() >= 200) return false;
  ExpectAnswer();
  return true;
}

void HttpPost::OnEnd() {
  auto& answer = parser_->get();
  Finish({.error = {},
          .connected = true,
          .status = answer.result_int(),
          .reason = std::string(answer.reason()),
          .body = std::move(answer.body())});
}

void HttpPost::Fail(const std::string& error) {
  Finish({.error = error, .connected = connected_});
}

void HttpPost::Finish(const PostResult& result) {
  if (!done_) return;
  const Done done = std::move(done_);
  Cancel();
  done(result);
}

}  // namespace warren::submit
