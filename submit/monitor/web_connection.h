// One connection to the job's web server: requests one after the other, or a stream of events.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "submit/monitor/snapshot.h"
#include "submit/monitor/web_seats.h"

namespace warren::submit {

using WebRequest = boost::beast::http::request<boost::beast::http::empty_body>;
using WebResponse = boost::beast::http::response<boost::beast::http::string_body>;

class WebConnection : public std::enable_shared_from_this<WebConnection> {
 public:
  /// What its owner does for it; all are called from the io_context's thread.
  struct Events {
    /// `std::nullopt`: it has become a stream of events.
    std::function<std::optional<WebResponse>(const WebRequest& request, WebConnection& connection)> answer;
    std::function<void(WebConnection& connection)> ready;   ///< a piece of the stream is written
    std::function<void(WebConnection& connection)> closed;  ///< once; unless Close() was called
  };

  WebConnection(boost::asio::ip::tcp::socket socket, Events events);

  void Start() { ReadRequest(); }
  /// Answers with the head of a stream of events, which Write() goes on with.
  void BeginStream();
  bool is_stream() const { return is_stream_; }
  /// Nothing is being written.
  bool is_idle() const { return written_ == nullptr && !response_; }
  /// Only while it is idle. `is_last`: closes behind it.
  void Write(std::shared_ptr<const std::string> piece, bool is_last = false);
  /// Closes once the answer to a request is written, instead of reading the next one.
  void CloseBehindAnswer() { closes_behind_answer_ = true; }
  void Close();

  /// Its peer has shown the page's token.
  void SetKnowsToken() { seat_.knows_token = true; }
  WebSeat seat() const { return seat_; }

  /// The state that its reader has, or gets with what is being written.
  std::shared_ptr<const JobSnapshot> shown;
  bool was_told_the_end = false;

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::empty_body>;

  void ReadRequest();
  void Answer();
  void WaitForEnd();
  void Fail();

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<WebResponse> response_;
  std::shared_ptr<const std::string> written_;
  char unwanted_[64] = {};
  Events events_;
  WebSeat seat_;
  bool is_stream_ = false;
  bool closes_behind_answer_ = false;
  bool is_open_ = true;
};

}  // namespace warren::submit
