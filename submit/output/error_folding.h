// One failing worker makes all others fail, and each prints its own traceback. Therefore, from the first line
// of an error message on, the standard error of a process is held back here until it is known which process
// failed first. The output of that process is then shown in full, and the held output of the others is
// omitted.
//
// Errors that a process survives, e.g. a caught exception that a library prints, must still be shown.
// Therefore held text is shown as written if the process succeeds, is still running after a few seconds, or
// has written more than kMaxHeldBytes. The order of a process's output never changes, and each byte is either
// shown once or omitted by Fold. Does no I/O; the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace warren::submit {

/// The time for which an error is held back once the process has written a line that is not part of it.
inline constexpr std::chrono::milliseconds kPatienceWithTalkers{2000};
/// The time for which an error is held back after its last line if the process writes nothing else: it may
/// take that long to end (threads to join, memory to free, a core file to write). Longer than
/// job/failure_arbiter.h waits for a process.
inline constexpr std::chrono::milliseconds kPatienceWithSilent{6000};
/// The maximum time for which an error is held back after its first line, even if lines of it continue to
/// arrive.
inline constexpr std::chrono::milliseconds kLongestHold{10000};
/// Limit on the text held back for each process; beyond it, the oldest errors are shown.
inline constexpr std::size_t kMaxHeldBytes = std::size_t{64} << 10;

/// The result of Fold: the process that failed first, and the processes whose output is omitted.
struct FoldedErrors {
  /// The process that failed first or, if that is unknown, the process whose error was the earliest before
  /// the stop; nullopt if there was none.
  std::optional<std::size_t> first;
  bool has_words = false;           ///< whether output of `first` is held; ShowHeld shows it
  std::vector<std::size_t> same;    ///< other processes with the same output except for numbers, ascending
  std::vector<std::size_t> others;  ///< other processes with different output, ascending
};

/// Describes the omitted output in one line: "[1] [2] [3] failed as a consequence (--show-all-errors shows
/// their output)". Empty if nothing was omitted. `noun`: the word for the processes, such as "workers".
/// `label` returns the text in a process's brackets.
std::string Describe(const FoldedErrors& folded, std::size_t num_processes, std::string_view noun,
                     const std::function<std::string(std::size_t)>& label);

class ErrorFolding {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Shows a piece of standard error: a whole line, or a part of a long or unfinished line.
  using Show = std::function<void(std::size_t index, std::string_view piece)>;

  ErrorFolding(std::size_t num_processes, Show show);

  /// Handles a line, or a part of a line, that a process has written to standard error.
  void Append(std::size_t index, std::string_view piece, TimePoint now);
  /// Records that the process has ended. If it succeeded (`well`), shows its held output; otherwise the
  /// output stays held until one of the functions below shows or discards it.
  void Ended(std::size_t index, bool well);
  /// Records that all processes are being stopped: from now on, held text is not shown merely because of its
  /// age.
  void StopBegins(TimePoint now);
  /// Shows text that has been held long enough.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  /// Shows the held output of this process. Returns false if there is no such output.
  bool ShowHeld(std::size_t index);
  /// Shows all held output; call when the job is over.
  void ShowAllHeld();
  /// Discards held output, except the output of the process that failed first, which ShowHeld shows. Call
  /// when the job has failed or is restarted. `culprit`: the process that failed first, if known. If its
  /// error only says that another rank gave up or was lost, the error of the process that gives a reason is
  /// shown, too.
  FoldedErrors Fold(std::optional<std::size_t> culprit);

 private:
  /// A line that begins an error, and the lines after it up to the next such line.
  struct Block {
    TimePoint begin;
    TimePoint shown_at;    ///< when it is shown, unless the process ends or is stopped before
    bool went_on = false;  ///< whether a line has followed that is not part of an error
    std::vector<std::string> pieces;
  };
  struct Process {
    std::deque<Block> blocks;  ///< in the order written
    std::size_t held_bytes = 0;
    bool in_line = false;  ///< whether the next piece continues the same line
    bool ended = false;
  };

  void Hold(std::size_t index, std::string_view piece, bool continues_line, TimePoint now);
  void ShowFirstBlock(std::size_t index);
  std::optional<std::size_t> FirstBeforeStop() const;
  void ShowReasonFor(std::size_t first);

  Show show_;
  std::vector<Process> processes_;
  std::set<std::size_t> holding_;  ///< processes with held output; usually few
  std::optional<TimePoint> stop_;
};

}  // namespace warren::submit
