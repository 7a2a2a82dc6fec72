#include "submit/output/log_folder.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "posix/folder_lock.h"

namespace warren::submit {
namespace {

namespace fs = std::filesystem;

bool RemovePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string RankLog(std::string_view rank) {
  return fmt::format("rank-{}.log", rank);
}

bool IsRankLog(std::string_view name) {
  std::string_view rank = name;
  return RemovePrefix(rank, "rank-") && IsNumber(rank.substr(0, rank.find('.'))) &&
         name == RankLog(rank.substr(0, rank.find('.')));
}

/// The files that jobs keep in this folder: regular files with the name of a log (IsLogName), and the links
/// made by LinkRank.
std::vector<fs::path> LogsIn(const fs::path& folder) {
  std::vector<fs::path> logs;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    const fs::file_type type = entry->symlink_status(gone).type();
    const std::string name = entry->path().filename().string();
    const bool is_log = type == fs::file_type::regular && IsLogName(name);
    if (is_log || (type == fs::file_type::symlink && IsRankLog(name))) logs.push_back(entry->path());
  }
  return logs;
}

void MoveLogsOfJobBefore(const std::string& folder) {
  std::error_code error;
  const std::vector<fs::path> logs = LogsIn(folder);
  if (logs.empty()) return;
  const fs::path earlier = fs::path(folder) / kEarlierLogs;
  fs::create_directory(earlier, error);
  for (const fs::path& old : LogsIn(earlier)) {
    std::error_code replaced_below;
    fs::remove(old, replaced_below);
  }
  for (const fs::path& log : logs) {
    if (!error) fs::rename(log, earlier / log.filename(), error);
  }
  if (error) {
    spdlog::warn("'{}' still has logs of an earlier job, which cannot be moved to '{}': {}", folder,
                 earlier.string(), error.message());
  } else {
    spdlog::info("the logs of an earlier job in '{}' are now in '{}'", folder, earlier.string());
  }
}

}  // namespace

bool IsLogName(std::string_view name) {
  if (name == kTrackerLog || name == kLauncherLog || name == kKeptPage) return true;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || (name.substr(dot) != ".log" && name.substr(dot) != ".stack"))
    return false;
  name = name.substr(0, dot);
  if (name == "scheduler") return true;
  return (RemovePrefix(name, "worker-") || RemovePrefix(name, "server-")) && IsNumber(name);
}

bool LinkRank(const std::string& folder, int rank, std::string_view task_id) {
  if (!IsNumber(task_id)) return true;
  const std::string number = std::to_string(rank);
  const fs::path link = fs::path(folder) / RankLog(number);
  std::error_code error;
  fs::remove(link, error);
  if (task_id != number) fs::create_symlink(fmt::format("worker-{}.log", task_id), link, error);
  return !error;
}

posix::Descriptor BeginLogFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw std::runtime_error(
        fmt::format("cannot create the log directory '{}': {}", folder, error.message()));
  std::optional<posix::Descriptor> lock = posix::LockFolder(folder);
  if (!lock) {
    throw std::runtime_error(
        fmt::format("another running job has its logs in '{}'; give each job its own --log-dir", folder));
  }
  MoveLogsOfJobBefore(folder);
  return std::move(*lock);
}

}  // namespace warren::submit
