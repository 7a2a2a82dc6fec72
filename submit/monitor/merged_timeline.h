// Merges the timeline events of a job's workers, whose times are on the tracker's clock. The result is in
// the Trace Event Format of the Chromium project, which Perfetto and chrome://tracing open. Does no I/O.
//
// The text is valid at any time, because readers do not require the end of the list.
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
  /// `began`: the time shown as 0.
  explicit MergedTimeline(tracker::TimePoint began);

  /// Adds the events of a worker's report. All events of a rank share its lines of the timeline, even after
  /// the worker was restarted.
  void Add(const wire::WorkerReport& report);
  /// Adds an event of the whole job, such as "worker 3 was started again".
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
