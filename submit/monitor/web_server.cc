#include "submit/monitor/web_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "submit/monitor/file_reader.h"
#include "submit/monitor/open_metrics.h"
#include "submit/monitor/page_state.h"
#include "submit/monitor/web_connection.h"
#include "submit/monitor/web_page.h"
#include "submit/monitor/web_request.h"
#include "submit/monitor/web_seats.h"
#include "tracker/host_address.h"
#include "wire/sha256.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using Piece = std::shared_ptr<const std::string>;

/// The interval between updates of a page: 1 to 5 seconds, longer for bigger jobs, whose updates cost more.
std::chrono::milliseconds IntervalFor(std::size_t processes) {
  return std::chrono::milliseconds(std::clamp<std::size_t>(2 * processes, 1000, 5000));
}

std::string_view ViewOf(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

Piece EventOf(std::string_view name, const std::string& data) {
  return std::make_shared<const std::string>(fmt::format("event: {}\ndata: {}\n\n", name, data));
}

}  // namespace

class WebServer::Impl : public std::enable_shared_from_this<WebServer::Impl> {
 public:
  Impl(asio::io_context& io, const WebServerOptions& options, WebServerCallbacks callbacks)
      : io_(io),
        timer_(io),
        token_(options.page_token),
        callbacks_(std::move(callbacks)),
        tokens_{{{token_, Rights::kControl}, {callbacks_.page.view_token, Rights::kView}}} {
    if (options.metrics) Listen(*options.metrics).serves_metrics = true;
    if (options.page) {
      // If metrics and page have the same address, they share one port, even if the address has port 0 (any
      // free one).
      const bool is_shared = options.metrics == options.page;
      (is_shared ? *listeners_.front() : Listen(*options.page)).serves_page = true;
    }
  }

  void Start() {
    for (const auto& listener : listeners_) Accept(*listener);
  }

  void Stop() {
    reader_.reset();
    timer_.cancel();
    for (const auto& listener : listeners_) listener->acceptor.close();
    for (const auto& connection : std::exchange(connections_, {})) connection->Close();
    done_ = nullptr;
  }

  std::string MetricsUrl() const {
    for (const auto& one : listeners_) {
      if (one->serves_metrics) return fmt::format("http://{}/metrics", ToText(one->address));
    }
    return {};
  }

  std::string PageUrl() const {
    for (const auto& one : listeners_) {
      if (one->serves_page) return fmt::format("http://{}/?token={}", ToText(one->address), token_);
    }
    return {};
  }

