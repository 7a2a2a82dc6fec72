// A connection to the job's web server: successive requests, or a stream of events.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "submit/monitor/snapshot.h"
#include "submit/monitor/web_message.h"
#include "submit/monitor/web_seats.h"

namespace warren::submit {

class WebConnection : public std::enable_shared_from_this<WebConnection> {
 public:
  /// Functions of the owner, called in the io_context's thread.
  struct Events {
    /// Returns the answer; nullopt if the connection has become a stream of events, or if Respond() will be
    /// called later.
    std::function<std::optional<WebResponse>(const WebRequest& request, WebConnection& connection)> answer;
    std::function<void(WebConnection& connection)> ready;   ///< a piece of the stream has been written
    std::function<void(WebConnection& connection)> closed;  ///< called at most once; not after Close()
  };

  WebConnection(boost::asio::ip::tcp::socket socket, Events events);

  void Start() { ReadRequest(); }
  /// Sends the answer to the request that was last passed to `answer`. Does nothing if the connection has
  /// been closed since.
  void Respond(WebResponse response);
  /// Sends the head of a stream of events; Write() then sends its pieces.
  void BeginStream();
  bool is_stream() const { return is_stream_; }
  /// Whether no write is in progress and no answer is due.
  bool is_idle() const { return written_ == nullptr && !is_answering_; }
  /// Writes a piece of the stream; requires is_idle(). `is_last`: closes the connection afterwards.
  void Write(std::shared_ptr<const std::string> piece, bool is_last = false);
  /// Makes the connection close after the answer that is in progress, instead of reading the next request.
  void CloseBehindAnswer() { closes_behind_answer_ = true; }
  void Close();

  /// Records that a request on this connection had the page's token.
  void SetKnowsToken() { seat_.knows_token = true; }
  WebSeat seat() const { return seat_; }

  /// The state that the reader of a stream has, or will have after the current write.
  std::shared_ptr<const JobSnapshot> shown;
  bool was_told_the_end = false;

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::empty_body>;

  void ReadRequest();
  void Answer();
  /// Refuses a request that has a body, and closes the connection.
  void RefuseBody();
  void EndBehindAnswer();
  void ReadToEnd();
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
  bool is_answering_ = false;  ///< whether the latest request has not been answered in full
  bool keep_alive_ = false;    ///< whether the client may send more requests
  bool is_head_ = false;       ///< whether the latest request is a HEAD request
  bool closes_behind_answer_ = false;
  bool is_open_ = true;
};

}  // namespace warren::submit
