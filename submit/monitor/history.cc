#include "submit/monitor/history.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "posix/files.h"
#include "posix/folder_lock.h"
#include "posix/host_name.h"
#include "posix/private_file.h"

namespace warren::submit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The version of the record's format. Must be raised if a change would make existing readers misunderstand
/// the file.
constexpr int kFormat = 1;
/// The length of the part of an ID that precedes the pid, as in "20261127T010203Z-".
constexpr std::size_t kTimeLength = 17;

std::tm Utc(std::chrono::system_clock::time_point when) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return utc;
}

Json TextOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json FailedByJson(const std::optional<FailedBy>& failed_by) {
  if (!failed_by) return nullptr;
  return {{"worker", failed_by->worker},
          {"rank", failed_by->rank ? Json(*failed_by->rank) : Json(nullptr)},
          {"host", TextOrNull(failed_by->host)}};
}

bool AllDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Writes the file under a temporary name and renames it, so that no reader sees a partial file. Only the
/// user may read it, because commands may contain secrets. Returns the file, which is locked if `locks` is
/// set and the file system supports locks. Throws std::system_error.
template <typename MakeText>
posix::Descriptor WriteWhole(const std::string& path, bool locks, const MakeText& make_text) {
  const std::string aside = path + ".new";
  posix::Descriptor file = posix::OpenPrivate(aside.c_str(), O_TRUNC);
  if (!file) throw std::system_error(errno, std::generic_category(), aside);
  const bool locked = locks && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  if (!posix::WriteAll(file.get(), make_text(locked))) {
    const int error = errno;
    ::unlink(aside.c_str());
    throw std::system_error(error, std::generic_category(), aside);
  }
  fs::rename(aside, path);
  return file;
}

