// Merges the traces of a job's workers on one clock, in Chrome's trace event format, which Perfetto and
// chrome://tracing open. ("Trace Event Format", by the Chromium project.) Does no I/O.
//
// The text written so far can be opened at any time, since readers do not need the end of the list.
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
  /// `began`: time 0 of the timeline.
  explicit MergedTimeline(tracker::TimePoint began);

  /// Adds a worker's report; a restarted worker continues on the same lines of the timeline.
  void Add(const wire::WorkerReport& report);
  /// Marks an event of the whole job: "round 12", "worker 3 was started again".
  void Mark(std::string_view what, tracker::TimePoint when);
  /// Ends the list of events.
  void Finish();

  /// Returns the text added since the last call.
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
