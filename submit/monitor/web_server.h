// Serves a running job over HTTP: metrics for Prometheus, and a page for people.
//
//   GET /metrics             OpenMetrics, without authentication
//   GET /?token=TOKEN        sets a cookie in the browser and redirects it to /
//   GET /, /page.css, /page.js
//                            the page; requires the cookie or /in/TOKEN before its path, like all below
//   GET /events              server-sent events: "state" with the whole job, then a "change" (page_state.h)
//                            every 1 to 5 seconds, and "end" with the last output when the job is over
//   GET /logs?worker=INDEX&before=N&after=N&limit=N&contains=TEXT
//                            lines of output (output_history.h)
//   GET /usage               cores and memory of the processes over time (usage_history.h)
//   GET /jobs, /jobs/ID/evaluations, /jobs/ID/page
//                            the user's jobs (recorded_jobs.h)
//   POST /cancel, /stack?worker=INDEX
//                            ends the job; takes the stacks of a process
//
// Everything listed after /page.js is refused to pages of other origins, except /jobs/ID/page, which may be
// linked to. The user's jobs and POST are also refused to users who have only the token for viewing.
//
// The same thread serves the tracker, so nothing here blocks, and requests are cheap: the job's state is
// taken at most once a second, and only if requested; a slow reader of /events skips states and is sent the
// newest one next; the number of connections and the time to wait for a peer are limited.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "submit/monitor/snapshot.h"
#include "submit/monitor/web_address.h"
#include "submit/monitor/web_page.h"

namespace warren::submit {

struct WebServerOptions {
  std::optional<WebAddress> metrics;  ///< nullopt: no metrics
  std::optional<WebAddress> page;     ///< nullopt: no page; if equal to `metrics`, one port serves both
  std::string page_token;             ///< PageToken() of the job's token
};

struct WebServerCallbacks {
  /// Returns the current state of the job.
  std::function<JobSnapshot()> snapshot;
  PageSources page = {};
};

/// Single-threaded: use it from the thread that runs the io_context.
class WebServer {
 public:
  /// Starts listening immediately. Throws a std::runtime_error that names the address if that fails.
  WebServer(boost::asio::io_context& io, const WebServerOptions& options, WebServerCallbacks callbacks);
  /// Closes all listeners and connections.
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  /// The URL of the metrics; empty if they are not served. If the server listens on all addresses, the URL
  /// contains an address of this host.
  std::string MetricsUrl() const;
  /// The URL of the page, with its token; empty if it is not served.
  std::string PageUrl() const;

  /// Call when the job is over. Sends its last state to open pages, closes everything, and calls `done` once,
  /// after kFinishLimit at the latest. The io_context must keep running until then.
  void Finish(JobSnapshot last, std::function<void()> done);

  static constexpr std::size_t kMaxConnections = 64;
  static constexpr std::chrono::milliseconds kFinishLimit{150};

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace warren::submit
