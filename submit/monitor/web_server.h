// A job over HTTP while it runs: metrics for Prometheus, and a page for people.
//
//   GET /metrics             OpenMetrics, to anybody
//   GET /?token=TOKEN        gives the browser a cookie and sends it to /
//   GET /, /page.css, /page.js
//                            the page; this and the rest only with that cookie
//   GET /events              server-sent events: "state" with all of the job, then about once a second
//   "change"
//                            (page_state.h), "end" with the last output when it is over
//   GET /logs?worker=INDEX&before=N&after=N&limit=N&contains=TEXT
//                            lines of output (output_history.h); both not to pages of other origins
//
// The same thread serves the tracker, so nothing here blocks, and what is asked costs little: the job is
// looked at once a second at most, and only while somebody asks; a reader of /events that is slow gets the
// newest state next instead of a queue of old ones; requests, connections and the time of each are bounded.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "submit/monitor/output_history.h"
#include "submit/monitor/snapshot.h"
#include "submit/monitor/web_address.h"

namespace warren::submit {

struct WebServerOptions {
  std::optional<WebAddress> metrics;  ///< none: no metrics
  std::optional<WebAddress> page;     ///< none: no page; the same as `metrics`: one server for both
  std::string page_token;             ///< PageToken() of the job's token
};

struct WebServerCallbacks {
  /// The job now.
  std::function<JobSnapshot()> snapshot;
  /// What the processes have written; may be left out. It must live as long as the server.
  const OutputHistory* output = nullptr;
};

/// Single-threaded: use it from the thread that runs the io_context.
class WebServer {
 public:
  /// Listens at once. Throws std::runtime_error naming the address that cannot be had.
  WebServer(boost::asio::io_context& io, const WebServerOptions& options, WebServerCallbacks callbacks);
  /// Closes everything.
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  /// Where metrics are found; empty: nowhere. An address of this host where it listens at all of them.
  std::string MetricsUrl() const;
  /// Where the page is found, with its token; empty: nowhere.
  std::string PageUrl() const;

  /// The job is over: pages that are open get its last state, then everything is closed and `done` is called,
  /// once and after kFinishLimit at the latest. Needs the io_context to run on.
  void Finish(JobSnapshot last, std::function<void()> done);

  static constexpr std::size_t kMaxConnections = 64;
  static constexpr std::chrono::milliseconds kFinishLimit{150};

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace warren::submit
