// The records of jobs for `warren jobs`: one JSON file per job in the user's history folder (HistoryFolder)
// and, with --log-dir DIR, in DIR/jobs. The whole file is written when the job begins, and again when its
// kept_jobs change and when it ends. If a file records no end, the job is running if its dmlc-submit holds a
// lock on the file; otherwise that dmlc-submit was killed. On file systems without locks, it is unknown which
// of the two is the case. docs/how-to/warren.md lists the fields.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posix/descriptor.h"
#include "submit/process/kept_job.h"

namespace warren::submit {

/// The maximum number of records in a folder. The oldest are deleted, with the log folders next to them.
inline constexpr std::size_t kMostRecords = 1000;

enum class HowEnded { kSucceeded, kFailed, kInterrupted };
/// "succeeded", "failed", "interrupted".
std::string_view Name(HowEnded how);

/// The process that made the job fail.
struct FailedBy {
  std::string worker;  ///< "worker 3"
  std::optional<int> rank;
  std::string host;
};

struct RecordedEnd {
  double seconds = 0;  ///< since the job began
  int exit_code = 0;
  HowEnded how = HowEnded::kSucceeded;
  std::string story;  ///< why the job failed or was interrupted; empty if it succeeded
  std::optional<FailedBy> failed_by;
  int restarts = 0;  ///< restarts of single processes plus restarts of the whole job
  std::string page;  ///< the file of the job's page; empty: none
};

struct JobRecord {
  std::string name;                  ///< --jobname, or the name of the command
  std::vector<std::string> command;  ///< the job's command, without dmlc-submit and its options
  std::string directory;             ///< dmlc-submit's working directory
  std::string host;                  ///< the host that dmlc-submit runs on
  std::int64_t pid = 0;
  /// The boot_id of the running kernel, which is the same in all containers on a machine; empty: unknown.
  std::string boot;
  std::string cluster;
  int workers = 0;
  std::chrono::system_clock::time_point began;
  std::string log_dir;  ///< absolute path; empty: none
  /// The jobs and objects in the cluster that would remain if dmlc-submit were killed; empty after the end.
  std::vector<KeptJob> kept_jobs;
  std::string dashboard;  ///< address of the page while the job runs; empty: none
  bool detached = false;  ///< whether --detach was given: all output is in kLauncherLog in log_dir
  std::optional<RecordedEnd> end;
};

/// The text of the file. Invalid UTF-8 in the record is replaced. `locked`: whether the writer holds a lock
/// on the file (flock) while the job runs, so that readers can recognize a running job.
std::string RecordText(const JobRecord& record, bool locked = false);
/// The job's ID, e.g. "20261127T010203Z-4711": the start time and the pid. Its record is the file ID.json; a
/// detached job without --log-dir has its logs in the folder ID next to that file.
std::string JobId(const JobRecord& record);
/// The suffixes of the names of a job's files in the history folder; each name begins with the job's ID.
inline constexpr std::string_view kRecordEnding = ".json";
inline constexpr std::string_view kEvaluationsEnding = ".evaluations.json";
/// The path of a job's file with this suffix in a folder of records.
std::string FileOfJob(const std::string& folder, std::string_view id, std::string_view ending);
/// The ID of the job whose record has this file name; nullopt if it is not the name of a record.
std::optional<std::string> IdOfRecord(std::string_view name);
/// The IDs of the oldest records, which must be deleted so that at most `most` remain. `names`: the names of
/// all files in the folder; names that are not those of records are ignored.
std::vector<std::string> OutdatedRecords(const std::vector<std::string>& names, std::size_t most);

/// The folder of the user's job records: $XDG_STATE_HOME/warren/jobs if that path is absolute, else
/// $HOME/.local/state/warren/jobs; empty if neither variable can be used.
std::string HistoryFolder(const char* xdg_state_home, const char* home);

/// Writes the record of one job. Errors are logged; no function throws them.
class History {
 public:
  /// Writes the record of a new job into the user's history and, if the record has a log_dir, into the folder
  /// `jobs` in that directory.
  explicit History(JobRecord record);
  /// If the end cannot be recorded, as on a full disk, removes the record and warns.
  void End(RecordedEnd end);
  /// Updates JobRecord::kept_jobs.
  void SetKeptJobs(std::vector<KeptJob> jobs);
  /// Writes the job's evaluations (EvaluationsJson in page_state.h) next to its record in the user's history,
  /// where the pages of other jobs find them.
  void KeepEvaluations(const std::string& json) const;
  /// The error of the latest write of the record; empty if the record was written to all folders.
  const std::string& error() const { return error_; }

 private:
  void Write();

  JobRecord record_;
  std::vector<std::string> folders_;  ///< the user's history first, if there is one
  bool has_user_folder_ = false;
  std::string error_;
  std::vector<posix::Descriptor> locks_;  ///< held on the records of a running job
};

/// A new record of a job that began at that time, with the members that describe this process: directory,
/// host, pid and boot.
JobRecord RecordOfThisProcess(std::chrono::system_clock::time_point began);

}  // namespace warren::submit
