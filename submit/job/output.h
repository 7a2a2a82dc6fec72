// Passes the output of a job's processes to the logs and the console. The logs receive all output
// immediately. On the console, errors that are consequences of the first one are folded
// (output/error_folding.h).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/job/process_output.h"
#include "submit/output/console.h"
#include "submit/output/deadline_timer.h"
#include "submit/output/error_folding.h"
#include "submit/process/planned_process.h"

namespace warren::submit {

class JobOutput {
 public:
  /// Returns the name under which a process's lines are shown. It changes when the process gets a rank.
  using SpeakerOf = std::function<Speaker(std::size_t index, Stream stream)>;
  /// Called with each line, or part of a long or unfinished line, before it is shown or held back.
  using Reader = std::function<void(std::size_t index, Stream stream, std::string_view piece)>;

  /// Starts new log files for the plan. `log_dir`: the folder for kTrackerLog and for links to logs by rank,
  /// or empty for none. `show_all`: do not fold errors. Throws std::runtime_error if a log file cannot be
  /// written.
  JobOutput(boost::asio::io_context& io, Console& console, const std::vector<PlannedProcess>& plan,
            std::string log_dir, bool show_all, SpeakerOf speaker_of, Reader reader);
  JobOutput(const JobOutput&) = delete;
  JobOutput& operator=(const JobOutput&) = delete;

  /// Call before the process is started; `attempt` counts from 0.
  void Begin(std::size_t index, int attempt);
  void Append(std::size_t index, Stream stream, std::string_view bytes);
  /// Call when a worker gets a rank. Its log can then also be found by the rank (LinkRank).
  void Assigned(const std::string& task_id, int rank);
  /// Writes text that a worker printed through the tracker to standard output and, if they are in use, to
  /// --log-file and kTrackerLog.
  void TrackerPrint(std::string_view text);
  /// Call when the process has ended and all of its output has been appended. `well`: whether it succeeded.
  void Finish(std::size_t index, bool well);
  /// Call when all processes are being stopped.
  void StopBegins();

  /// Shows the held-back error of this process, if any.
  void ShowErrorOf(std::size_t index);
  /// Call when the job has failed or is restarted. Shows one line about the errors that are omitted, then the
  /// error of the process that failed first. `repeat_last_output`: if no error of `culprit` is held back,
  /// show its last output.
  void ShowErrors(std::optional<std::size_t> culprit, bool repeat_last_output);
  /// Call when the job is over: shows everything still held back.
  void ShowRest() { folding_.ShowAllHeld(); }

 private:
  ProcessOutput::Show ShownFor(std::size_t index);
  void ShowLastOutputOf(std::size_t index) const;
  std::string Label(std::size_t index) const { return speaker_of_(index, Stream::kErr).label; }
  void WaitForDeadline();

  Console& console_;
  const std::string log_dir_;
  std::optional<KeptLog> tracker_log_;  ///< opened when a worker first prints through the tracker
  bool can_link_ = true;                ///< the file system of log_dir_ has not refused a link
  const bool show_all_;
  const SpeakerOf speaker_of_;
  const Reader reader_;
  bool has_servers_ = false;
  std::vector<std::string> names_;  ///< the name of each process, such as "worker 3"
  std::vector<ProcessOutput> processes_;
  ErrorFolding folding_;
  DeadlineTimer timer_;
};

}  // namespace warren::submit
