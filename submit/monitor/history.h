// What is kept of each job for `warren jobs`: a file of JSON a job in $XDG_STATE_HOME/warren/jobs, and in
// DIR/jobs with --log-dir DIR. It is written when the job begins and again when it ends, each time whole. A
// file without an end belongs to a job that runs, as long as its dmlc-submit holds a lock on it, or whose
// dmlc-submit was killed. docs/how-to/warren.md has the fields.
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

/// So many files are kept in a folder, the latest ones.
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
  std::string story;  ///< the last sentence of dmlc-submit; empty: none
  std::optional<FailedBy> failed_by;
  int restarts = 0;  ///< single processes and the whole job, counted together
  std::string page;  ///< the file of the job's page; empty: none
};

struct JobRecord {
  std::string name;                  ///< --jobname, or the command's without arguments
  std::vector<std::string> command;  ///< the job's, without dmlc-submit and its options
  std::string directory;             ///< where dmlc-submit was started
  std::string host;                  ///< where it runs
  std::int64_t pid = 0;
  std::string
      boot;  ///< the running kernel's boot_id, which all containers of a machine share; empty: unknown
  std::string cluster;
  int workers = 0;
  std::chrono::system_clock::time_point began;
  std::string log_dir;  ///< absolute; empty: none
  std::optional<RecordedEnd> end;
};

/// The text of the file. What is not UTF-8 in the record is replaced. `locked`: the file's writer holds a
/// lock on it (flock) for as long as the job runs, by which readers know that it does.
std::string RecordText(const JobRecord& record, bool locked = false);
/// "20261127T010203Z-4711.json".
std::string RecordFileName(const JobRecord& record);
/// The oldest records among a folder's files, without which at most `most` records remain. Files with other
/// names are no records.
std::vector<std::string> OutdatedRecords(std::vector<std::string> names, std::size_t most);

/// $XDG_STATE_HOME/warren/jobs, else ~/.local/state/warren/jobs; empty where neither is known.
std::string HistoryFolder(const char* xdg_state_home, const char* home);

/// Keeps the record of one job in files. Whatever goes wrong with them is a line of --log-level DEBUG, and
/// never the job's trouble.
class History {
 public:
  /// Writes the record of a job that begins, to the user's history and with a log_dir to its folder `jobs`.
  explicit History(JobRecord record);
  void End(RecordedEnd end);

 private:
  void Write();

  JobRecord record_;
  std::vector<std::string> folders_;
  std::vector<posix::Descriptor> locks_;  ///< on the records of a job that runs
};

/// A job of this process that begins now; the fields from `command` to `log_dir` that the machine knows
/// (directory, host, pid, began) are filled in.
JobRecord RecordOfThisProcess();

}  // namespace warren::submit
