// The line that stays below the output of a terminal, such as the bar while workers connect: what is to be
// written so that it is gone before other output comes and there again afterwards, at most some ten times a
// second. Pure: time and the terminal's width are arguments, what is to be written comes out.
//
// The cursor waits at the line's beginning. Where the terminal becomes narrower, and breaks the line that it
// shows already, the cursor stays with its first row, so that all of it can still be erased.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace warren::submit {

/// Between two drawings.
inline constexpr std::chrono::milliseconds kStatusInterval{100};
/// How long the rest of an unfinished line of output is waited for before a newline is put in; longer for a
/// progress bar, which is drawn again and again.
inline constexpr std::chrono::milliseconds kUnfinishedPatience{1000};
inline constexpr std::chrono::milliseconds kRedrawnPatience{10'000};

class StatusLine {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Draw is due at once or soon (NextDraw); an empty text hides the line. Whatever a terminal would obey in
  /// the text is shown escaped.
  void Set(std::string_view text, TimePoint now);
  /// The line is to be drawn anew: the terminal has another width.
  void Refresh(TimePoint now);
  /// To be written before other output.
  std::string BeforeOutput();
  /// Output was written. `patience`: how long the rest of its last line is waited for; 0: the line is
  /// finished.
  void AfterOutput(std::chrono::milliseconds patience, TimePoint now);
  /// When Draw is due, if ever.
  std::optional<TimePoint> NextDraw() const { return due_; }
  /// To be written when it is due. The output before must have ended its line (the caller sees to that).
  std::string Draw(int width, TimePoint now);
  /// Erases the line at once: to be written now.
  std::string Hide();

  bool is_set() const { return !text_.empty(); }

 private:
  void DrawSoon(TimePoint now);

  std::string text_;
  bool drawn_ = false;
  std::optional<TimePoint> last_;
  std::optional<TimePoint> due_;
};

/// As much of the text as fits `columns`. One character of UTF-8 is taken for one column.
std::string CutToColumns(std::string_view text, int columns);

}  // namespace warren::submit
