// A line that stays below the output on a terminal, such as the progress bar shown while workers connect. It
// is erased before other output and drawn again afterwards, at most about ten times a second. Does no I/O:
// the time and the terminal's width are arguments, and the text to write is returned.
//
// The cursor waits at the beginning of the line. If the terminal becomes narrower and wraps the line into
// several rows, the cursor stays in the first row, so that all rows can still be erased.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace warren::submit {

/// The minimum time between two drawings.
inline constexpr std::chrono::milliseconds kStatusInterval{100};
/// The time to wait for the rest of an unfinished output line before a newline is inserted and the status
/// line is drawn; longer for a progress bar, which is redrawn repeatedly.
inline constexpr std::chrono::milliseconds kUnfinishedPatience{1000};
inline constexpr std::chrono::milliseconds kRedrawnPatience{10'000};

class StatusLine {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Sets the text. Draw is then due immediately or soon: see NextDraw. An empty text hides the line. Control
  /// characters are escaped.
  void Set(std::string_view text, TimePoint now);
  /// Makes drawing due because the terminal's width has changed.
  void Refresh(TimePoint now);
  /// Returns the text to write before other output.
  std::string BeforeOutput();
  /// Must be called after other output was written. `patience`: how long to wait for the rest of its last
  /// line; 0 if that line is finished.
  void AfterOutput(std::chrono::milliseconds patience, TimePoint now);
  /// The time when Draw is due; nullopt if it is not due.
  std::optional<TimePoint> NextDraw() const { return due_; }
  /// Returns the text to write when drawing is due. The caller must ensure that the output before it ends
  /// with a newline.
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