  void Finish(JobSnapshot last, std::function<void()> done) {
    is_over_ = true;
    done_ = std::move(done);
    Take(std::move(last));
    for (const auto& listener : listeners_) listener->acceptor.close();
    timer_.expires_after(kFinishLimit);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error) self->FinishNow();
    });
    // Iterates over a copy, because Drop removes connections. No more requests are answered, but answers in
    // progress are completed.
    const auto connections = connections_;
    for (const auto& connection : connections) {
      if (!connection->is_idle()) {
        connection->CloseBehindAnswer();
      } else if (connection->is_stream()) {
        Send(*connection);
      } else {
        Drop(*connection);
      }
    }
    if (connections_.empty()) asio::post(io_, [self = shared_from_this()] { self->FinishNow(); });
  }

 private:
  struct Listener {
    Listener(asio::io_context& io, WebAddress where) : acceptor(io), address(std::move(where)) {}
    tcp::acceptor acceptor;
    WebAddress address;
    bool is_loopback = false;
    bool serves_page = false;
    bool serves_metrics = false;
  };

  Listener& Listen(const WebAddress& wanted) {
    auto listener = std::make_unique<Listener>(io_, wanted);
    try {
      const auto found = tcp::resolver(io_).resolve(wanted.host, std::to_string(wanted.port),
                                                    tcp::resolver::passive | tcp::resolver::numeric_service);
      const tcp::endpoint endpoint = found.begin()->endpoint();
      listener->is_loopback = endpoint.address().is_loopback();
      listener->acceptor.open(endpoint.protocol());
      listener->acceptor.set_option(tcp::acceptor::reuse_address(true));
      listener->acceptor.bind(endpoint);
      listener->acceptor.listen();
      listener->address.port = listener->acceptor.local_endpoint().port();
      // The unspecified address cannot be used in a URL. So the URL contains an address of this machine.
      if (endpoint.address().is_unspecified()) listener->address.host = tracker::ResolveHostIp("auto");
    } catch (const boost::system::system_error& error) {
      throw std::runtime_error(
          fmt::format("cannot serve at {}: {}; choose another port, or 0 for any free one", ToText(wanted),
                      error.code().message()));
    }
    listeners_.push_back(std::move(listener));
    return *listeners_.back();
  }

  void Accept(Listener& listener) {
    listener.acceptor.async_accept(
        [self = shared_from_this(), &listener](const boost::system::error_code& error, tcp::socket socket) {
          if (error == asio::error::operation_aborted || !listener.acceptor.is_open()) return;
          if (!error && self->HasRoom()) self->Serve(listener, std::move(socket));
          // The usual cause is a lack of descriptors. Some may be closed soon.
          if (error) return self->AcceptLater(listener);
          self->Accept(listener);
        });
  }

  /// Returns whether one more connection can be accepted. At the limit, closes another connection if
  /// possible.
  bool HasRoom() {
    if (connections_.size() < kMaxConnections) return true;
    const std::vector<std::shared_ptr<WebConnection>> connections(connections_.begin(), connections_.end());
    std::vector<WebSeat> seats;
    for (const auto& connection : connections) seats.push_back(connection->seat());
    const std::optional<std::size_t> free = SeatToFree(seats);
    if (free) Drop(*connections[*free]);
    return free.has_value();
  }

  void AcceptLater(Listener& listener) {
    auto timer = std::make_shared<asio::steady_timer>(io_, std::chrono::milliseconds(100));
    timer->async_wait([self = shared_from_this(), &listener, timer](const boost::system::error_code&) {
      if (listener.acceptor.is_open()) self->Accept(listener);
    });
  }

  void Serve(const Listener& listener, tcp::socket socket) {
    WebConnection::Events events;
    events.answer = [this, &listener](const WebRequest& request, WebConnection& connection) {
      return Answer(listener, request, connection);
    };
    events.ready = [this](WebConnection& connection) { Send(connection); };
    events.closed = [this](WebConnection& connection) {
      connections_.erase(connection.shared_from_this());
      if (is_over_ && connections_.empty()) FinishNow();
    };
    const auto connection = std::make_shared<WebConnection>(std::move(socket), std::move(events));
    connections_.insert(connection);
    connection->Start();
  }

  void Drop(WebConnection& connection) {
    const auto kept = connection.shared_from_this();
    connections_.erase(kept);
    connection.Close();
  }

  // --- requests --------------------------------------------------------------------------------------------

  std::optional<WebResponse> Answer(const Listener& listener, const WebRequest& request,
                                    WebConnection& connection) {
    constexpr std::array kMethods = {http::verb::get, http::verb::head, http::verb::post};
    if (std::find(kMethods.begin(), kMethods.end(), request.method()) == kMethods.end()) {
      return Refuse(http::status::method_not_allowed, "only GET, HEAD and POST are supported");
    }
    if (listener.is_loopback && !NamesLoopback(ViewOf(request[http::field::host]))) {
      return Refuse(http::status::forbidden, "this server accepts requests to localhost only");
    }
    const bool is_post = request.method() == http::verb::post;
    WebTarget target = ParseTarget(ViewOf(request.target()));
    if (listener.serves_metrics && target.path == "/metrics" && !is_post) {
      return Respond(http::status::ok, "application/openmetrics-text; version=1.0.0; charset=utf-8",
                     OpenMetrics(*Newest()));
    }
    if (!listener.serves_page) return Refuse(http::status::not_found, "only /metrics is served here");
    const std::string_view cookie =
        CookieValue(ViewOf(request[http::field::cookie]), CookieName(listener.address.port));
    for (const auto& [token, rights] : tokens_) {
      if (token.empty()) continue;
      if (target.path == "/" && wire::Same(target.Value("token"), token)) {
        connection.SetKnowsToken();
        return GiveCookie(listener, token);
      }
      if (const auto inside = PathInside(target.path, token)) {
        target.path = *inside;
        return AnswerKnown(target, request, connection, rights, true);
      }
    }
    for (const auto& [token, rights] : tokens_) {
      if (!token.empty() && wire::Same(cookie, token))
        return AnswerKnown(target, request, connection, rights, false);
    }
    return Refuse(http::status::unauthorized,
                  "This page needs a token: open the complete address that dmlc-submit printed.");
  }

  /// Sets the page's cookie and redirects to the page. With SameSite=Strict, the page would not open from a
  /// link in a chat or a notebook: browsers omit such a cookie in the redirected request, too.
  static WebResponse GiveCookie(const Listener& listener, std::string_view token) {
    WebResponse response = Respond(http::status::see_other, kHtml, "");
    response.set(http::field::location, "./");
    response.set(http::field::set_cookie, fmt::format("{}={}; HttpOnly; SameSite=Lax; Path=/",
                                                      CookieName(listener.address.port), token));
    return response;
  }

  /// Answers a request that contains a valid token. `in_frame`: whether the token is in its path, as used in
  /// frames.
  std::optional<WebResponse> AnswerKnown(const WebTarget& target, const WebRequest& request,
                                         WebConnection& connection, Rights rights, bool in_frame) {
    connection.SetKnowsToken();
    PageAnswer answer = AnswerPage(callbacks_.page, target, request, rights);
    if (std::holds_alternative<BeginEvents>(answer)) {
      connection.BeginStream();
      return std::nullopt;
    }
    if (const auto* files = std::get_if<ReadFiles>(&answer)) {
      try {
        ReadLater(connection, files->read);
      } catch (const std::system_error& error) {  // the limit on threads
        return Refuse(http::status::service_unavailable,
                      fmt::format("cannot start a thread that reads files: {}", error.what()));
      }
      return std::nullopt;
    }
    if (in_frame) AllowFrames(std::get<WebResponse>(answer));
    return std::get<WebResponse>(std::move(answer));
  }

  /// Sends the answer once another thread has read files, if the connection is still open then.
  void ReadLater(WebConnection& connection, std::function<WebResponse()> read) {
    if (!reader_) reader_.emplace(io_);
    reader_->Read(std::move(read), [weak = connection.weak_from_this()](WebResponse response) {
      if (const auto kept = weak.lock()) kept->Respond(std::move(response));
    });
  }

  // --- the job ---------------------------------------------------------------------------------------------

  /// Returns a snapshot at most a second old; once the job is over, its last state.
  std::shared_ptr<const JobSnapshot> Newest() {
    if (!is_over_ && (!newest_ || Clock::now() - taken_ >= std::chrono::milliseconds(990))) {
      Take(callbacks_.snapshot());
    }
    return newest_;
  }

  void Take(JobSnapshot snapshot) {
    newest_ = std::make_shared<const JobSnapshot>(std::move(snapshot));
    taken_ = Clock::now();
    states_.clear();
  }

  /// The message for readers that have the state `shown` (null: none) and are to get the newest one. Most
  /// readers share the same text.
  Piece StateSince(const std::shared_ptr<const JobSnapshot>& shown) {
    Piece& piece = states_[shown];
    if (!piece) {
      const bool is_whole = !shown || shown->workers.size() != newest_->workers.size();
      piece =
          is_whole ? EventOf("state", PageState(*newest_)) : EventOf("change", PageChange(*shown, *newest_));
    }
    return piece;
  }

  /// Writes the next piece of an idle stream, if any.
  void Send(WebConnection& connection) {
    if (!is_over_ && (!connection.shown || !newest_)) Newest();
    if (connection.shown != newest_) {
      const Piece piece = StateSince(connection.shown);
      connection.shown = newest_;
      connection.Write(piece);
    } else if (is_over_ && !std::exchange(connection.was_told_the_end, true)) {
      connection.Write(EventOf("end", LogsJson(callbacks_.page.output, ParseTarget("/logs?limit=1000"))),
                       true);
    }
    if (!is_over_) Tick();
  }

  void Tick() {
    if (std::exchange(is_ticking_, true)) return;
    timer_.expires_at(taken_ + IntervalFor(newest_->workers.size()));
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      self->is_ticking_ = false;
      if (error || self->is_over_) return;
      const auto connections = self->connections_;
      const auto is_reader = [](const auto& connection) { return connection->is_stream(); };
      if (std::none_of(connections.begin(), connections.end(), is_reader)) return;
      self->Newest();
      for (const auto& connection : connections) {
        if (connection->is_stream() && connection->is_idle()) self->Send(*connection);
      }
      self->Tick();  // even if all readers are slow
    });
  }

  void FinishNow() {
    if (!done_) return;
    const auto done = std::exchange(done_, nullptr);
    Stop();
    done();
  }

  asio::io_context& io_;
  asio::steady_timer timer_;  ///< expires at the next update or, at the end, after kFinishLimit
  const std::string token_;
  const WebServerCallbacks callbacks_;
  const std::array<std::pair<std::string, Rights>, 2> tokens_;
  std::optional<FileReader> reader_;  ///< made when first needed
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::set<std::shared_ptr<WebConnection>> connections_;
  std::shared_ptr<const JobSnapshot> newest_;
  Clock::time_point taken_;
  std::map<std::shared_ptr<const JobSnapshot>, Piece> states_;  ///< messages, by the reader's state
  bool is_ticking_ = false;
  bool is_over_ = false;
  std::function<void()> done_;
};

WebServer::WebServer(asio::io_context& io, const WebServerOptions& options, WebServerCallbacks callbacks)
    : impl_(std::make_shared<Impl>(io, options, std::move(callbacks))) {
  impl_->Start();
}

WebServer::~WebServer() {
  impl_->Stop();
}

std::string WebServer::MetricsUrl() const {
  return impl_->MetricsUrl();
}

std::string WebServer::PageUrl() const {
  return impl_->PageUrl();
}

void WebServer::Finish(JobSnapshot last, std::function<void()> done) {
  impl_->Finish(std::move(last), std::move(done));
}

}  // namespace warren::submit
