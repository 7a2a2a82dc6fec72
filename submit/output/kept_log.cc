#include "submit/output/kept_log.h"

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

KeptLog::KeptLog(std::string path)
    : path_(std::move(path)), file_(posix::OpenPrivate(path_.c_str(), O_APPEND | O_TRUNC)) {
  if (!file_)
    throw std::runtime_error(fmt::format("cannot write the log '{}': {}", path_, std::strerror(errno)));
}

void KeptLog::Write(std::string_view bytes) {
  if (!file_ || posix::WriteAll(file_.get(), bytes)) return;
  spdlog::warn("cannot write the log '{}' any more: {}", path_, std::strerror(errno));
  file_.reset();
}

}  // namespace warren::submit
