#include "submit/monitor/recorded_jobs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "posix/descriptor.h"
#include "submit/monitor/history.h"
#include "submit/monitor/json_text.h"

namespace warren::submit {
namespace {

namespace fs = std::filesystem;

/// Limit on the size of a file. Larger files are not read, because dmlc-submit does not write such files.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

/// Limit on the length of the list of jobs, whose commands can be long.
constexpr std::size_t kMostListBytes = std::size_t{8} << 20;

/// Opens the file if it is a regular file of this user and of at most kMostBytes; otherwise returns an empty
/// descriptor.
posix::Descriptor OpenOwn(const std::string& path) {
  posix::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  const bool is_ours = file && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                       status.st_uid == geteuid() && status.st_size <= off_t{kMostBytes};
  return is_ours ? std::move(file) : posix::Descriptor();
}

std::optional<std::string> TextOf(const posix::Descriptor& file) {
  std::string text;
  std::array<char, 1 << 16> piece{};
  while (text.size() <= kMostBytes) {
    const ssize_t count = read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return std::nullopt;
}

std::optional<std::string> ReadOwn(const std::string& path) {
  const posix::Descriptor file = OpenOwn(path);
  return file ? TextOf(file) : std::nullopt;
}

/// Whether a process holds the lock on the file; nullopt if this cannot be determined, e.g. because the file
/// system does not support locks.
std::optional<bool> IsHeld(const posix::Descriptor& file) {
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) return false;
  return errno == EWOULDBLOCK ? std::optional(true) : std::nullopt;
}

}  // namespace

std::string RecordedJobsJson(const std::string& folder, std::size_t most) {
  std::vector<std::string> ids;
  std::error_code unreadable;
  for (fs::directory_iterator entry(folder, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable)) {
    const std::string name = entry->path().filename().string();
    if (std::optional<std::string> id = IdOfRecord(name)) ids.push_back(*std::move(id));
  }
  std::sort(ids.begin(), ids.end(), std::greater<>());
  std::string json = "[";
  std::size_t listed = 0;
  for (const std::string& id : ids) {
    const posix::Descriptor file = OpenOwn(FileOfJob(folder, id, kRecordEnding));
    const std::optional<std::string> text = file ? TextOf(file) : std::nullopt;
    if (!text) continue;  // not readable, or removed in the meantime
    if (++listed > most || json.size() + text->size() > kMostListBytes) break;
    const std::optional<bool> is_held = IsHeld(file);
    json += json.back() == '[' ? "{\"id\":" : ",{\"id\":";
    AppendJson(json, std::string_view(id));
    json += fmt::format(",\"held\":{},\"curves\":{},\"record\":", is_held ? fmt::to_string(*is_held) : "null",
                        access(FileOfJob(folder, id, kEvaluationsEnding).c_str(), R_OK) == 0);
    AppendJson(json, std::string_view(*text));
    json += '}';
  }
  return json + ']';
}

std::optional<std::string> RecordedEvaluations(const std::string& folder, std::string_view id) {
  if (!IdOfRecord(fmt::format("{}{}", id, kRecordEnding))) return std::nullopt;
  return ReadOwn(FileOfJob(folder, id, kEvaluationsEnding));
}

std::optional<std::string> RecordedPage(const std::string& folder, std::string_view id) {
  if (!IdOfRecord(fmt::format("{}{}", id, kRecordEnding))) return std::nullopt;
  const std::optional<std::string> record = ReadOwn(FileOfJob(folder, id, kRecordEnding));
  if (!record) return std::nullopt;
  const nlohmann::json values = nlohmann::json::parse(*record, nullptr, false);
  if (!values.is_object() || !values.contains("page") || !values["page"].is_string()) return std::nullopt;
  return ReadOwn(values["page"].get<std::string>());
}

}  // namespace warren::submit
