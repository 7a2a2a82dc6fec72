// A job's timeline (merged_timeline.h) on its way into a file. What cannot be written is lost, with a
// warning: no job fails for that.
#pragma once

#include <fstream>
#include <string>

#include "submit/monitor/merged_timeline.h"

namespace warren::submit {

class TimelineFile {
 public:
  /// Begins the file anew. Throws std::runtime_error when it cannot be written.
  TimelineFile(std::string path, tracker::TimePoint began);

  void Add(const wire::WorkerReport& report);
  void Mark(const std::string& what, tracker::TimePoint when);
  void Finish();

 private:
  void Write();

  const std::string path_;
  MergedTimeline timeline_;
  std::ofstream file_;
  bool has_failed_ = false;
};

}  // namespace warren::submit
