// The records of jobs for `warren jobs`: one JSON file per job in $XDG_STATE_HOME/warren/jobs and, with
// --log-dir DIR, in DIR/jobs. The whole file is written when the job begins and again when it ends. If a file
// has no end, the job is running if its dmlc-submit holds a lock on the file; otherwise that dmlc-submit was
// killed. docs/how-to/warren.md lists the fields.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posix/descriptor.h"

namespace warren::submit {

/// Number of files kept in a folder; the oldest are deleted.
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
  std::string story;  ///< the last message of dmlc-submit; may be empty
  std::optional<FailedBy> failed_by;
  int restarts = 0;  ///< restarts of single processes plus those of the whole job
  std::string page;  ///< the file of the job's page; empty: none
};

struct JobRecord {
  std::string name;                  ///< --jobname, or the name of the command
  std::vector<std::string> command;  ///< the job's command, without dmlc-submit and its options
  std::string directory;             ///< dmlc-submit's working directory
  std::string host;                  ///< the host that dmlc-submit runs on
  std::int64_t pid = 0;
  /// The boot_id of the running kernel, which all containers of a machine share; empty: unknown.
  std::string boot;
  std::string cluster;
  int workers = 0;
  std::chrono::system_clock::time_point began;
  std::string log_dir;  ///< absolute path; empty: none
  std::optional<RecordedEnd> end;
};

/// The text of the file. Invalid UTF-8 in the record is replaced. `locked`: whether the writer holds a lock
/// on the file (flock) while the job runs, by which readers recognise a running job.
std::string RecordText(const JobRecord& record, bool locked = false);
/// The name of the record's file, e.g. "20261127T010203Z-4711.json".
std::string RecordFileName(const JobRecord& record);
/// The oldest records, which must be deleted so that at most `most` remain. Files with other names are
/// ignored.
std::vector<std::string> OutdatedRecords(std::vector<std::string> names, std::size_t most);

/// $XDG_STATE_HOME/warren/jobs, else $HOME/.local/state/warren/jobs; empty if neither variable is set.
std::string HistoryFolder(const char* xdg_state_home, const char* home);

/// Keeps the record of one job in files. Errors are logged at level DEBUG only and never affect the job.
class History {
 public:
  /// Writes the record of a new job into the user's history and, if the record has a log_dir, into the folder
  /// `jobs` in that directory.
  explicit History(JobRecord record);
  void End(RecordedEnd end);

 private:
  void Write();

  JobRecord record_;
  std::vector<std::string> folders_;
  std::vector<posix::Descriptor> locks_;  ///< held on the records of a running job
};

/// A new record with the fields that the process knows: directory, host, pid, boot and began (now).
JobRecord RecordOfThisProcess();

}  // namespace warren::submit
