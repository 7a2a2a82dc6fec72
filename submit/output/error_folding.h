// One failing worker makes all others fail, and each says so in its own traceback. What processes write to
// standard error from the first line of an error on is held back here, until it is known whose failure came
// first: its words are then shown whole, those of the others are left out.
//
// An error that a process survives is not for here, a caught exception that a library prints, say. So held
// text is shown as it was written when the process goes on for a while after it, ends well, or has written
// more than kMaxHeldBytes. The order of what a process writes never changes, and each byte is either shown
// once or left out by Fold. Pure: time is an argument. Not for use by several threads.
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

/// How long an error is held back of a process that goes on writing other lines.
inline constexpr std::chrono::milliseconds kPatienceWithTalkers{2000};
/// And of one that says nothing more: it may take as long to end (threads to join, memory to free, a core
/// file to write). More than failure_arbiter.h waits for it.
inline constexpr std::chrono::milliseconds kPatienceWithSilent{6000};
/// However long it goes on.
inline constexpr std::chrono::milliseconds kLongestHold{10000};
/// Of one process. More is shown.
inline constexpr std::size_t kMaxHeldBytes = std::size_t{64} << 10;

/// What Fold leaves out.
struct FoldedErrors {
  /// With whom it began or, where nobody knows that, whose error came first of those before the stop.
  std::optional<std::size_t> first;
  bool has_words = false;           ///< those of the first are held, for ShowHeld
  std::vector<std::size_t> same;    ///< others whose words are the same but for numbers, ascending
  std::vector<std::size_t> others;  ///< others with words of their own, ascending
};

/// In one line: "[1] [2] [3] failed as a consequence (--show-all-errors shows their output)"; empty: nothing
/// was left out. `label` has what stands in a process's brackets.
std::string Describe(const FoldedErrors& folded, std::size_t num_processes, std::string_view noun,
                     const std::function<std::string(std::size_t)>& label);

class ErrorFolding {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Shows a piece of standard error: a whole line, or a part of a long or unfinished one.
  using Show = std::function<void(std::size_t index, std::string_view piece)>;

  ErrorFolding(std::size_t num_processes, Show show);

  /// A process has written a line to standard error, or a part of one.
  void Append(std::size_t index, std::string_view piece, TimePoint now);
  /// A process has ended. In a failure its words are held until one of the functions below.
  void Ended(std::size_t index, bool well);
  /// All processes are being stopped: nothing held is shown any more because of the time.
  void StopBegins(TimePoint now);
  /// Shows what is due.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  /// Shows what is held of this process. False when nothing is.
  bool ShowHeld(std::size_t index);
  /// Shows all that is held: the job has ended well.
  void ShowAllHeld();
  /// The job has failed, or is begun anew: forgets what is held, but for the words of the first, which
  /// ShowHeld shows. `culprit`: with whom it began, if that is known.
  FoldedErrors Fold(std::optional<std::size_t> culprit);

 private:
  /// Lines from one that begins an error to the next such line.
  struct Block {
    TimePoint begin;
    TimePoint shown_at;    ///< unless the process ends
    bool went_on = false;  ///< lines that belong to no error have followed
    std::vector<std::string> pieces;
  };
  struct Process {
    std::deque<Block> blocks;  ///< in the order written
    std::size_t held_bytes = 0;
    bool in_line = false;  ///< the last piece had no newline
    bool ended = false;
  };

  void Hold(std::size_t index, std::string_view piece, bool continues_line, TimePoint now);
  void ShowFirstBlock(std::size_t index);
  std::optional<std::size_t> FirstBeforeStop() const;

  Show show_;
  std::vector<Process> processes_;
  std::set<std::size_t> holding_;  ///< those of which something is held: few, mostly
  std::optional<TimePoint> stop_;
};

}  // namespace warren::submit
