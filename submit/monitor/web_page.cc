#include "submit/monitor/web_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "submit/monitor/page/texts.h"
#include "submit/monitor/recorded_jobs.h"
#include "wire/whole_number.h"

namespace warren::submit {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kMaxLines = 2000;  ///< maximum number of lines in an answer to /logs
constexpr std::size_t kMostJobs = 200;   ///< maximum number of jobs in an answer to /jobs
constexpr const char* kScript = "text/javascript; charset=utf-8";
constexpr const char* kStyle = "text/css; charset=utf-8";

template <typename Number>
Number NumberOf(std::string_view text, Number otherwise) {
  Number number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The index of a process; SIZE_MAX, which no process has, if the text is not a number.
std::size_t IndexOf(std::string_view text) {
  return wire::WholeNumber<std::size_t>(text).value_or(SIZE_MAX);
}

WebResponse NotFound() {
  return Refuse(http::status::not_found, "there is no such page");
}

/// Answers a POST request, which changes something.
WebResponse Act(const PageSources& sources, const WebTarget& target) {
  if (target.path == "/cancel" && sources.cancel) {
    sources.cancel();
    return Respond(http::status::accepted, kJson, "{}");
  }
  if (target.path == "/stack" && sources.dump) {
    if (sources.dump(IndexOf(target.Value("worker")))) return Respond(http::status::accepted, kJson, "{}");
    return Refuse(http::status::conflict, "this worker is not running");
  }
  return Refuse(http::status::method_not_allowed, "only /cancel and /stack accept POST");
}

/// Answers requests about the user's jobs: /jobs, /jobs/ID/evaluations, /jobs/ID/page.
PageAnswer AnswerJobs(const PageSources& sources, std::string_view path) {
  if (path == "/jobs") {
    return ReadFiles{[folder = sources.history_folder, own = sources.own_id, token = sources.view_token] {
      return Respond(http::status::ok, kJson,
                     fmt::format("{{\"view_token\":\"{}\",\"own\":\"{}\",\"jobs\":{}}}", token, own,
                                 folder.empty() ? "[]" : RecordedJobsJson(folder, kMostJobs)));
    }};
  }
  path.remove_prefix(std::string_view("/jobs/").size());
  const std::size_t slash = path.find('/');
  const std::string id(path.substr(0, slash));
  const std::string_view what = slash == std::string_view::npos ? "" : path.substr(slash + 1);
  if (what == "evaluations") {
    return ReadFiles{[folder = sources.history_folder, id] {
      std::optional<std::string> json = RecordedEvaluations(folder, id);
      return json ? Respond(http::status::ok, kJson, *std::move(json)) : NotFound();
    }};
  }
  if (what == "page") {
    return ReadFiles{[folder = sources.history_folder, id] {
      std::optional<std::string> page = RecordedPage(folder, id);
      if (!page)
        return Refuse(http::status::not_found, "the page of this job was not kept, or has been removed");
      WebResponse response = Respond(http::status::ok, kHtml, *std::move(page));
      Isolate(response);
      return response;
    }};
  }
  return NotFound();
}

}  // namespace

std::string LogsJson(const OutputHistory* output, const WebTarget& target) {
  if (output == nullptr) return OutputHistory(0).Json({});
  OutputQuery query;
  const std::string_view worker = target.Value("worker");
  if (!worker.empty()) query.process = IndexOf(worker);
  query.before = NumberOf(target.Value("before"), query.before);
  query.after = NumberOf(target.Value("after"), query.after);
  query.limit = std::min(NumberOf(target.Value("limit"), query.limit), kMaxLines);
  query.contains = target.Value("contains");
  return output->Json(query);
}

PageAnswer AnswerPage(const PageSources& sources, const WebTarget& target, const WebRequest& request,
                      Rights rights) {
  const std::string& path = target.path;
  const bool is_post = request.method() == http::verb::post;
  if (!is_post) {
    if (path == "/") return Respond(http::status::ok, kHtml, std::string(PageHtml()));
    if (path == "/page.css") return Respond(http::status::ok, kStyle, std::string(PageStyle()));
    if (path == "/page.js") return Respond(http::status::ok, kScript, PageScript());
  }
  const auto header = [&](std::string_view name) {
    const auto value = request[{name.data(), name.size()}];
    return std::string_view(value.data(), value.size());
  };
  const bool is_jobs = path == "/jobs" || path.starts_with("/jobs/");
  // The page of another job is opened by links, which may also be on other sites.
  const bool is_link = is_jobs && path.ends_with("/page");
  if (!is_link && IsOfAnotherOrigin(header("Sec-Fetch-Site")))
    return Refuse(http::status::forbidden, "only the job's own page may request this");
  if ((is_post || is_jobs) && rights != Rights::kControl)
    return Refuse(http::status::forbidden, "this address only shows the job");
  if (is_post) {
    if (!MayChange(header("Sec-Fetch-Site"), header("Origin"), header("Host")))
      return Refuse(http::status::forbidden, "only the job's own page may request this");
    return Act(sources, target);
  }
  if (is_jobs) return AnswerJobs(sources, path);
  if (path == "/logs") return Respond(http::status::ok, kJson, LogsJson(sources.output, target));
  if (path == "/usage") {
    return Respond(http::status::ok, kJson,
                   sources.usage == nullptr ? UsageHistory(0).Json() : sources.usage->Json());
  }
  if (path == "/events" && request.method() == http::verb::get) return BeginEvents{};
  return NotFound();
}

}  // namespace warren::submit
