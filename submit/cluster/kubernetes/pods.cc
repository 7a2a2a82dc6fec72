#include "submit/cluster/kubernetes/pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

#include "submit/cluster/kubernetes/manifest.h"

namespace warren::submit {
namespace {

/// Reasons for waiting that persist until the manifest is changed.
constexpr std::array<std::string_view, 2> kHopeless = {"InvalidImageName", "ErrImageNeverPull"};
/// Reasons for waiting that occur at every normal start.
constexpr std::array<std::string_view, 2> kUsual = {"ContainerCreating", "PodInitializing"};

/// The string member `key`; empty if it is missing or not a string.
std::string TextAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const Json& At(const Json& object, const char* key) {
  static const Json kNothing = Json::object();
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? kNothing : *found;
}

std::string WithMessage(const std::string& reason, const std::string& message) {
  return message.empty() ? reason : fmt::format("{}: {}", reason, message);
}

ExitStatus Terminated(const Json& state) {
  const auto code = state.find("exitCode");
  ExitStatus status = FromShellCode(code != state.end() && code->is_number() ? code->get<int>() : 1);
  const std::string reason = TextAt(state, "reason");
  if (reason == "OOMKilled") {
    status.story = "was killed because it used more memory than its container's limit (OOMKilled)";
  } else if (!reason.empty() && reason != "Completed" && reason != "Error") {
    status.story = fmt::format("ended with {}", WithMessage(reason, TextAt(state, "message")));
  }
  return status;
}

/// Returns the status of the process's container, which is named after the role; nullptr if absent.
const Json* ContainerOf(const Json& status, const std::string& role) {
  for (const Json& container : At(status, "containerStatuses")) {
    if (TextAt(container, "name") == role) return &container;
  }
  return nullptr;
}

void ReadWaiting(PodReport& pod, const std::string& reason, const std::string& message) {
  if (reason.empty() || std::find(kUsual.begin(), kUsual.end(), reason) != kUsual.end()) return;
  pod.waits_for = WithMessage(reason, message);
  pod.never_begins = std::find(kHopeless.begin(), kHopeless.end(), reason) != kHopeless.end();
}

/// The number in a pod's annotation; 0 if none exists.
std::size_t NumberAt(const Json& annotations, const char* key) {
  const std::string text = TextAt(annotations, key);
  std::size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Reads the failedIndexes of a Job's status, such as "1,3-5,7".
void ReadGivenUp(const std::string& role, std::string_view indexes, std::vector<GivenUp>& found) {
  while (!indexes.empty()) {
    const std::string_view part = indexes.substr(0, indexes.find(','));
    indexes.remove_prefix(std::min(indexes.size(), part.size() + 1));
    std::size_t first = 0, last = 0;
    const char* const end = part.data() + part.size();
    const auto begin = std::from_chars(part.data(), end, first);
    last = first;
    if (begin.ptr != end) std::from_chars(begin.ptr + 1, end, last);
    for (std::size_t rank = first; begin.ec == std::errc{} && rank <= last; ++rank)
      found.push_back({role, rank});
  }
}

PodReport ReadPod(const Json& item) {
  PodReport pod;
  const Json& metadata = At(item, "metadata");
  const Json& status = At(item, "status");
  pod.name = TextAt(metadata, "name");
  pod.role = TextAt(At(metadata, "labels"), kRoleLabel);
  const Json& annotations = At(metadata, "annotations");
  pod.rank = NumberAt(annotations, kIndexAnnotation);
  pod.replaced = static_cast<int>(NumberAt(annotations, kReplacedAnnotation) +
                                  NumberAt(annotations, kDisruptedAnnotation));
  if (const Json* const container = ContainerOf(status, pod.role)) {
    const Json& state = At(*container, "state");
    if (state.contains("terminated")) {
      pod.has_begun = true;
      pod.ended = Terminated(At(state, "terminated"));
    } else if (state.contains("running")) {
      pod.has_begun = true;
    } else {
      const Json& waiting = At(state, "waiting");
      ReadWaiting(pod, TextAt(waiting, "reason"), TextAt(waiting, "message"));
    }
  }
  const std::string reason = TextAt(status, "reason");
  if (TextAt(status, "phase") == "Failed" && (!pod.ended || !reason.empty())) {
    const int code = pod.ended && !pod.ended->ok() ? pod.ended->ShellCode() : 255;
    pod.ended = {code, 0, false,
                 fmt::format("was ended by Kubernetes ({})",
                             WithMessage(reason.empty() ? "Failed" : reason, TextAt(status, "message"))),
                 true};
  }
  for (const Json& condition : At(status, "conditions")) {
    if (pod.ended && !pod.ended->ok() && pod.ended->story.empty() &&
        TextAt(condition, "type") == "DisruptionTarget" && TextAt(condition, "status") == "True") {
      pod.ended->story = fmt::format("was ended by Kubernetes ({})",
                                     WithMessage(TextAt(condition, "reason"), TextAt(condition, "message")));
      pod.ended->host_lost = true;
    }
    if (TextAt(condition, "type") == "PodScheduled" && TextAt(condition, "status") == "False") {
      ReadWaiting(pod, TextAt(condition, "reason"), TextAt(condition, "message"));
    }
  }
  return pod;
}

}  // namespace

KubeReport ReadKubeReport(std::string_view json) {
  const Json list = Json::parse(json, nullptr, false);
  if (!list.is_object() || !list.contains("items") || !list["items"].is_array()) {
    throw std::runtime_error("kubectl did not print a list of objects");
  }
  KubeReport report;
  for (const Json& item : list["items"]) {
    if (TextAt(item, "kind") == "Pod") {
      report.pods.push_back(ReadPod(item));
    } else if (TextAt(item, "kind") == "Job") {
      ++report.jobs;
      const std::string role = TextAt(At(At(item, "metadata"), "labels"), kRoleLabel);
      ReadGivenUp(role, TextAt(At(item, "status"), "failedIndexes"), report.given_up);
      for (const Json& condition : At(At(item, "status"), "conditions")) {
        const std::string type = TextAt(condition, "type");
        const std::string reason = TextAt(condition, "reason");
        // A Job that exceeds its time limit has the condition Failed only when its pods have ended, but the
        // condition FailureTarget earlier.
        const bool is_late = type == "FailureTarget" && reason == "DeadlineExceeded";
        if ((type == "Failed" || is_late) && TextAt(condition, "status") == "True") {
          report.failed_job = WithMessage(reason, TextAt(condition, "message"));
        }
      }
    }
  }
  return report;
}

}  // namespace warren::submit
