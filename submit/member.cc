#include "submit/member.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace warren::submit {
namespace {

/// How much of a process's output is kept.
constexpr std::size_t kTailLines = 12;
constexpr std::size_t kTailLineBytes = 400;

}  // namespace

std::string Member::Describe() const {
  const std::string rank_text = rank ? fmt::format("rank {}, ", *rank) : "";
  std::string where;
  if (!started.host.empty()) where = fmt::format("host {}", started.host);
  if (started.pid > 0) where += fmt::format("{}pid {}", where.empty() ? "" : ", ", started.pid);
  const std::string all = rank_text + where;
  return all.empty() ? name : fmt::format("{} ({})", name, all);
}

void Member::OpenLog() {
  const std::string& path = process->log_file;
  if (path.empty()) return;
  log.reset(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_TRUNC, 0666));
  if (!log)
    throw std::runtime_error(fmt::format("cannot write the log '{}': {}", path, std::strerror(errno)));
}

void Member::WriteLog(std::string_view bytes) {
  while (!bytes.empty() && log) {
    const ssize_t count = write(log.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      spdlog::warn("cannot write the log '{}' any more: {}", process->log_file, std::strerror(errno));
      log.reset();
    }
  }
}

void Member::AddToTail(std::string_view piece) {
  const bool ends = piece.back() == '\n';
  if (ends) piece.remove_suffix(1);
  if (!tail_line_open) tail.emplace_back();
  std::string& line = tail.back();
  line += piece.substr(0, kTailLineBytes - std::min(line.size(), kTailLineBytes));
  tail_line_open = !ends;
  if (tail.size() > kTailLines) tail.pop_front();
}

}  // namespace warren::submit
