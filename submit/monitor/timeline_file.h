// Writes a job's timeline (merged_timeline.h) to a file. If a write fails, one warning is logged, and this
// text and all later text are lost. The job continues.
#pragma once

#include <string>

#include "posix/descriptor.h"
#include "submit/monitor/merged_timeline.h"

namespace warren::submit {

class TimelineFile {
 public:
  /// Truncates the file. Throws std::runtime_error if it cannot be written.
  TimelineFile(std::string path, tracker::TimePoint began);

  void Add(const wire::WorkerReport& report);
  void Mark(const std::string& what, tracker::TimePoint when);
  void Finish();

 private:
  void Write();

  const std::string path_;
  MergedTimeline timeline_;
  posix::Descriptor file_;  ///< empty once a write has failed
};

}  // namespace warren::submit
