#include "submit/monitor/timeline_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "posix/files.h"
#include "posix/private_file.h"

namespace warren::submit {

// The file is private, because log messages in it may quote the output of programs.
TimelineFile::TimelineFile(std::string path, tracker::TimePoint began)
    : path_(std::move(path)), timeline_(began), file_(posix::OpenPrivate(path_.c_str(), O_TRUNC)) {
  if (!file_)
    throw std::runtime_error(fmt::format("--timeline: cannot write '{}': {}", path_, std::strerror(errno)));
}

void TimelineFile::Add(const wire::WorkerReport& report) {
  timeline_.Add(report);
  Write();
}

void TimelineFile::Mark(const std::string& what, tracker::TimePoint when) {
  timeline_.Mark(what, when);
  Write();
}

void TimelineFile::Finish() {
  timeline_.Finish();
  Write();
}

void TimelineFile::Write() {
  const std::string text = timeline_.TakeText();
  if (!file_ || posix::WriteAll(file_.get(), text)) return;
  spdlog::warn("cannot write the timeline '{}' any more", path_);
  file_.reset();
}

}  // namespace warren::submit
