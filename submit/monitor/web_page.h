// Answers requests for the job's page, once it is known what the sender may do. Does no I/O by itself: an
// answer that needs files is returned as a function.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "submit/monitor/output_history.h"
#include "submit/monitor/usage_history.h"
#include "submit/monitor/web_message.h"
#include "submit/monitor/web_request.h"

namespace warren::submit {

/// The sources of the page's content and actions, in addition to the job's state. All functions are called in
/// the thread of the server, and all pointers must outlive the server. If a source is missing, its part of
/// the page is empty or refused.
struct PageSources {
  const OutputHistory* output = nullptr;
  const UsageHistory* usage = nullptr;
  /// Cancels the job, like SIGTERM to dmlc-submit.
  std::function<void()> cancel;
  /// Begins to collect the stacks of a process (WorkerSnapshot::stack). Returns false if no process with this
  /// index is running.
  std::function<bool(std::size_t index)> dump;
  std::string history_folder;  ///< HistoryFolder() of the user; may be empty
  std::string own_id;          ///< this job's ID in that folder
  std::string view_token;      ///< ViewToken() of the job's token
};

enum class Rights {
  kView,    ///< may see the job
  kControl  ///< may also cancel it, take stacks, and see the user's other jobs
};

/// The answer is a stream of server-sent events about the job's state.
struct BeginEvents {};
/// The answer is the result of this function, which reads files. It must be called in another thread.
struct ReadFiles {
  std::function<WebResponse()> read;
};
using PageAnswer = std::variant<WebResponse, BeginEvents, ReadFiles>;

/// Returns the answer to a request. `target`: the request's target, without a token in its path.
PageAnswer AnswerPage(const PageSources& sources, const WebTarget& target, const WebRequest& request,
                      Rights rights);

/// The JSON of /logs for the query of `target`. `output` may be null.
std::string LogsJson(const OutputHistory* output, const WebTarget& target);

}  // namespace warren::submit
