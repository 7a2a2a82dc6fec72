// A line that stays below the output of a terminal, such as the progress bar shown while workers connect. It
// is erased before other output and drawn again afterwards, at most about ten times a second. Does no I/O:
// the time and the terminal's width are arguments, and the text to write is returned.
//
// The cursor waits at the beginning of the line. If the terminal becomes narrower and wraps the line, the
// cursor stays in the first of the line's rows, so that all of them can still be erased.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace warren::submit {

/// Minimum time between two drawings.
inline constexpr std::chrono::milliseconds kStatusInterval{100};
/// Time to wait for the rest of an unfinished output line before a newline is inserted; longer for a progress
/// bar, which is redrawn repeatedly.
inline constexpr std::chrono::milliseconds kUnfinishedPatience{1000};
inline constexpr std::chrono::milliseconds kRedrawnPatience{10'000};

class StatusLine {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Sets the text; Draw is then due immediately or soon (NextDraw). An empty text hides the line. Control
  /// characters are escaped.
  void Set(std::string_view text, TimePoint now);
  /// The terminal's width has changed, so the line must be redrawn.
  void Refresh(TimePoint now);
  /// Returns the text to write before other output.
  std::string BeforeOutput();
  /// Call after output was written. `patience`: how long to wait for the rest of its last line; 0 if the line
  /// is finished.
  void AfterOutput(std::chrono::milliseconds patience, TimePoint now);
  /// When Draw is due, if ever.
  std::optional<TimePoint> NextDraw() const { return due_; }
  /// Returns the text to write when drawing is due. The caller must ensure that the preceding output has
  /// ended with a newline.
  std::string Draw(int width, TimePoint now);
  /// Hides the line; returns the text to write now.
  std::string Hide();

  bool is_set() const { return !text_.empty(); }

 private:
  void DrawSoon(TimePoint now);

  std::string text_;
  bool drawn_ = false;
  std::optional<TimePoint> last_;
  std::optional<TimePoint> due_;
};

/// As much of the text as fits into `columns`. Each UTF-8 character counts as one column.
std::string CutToColumns(std::string_view text, int columns);

}  // namespace warren::submit