/// Whether a dmlc-submit holds the lock on the record, i.e. its job is running. Unlike the lock on a folder,
/// this works on NFS, too.
bool IsHeld(const std::string& record) {
  const posix::Descriptor file(::open(record.c_str(), O_RDONLY | O_CLOEXEC));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// Removes the oldest records with their log folders, except those of running jobs.
void RemoveOutdated(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  for (const std::string& id : OutdatedRecords(names, kMostRecords)) {
    const auto logs = posix::LockFolder((folder / id).string());
    if (!logs || IsHeld(FileOfJob(folder.string(), id, kRecordEnding))) continue;
    std::error_code somebody_else_did;
    fs::remove_all(folder / id, somebody_else_did);
    for (const std::string_view ending : {kRecordEnding, kEvaluationsEnding}) {
      fs::remove(FileOfJob(folder.string(), id, ending), somebody_else_did);
    }
  }
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

std::string_view Name(HowEnded how) {
  switch (how) {
    case HowEnded::kSucceeded:
      return "succeeded";
    case HowEnded::kFailed:
      return "failed";
    case HowEnded::kInterrupted:
      break;
  }
  return "interrupted";
}

std::string RecordText(const JobRecord& record, bool locked) {
  Json json = {{"format", kFormat},
               {"name", record.name},
               {"command", record.command},
               {"directory", record.directory},
               {"host", record.host},
               {"pid", record.pid},
               {"boot", TextOrNull(record.boot)},
               {"cluster", record.cluster},
               {"workers", record.workers},
               {"began", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", Utc(record.began))},
               {"log_dir", TextOrNull(record.log_dir)}};
  if (record.detached) json["detached"] = true;
  if (!record.dashboard.empty()) json["dashboard"] = record.dashboard;
  for (const KeptJob& kept : record.kept_jobs)
    json["kept_jobs"].push_back({{"name", kept.name}, {"ask", kept.ask}, {"cancel", kept.cancel}});
  if (locked) json["locked"] = true;
  if (const auto& end = record.end) {
    json["seconds"] = std::round(end->seconds * 1000) / 1000;
    json["exit_code"] = end->exit_code;
    json["how"] = Name(end->how);
    json["story"] = end->story;
    json["failed_by"] = FailedByJson(end->failed_by);
    json["restarts"] = end->restarts;
    json["page"] = TextOrNull(end->page);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string JobId(const JobRecord& record) {
  return fmt::format("{:%Y%m%dT%H%M%SZ}-{}", Utc(record.began), record.pid);
}

std::string FileOfJob(const std::string& folder, std::string_view id, std::string_view ending) {
  return fmt::format("{}/{}{}", folder, id, ending);
}

std::optional<std::string> IdOfRecord(std::string_view name) {
  if (!name.ends_with(kRecordEnding) || name.size() <= kTimeLength + kRecordEnding.size())
    return std::nullopt;
  name.remove_suffix(kRecordEnding.size());
  const bool is_id = AllDigits(name.substr(0, 8)) && name[8] == 'T' && AllDigits(name.substr(9, 6)) &&
                     name.substr(15, 2) == "Z-" && AllDigits(name.substr(kTimeLength));
  return is_id ? std::optional<std::string>(name) : std::nullopt;
}

std::vector<std::string> OutdatedRecords(const std::vector<std::string>& names, std::size_t most) {
  std::vector<std::string> ids;
  for (const std::string& name : names) {
    if (std::optional<std::string> id = IdOfRecord(name)) ids.push_back(*std::move(id));
  }
  if (ids.size() <= most) return {};
  std::sort(ids.begin(), ids.end());
  ids.resize(ids.size() - most);
  return ids;
}

std::string HistoryFolder(const char* xdg_state_home, const char* home) {
  // The XDG specification says to ignore relative paths.
  if (xdg_state_home != nullptr && *xdg_state_home == '/')
    return fmt::format("{}/warren/jobs", xdg_state_home);
  if (home == nullptr || *home == '\0') return {};
  return fmt::format("{}/.local/state/warren/jobs", home);
}

History::History(JobRecord record) : record_(std::move(record)) {
  std::string folder = HistoryFolder(std::getenv("XDG_STATE_HOME"), std::getenv("HOME"));
  has_user_folder_ = !folder.empty();
  if (has_user_folder_) folders_.push_back(std::move(folder));
  if (!record_.log_dir.empty()) folders_.push_back(record_.log_dir + "/jobs");
  Write();
}

void History::End(RecordedEnd end) {
  record_.end = std::move(end);
  record_.dashboard.clear();
  record_.kept_jobs.clear();
  Write();
}

void History::SetKeptJobs(std::vector<KeptJob> jobs) {
  record_.kept_jobs = std::move(jobs);
  Write();
}

void History::KeepEvaluations(const std::string& json) const {
  if (!has_user_folder_) return;
  const std::string path = FileOfJob(folders_.front(), JobId(record_), kEvaluationsEnding);
  try {
    WriteWhole(path, false, [&](bool) { return json; });
  } catch (const std::exception& error) {
    spdlog::debug("cannot keep the evaluations in '{}': {}", path, error.what());
  }
}

void History::Write() {
  error_.clear();
  std::vector<posix::Descriptor> locks;
  for (const std::string& folder : folders_) {
    try {
      fs::create_directories(folder);
      locks.push_back(WriteWhole(FileOfJob(folder, JobId(record_), kRecordEnding), !record_.end,
                                 [this](bool locked) { return RecordText(record_, locked); }));
      if (!record_.end) RemoveOutdated(folder);
    } catch (const std::exception& error) {
      error_ = fmt::format("cannot record the job for `warren jobs` in '{}': {}", folder, error.what());
      spdlog::debug("{}", error_);
      if (!record_.end) continue;
      const std::string record = FileOfJob(folder, JobId(record_), kRecordEnding);
      std::error_code unknown;
      if (!fs::exists(record, unknown)) continue;
      spdlog::warn("{}; its record, which would show a killed job, {} removed", error_,
                   fs::remove(record, unknown) ? "was" : "could not be");
    }
  }
  if (record_.end) locks.clear();
  locks_ = std::move(locks);
}

JobRecord RecordOfThisProcess(std::chrono::system_clock::time_point began) {
  JobRecord record;
  std::error_code gone;
  record.directory = fs::current_path(gone).string();
  record.host = posix::HostName();
  record.pid = ::getpid();
  record.boot = BootId();
  record.began = began;
  return record;
}

}  // namespace warren::submit
