// The traces of all workers of a job as one, on one clock: Chrome's trace events, which Perfetto and
// chrome://tracing open. (The format: "Trace Event Format", by the Chromium project.) Values in, text out.
//
// What has been written so far can be opened at any time, since readers do without the end of the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "tracker/action.h"
#include "wire/report.h"

namespace warren::submit {

class MergedTimeline {
 public:
  /// `began`: what the timeline calls 0.
  explicit MergedTimeline(tracker::TimePoint began);

  /// What a worker reports; one of another attempt is shown on the same lines.
  void Add(const wire::WorkerReport& report);
  /// Something of the job as a whole that took no time: "round 12", "worker 3 was started again".
  void Mark(std::string_view what, tracker::TimePoint when);
  /// The end of the list.
  void Finish();

  /// The text that has come since the last call.
  std::string TakeText() { return std::exchange(text_, {}); }

 private:
  std::int64_t LineOf(int process, const std::string& name);
  void NameProcess(int process, const std::string& name);
  void Write(const std::string& event);

  std::int64_t began_ns_;
  std::string text_ = "[";
  bool has_events_ = false;
  std::map<int, std::string> processes_;
  std::map<std::pair<int, std::string>, std::int64_t> lines_;
};

}  // namespace warren::submit
