#include "submit/monitor/timeline_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "posix/private_file.h"

namespace warren::submit {

TimelineFile::TimelineFile(std::string path, tracker::TimePoint began)
    : path_(std::move(path)), timeline_(began) {
  // The file is private, because log messages in it may quote the output of programs.
  const posix::Descriptor made = posix::OpenPrivate(path_.c_str(), O_TRUNC);
  if (made) file_.open(path_, std::ios::trunc);
  if (!made || !file_)
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
  file_.flush();
}

void TimelineFile::Write() {
  const std::string text = timeline_.TakeText();
  if (file_ << text || std::exchange(has_failed_, true)) return;
  spdlog::warn("cannot write the timeline '{}' any more", path_);
}

}  // namespace warren::submit
