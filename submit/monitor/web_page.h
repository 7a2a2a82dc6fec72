// Answers requests for the job's page, once the rights of the sender are known. Does no I/O by itself:
// answers that need files are returned as functions.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "submit/monitor/output_history.h"
#include "submit/monitor/usage_history.h"
#include "submit/monitor/web_message.h"
#include "submit/monitor/web_request.h"

namespace warren::submit {

/// The sources of the page's content and actions, besides the job's state. All functions are called in the
/// thread of the server, and all pointers must outlive the server. Without a source, its part of the page is
/// empty or refused.
struct PageSources {
  const OutputHistory* output = nullptr;
  const UsageHistory* usage = nullptr;
  /// Ends the job, like SIGTERM to dmlc-submit.
  std::function<void()> cancel;
  /// Begins to take the stacks of a process (WorkerSnapshot::stack). Returns false if no process with this
  /// index is running.
  std::function<bool(std::size_t index)> dump;
  std::string history_folder;  ///< HistoryFolder() of the user; empty: none
  std::string own_id;          ///< this job's ID there
  std::string view_token;      ///< for the link that only shows the job
};

enum class Rights {
  kView,    ///< sees the job
  kControl  ///< may also cancel it, take stacks, and see the user's other jobs
};

/// The answer is a stream of the job's events.
struct BeginEvents {};
/// The answer is the result of this function, which reads files: call it in another thread.
struct ReadFiles {
  std::function<WebResponse()> read;
};
using PageAnswer = std::variant<WebResponse, BeginEvents, ReadFiles>;

/// The answer to a request for `target`, whose path does not contain a token.
PageAnswer AnswerPage(const PageSources& sources, const WebTarget& target, const WebRequest& request,
                      Rights rights);

/// The text of /logs for the query of `target`.
std::string LogsJson(const OutputHistory* output, const WebTarget& target);

}  // namespace warren::submit
