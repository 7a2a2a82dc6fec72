// What the processes of a job write, on its way to the console and to the logs: everything to the logs at
// once, to the console with the errors that follow from the first one folded (output/error_folding.h).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/deadline_timer.h"
#include "submit/output/console.h"
#include "submit/output/error_folding.h"
#include "submit/plan.h"
#include "submit/process_output.h"

namespace warren::submit {

class JobOutput {
 public:
  /// Who writes: ranks become known while the job runs.
  using SpeakerOf = std::function<Speaker(std::size_t index, Stream stream)>;
  /// Somebody else who sees each line, or piece of a long one, as soon as it comes.
  using Reader = std::function<void(std::size_t index, Stream stream, std::string_view piece)>;

  /// Begins the log files of the plan anew. `log_dir`: where kTrackerLog is kept, too; empty: nowhere.
  /// `show_all`: nothing is folded. Throws std::runtime_error when a log file cannot be written.
  JobOutput(boost::asio::io_context& io, Console& console, const std::vector<PlannedProcess>& plan,
            std::string log_dir, bool show_all, SpeakerOf speaker_of, Reader reader);
  JobOutput(const JobOutput&) = delete;
  JobOutput& operator=(const JobOutput&) = delete;

  /// The process is started for this attempt, from 0.
  void Begin(std::size_t index, int attempt);
  void Append(std::size_t index, Stream stream, std::string_view bytes);
  /// What a worker printed by way of the tracker: to standard output, --log-file and kTrackerLog.
  void TrackerPrint(std::string_view text);
  /// The process has ended and has no more to say.
  void Finish(std::size_t index, bool well);
  /// All processes are being stopped.
  void StopBegins();

  /// Shows the error of one that is started again.
  void ShowErrorOf(std::size_t index);
  /// The job has failed or is begun anew: one line about the errors that are left out, and then the words of
  /// the process with which it began. `repeat_last_output`: what that wrote last, where it said no error.
  void ShowErrors(std::optional<std::size_t> culprit, bool repeat_last_output);
  /// The job is over: nothing stays unsaid.
  void ShowRest() { folding_.ShowAllHeld(); }

 private:
  ProcessOutput::Show ShownFor(std::size_t index);
  void ShowLastOutputOf(std::size_t index) const;
  std::string Label(std::size_t index) const { return speaker_of_(index, Stream::kErr).label; }
  void WaitForDeadline();

  Console& console_;
  const std::string log_dir_;
  std::optional<KeptLog> tracker_log_;  ///< if anything was printed
  const bool show_all_;
  const SpeakerOf speaker_of_;
  const Reader reader_;
  bool has_servers_ = false;
  std::vector<std::string> names_;  ///< "worker 3", of each process
  std::vector<ProcessOutput> processes_;
  ErrorFolding folding_;
  DeadlineTimer timer_;
};

}  // namespace warren::submit
