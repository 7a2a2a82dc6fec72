// Reads the log of a container as `kubectl logs --follow --timestamps` prints it. The connection of such a
// command may break at any time, silently. The next command then prints everything since the second of the
// last line; this class skips the part that is already known.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace warren::submit {

class LogReader {
 public:
  /// Passes on the new output in `bytes`, without the times.
  void Append(std::string_view bytes, const std::function<void(std::string_view)>& on_text);
  /// Call when the next bytes come from another command.
  void Reconnect();
  /// The value for --since-time; empty to read from the beginning.
  std::string since() const;

 private:
  void BeginLine();

  std::string begin_;              ///< start of a line whose time is not complete yet
  bool in_line_ = false;           ///< the time of the line has been read
  std::string time_;               ///< time of the last line, as it was printed
  std::string key_;                ///< the same time in comparable form
  std::size_t line_bytes_ = 0;     ///< how much of the last line has been passed on
  std::size_t lines_of_time_ = 0;  ///< how many lines had the last line's time
  std::size_t again_ = 0;          ///< how many lines with that time the current command has printed
  std::size_t skip_ = 0;           ///< number of known bytes at the beginning of the current line
  bool catching_up_ = false;       ///< whether the next lines may be known
  bool skip_line_ = false;         ///< the rest of the current line is skipped
};

}  // namespace warren::submit
