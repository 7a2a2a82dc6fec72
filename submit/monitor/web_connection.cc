#include "submit/monitor/web_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <utility>

namespace warren::submit {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr int kStreamBufferBytes = 64 << 10;
constexpr std::uint32_t kMaxHeaderBytes = 8 << 10;
/// The time limit for the arrival of a complete request. Browsers keep connections open between requests.
constexpr std::chrono::seconds kRequestLimit{30};
/// The time limit for a write. A reader that takes longer is gone or stopped.
constexpr std::chrono::seconds kWriteLimit{30};

}  // namespace

WebConnection::WebConnection(asio::ip::tcp::socket socket, Events events)
    : stream_(std::move(socket)),
      events_(std::move(events)),
      seat_{.silent_since = std::chrono::steady_clock::now()} {
  beast::error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
}

void WebConnection::ReadRequest() {
  seat_.is_waiting = true;
  parser_.emplace();
  parser_->header_limit(kMaxHeaderBytes);
  parser_->body_limit(0);
  stream_.expires_after(kRequestLimit);
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](const beast::error_code& error, std::size_t) {
                     if (error == http::error::body_limit || error == http::error::unexpected_body) {
                       return self->RefuseBody();
                     }
                     if (error) return self->Fail();
                     self->Answer();
                   });
}

void WebConnection::Answer() {
  if (!is_open_) return;
  seat_.is_waiting = false;
  seat_.silent_since = std::chrono::steady_clock::now();
  const WebRequest request = parser_->release();
  keep_alive_ = request.keep_alive();
  is_head_ = request.method() == http::verb::head;
  is_answering_ = true;
  std::optional<WebResponse> response = events_.answer(request, *this);
  if (response) Respond(*std::move(response));
}

void WebConnection::RefuseBody() {
  if (!is_open_) return;
  keep_alive_ = is_head_ = false;
  is_answering_ = true;
  Respond(Refuse(http::status::payload_too_large,
                 "requests have no body here: what they ask for is in the path"));
}

void WebConnection::Respond(WebResponse response) {
  if (!is_open_) return;
  response_ = std::move(response);
  response_->keep_alive(keep_alive_);
  response_->prepare_payload();
  if (is_head_) response_->body().clear();  // the header still contains its length
  stream_.expires_after(kWriteLimit);
  http::async_write(stream_, *response_,
                    [self = shared_from_this()](const beast::error_code& error, std::size_t) {
                      if (error || self->closes_behind_answer_) return self->Fail();
                      if (self->response_->need_eof()) return self->EndBehindAnswer();
                      self->response_.reset();
                      self->is_answering_ = false;
                      self->ReadRequest();
                    });
}

/// Shuts down only the sending side, and waits until the peer closes. Closing a connection with unread data
/// would reset it, and the answer might be lost.
void WebConnection::EndBehindAnswer() {
  beast::error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.expires_after(kWriteLimit);
  ReadToEnd();
}

void WebConnection::ReadToEnd() {
  stream_.async_read_some(asio::buffer(unwanted_),
                          [self = shared_from_this()](const beast::error_code& error, std::size_t) {
                            if (error) return self->Fail();
                            self->ReadToEnd();
                          });
}

void WebConnection::BeginStream() {
  is_stream_ = true;
  is_answering_ = false;
  // A small buffer, because buffered updates are outdated by the time a slow reader gets them.
  beast::error_code ignored;
  stream_.socket().set_option(asio::socket_base::send_buffer_size(kStreamBufferBytes), ignored);
  WaitForEnd();
  Write(
      std::make_shared<const std::string>("HTTP/1.1 200 OK\r\n"
                                          "Content-Type: text/event-stream\r\n"
                                          "Cache-Control: no-store\r\n"
                                          "X-Content-Type-Options: nosniff\r\n"
                                          "X-Accel-Buffering: no\r\n"  // turns off buffering in proxies
                                          "Connection: close\r\n\r\n"));
}

/// Reads only to notice when a reader of events closes the connection. Such readers send nothing.
void WebConnection::WaitForEnd() {
  stream_.socket().async_read_some(asio::buffer(unwanted_),
                                   [self = shared_from_this()](const beast::error_code& error, std::size_t) {
                                     if (error) return self->Fail();
                                     self->WaitForEnd();
                                   });
}

void WebConnection::Write(std::shared_ptr<const std::string> piece, bool is_last) {
  written_ = std::move(piece);
  stream_.expires_after(kWriteLimit);
  asio::async_write(stream_, asio::buffer(*written_),
                    [self = shared_from_this(), is_last](const beast::error_code& error, std::size_t) {
                      self->written_.reset();
                      if (error || is_last) return self->Fail();
                      self->stream_.expires_never();
                      if (self->is_open_) self->events_.ready(*self);
                    });
}

void WebConnection::Fail() {
  if (!is_open_) return;
  const auto self = shared_from_this();  // the owner may release its reference
  Close();
  events_.closed(*this);
}

void WebConnection::Close() {
  is_open_ = false;
  beast::error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace warren::submit
