// Sends a POST request over a separate connection, with or without TLS.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "submit/trace/name_lookup.h"
#include "tls/session.h"

namespace warren::submit {

struct PostRequest {
  std::string host;       ///< name or address, IPv6 without brackets
  std::string port;       ///< a number
  std::string authority;  ///< the value of the header Host
  std::string target;     ///< path and query
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

struct PostResult {
  std::string error;        ///< why there is no answer; empty if there is an answer
  bool connected = false;   ///< whether the server has accepted the connection
  unsigned status = 0;      ///< the answer's HTTP status; 0 if there is no answer
  std::string reason = {};  ///< the text after the status in the answer
  std::string body = {};
};

class HttpPost : public std::enable_shared_from_this<HttpPost> {
 public:
  using Done = std::function<void(const PostResult& result)>;

  HttpPost(boost::asio::io_context& io, PostRequest request);

  /// Calls `done` once, after `limit` at the latest, unless Cancel is called first. Call only once. `tls`:
  /// nullopt for http.
  void Start(const std::optional<tls::Context>& tls, std::chrono::milliseconds limit, Done done);
  /// Ends the request without calling `done`.
  void Cancel();

 private:
  using Socket = boost::asio::ip::tcp::socket;

  void Connect(const NameLookup::Endpoints& endpoints);
  void Proceed();
  std::optional<std::size_t> Moved(ssize_t count);
  std::optional<std::size_t> Moved(std::size_t count, const boost::system::error_code& error);
  bool SendSome();
  bool ReceiveSome();
  void Wait();
  void ExpectAnswer();
  bool SkipInterim();
  void OnEnd();
  void Fail(const std::string& error);
  void Finish(const PostResult& result);

  PostRequest request_;
  std::string unsent_;
  std::string unparsed_;
  std::optional<tls::Context> tls_;
  NameLookup lookup_;
  Socket socket_;
  std::optional<tls::Session> session_;  ///< the TLS session, once connected; empty without TLS
  boost::asio::steady_timer timer_;
  std::optional<boost::beast::http::response_parser<boost::beast::http::string_body>> parser_;
  bool connected_ = false;
  Done done_;  ///< null before Start and once the request is over
};

}  // namespace warren::submit
