// Reads the log of a container as `kubectl logs --follow --timestamps` prints it. The connection of this
// command may break at any time, silently. The next command then prints everything since the second of the
// last line's timestamp; this class skips the part that is already known.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace warren::submit {

class LogReader {
 public:
  /// Passes on the new output in `bytes`, without timestamps.
  void Append(std::string_view bytes, const std::function<void(std::string_view)>& on_text);
  /// Call if the next bytes come from another kubectl command.
  void Reconnect();
  /// The value for --since-time; empty to read from the beginning.
  std::string since() const;

 private:
  void BeginLine();

  std::string begin_;              ///< start of a line whose timestamp is not complete yet
  bool in_line_ = false;           ///< whether the timestamp of the current line has been read
  std::string time_;               ///< timestamp of the last line, as it was printed
  std::string key_;                ///< the same timestamp in comparable form
  std::size_t line_bytes_ = 0;     ///< number of bytes of the last line passed on so far
  std::size_t lines_of_time_ = 0;  ///< number of consecutive lines with the last line's timestamp
  std::size_t again_ = 0;          ///< number of lines with that timestamp, read while catching up
  std::size_t skip_ = 0;           ///< number of known bytes at the beginning of the current line
  bool catching_up_ = false;       ///< whether the next lines may already have been passed on
  bool skip_line_ = false;         ///< whether the rest of the current line is skipped
};

}  // namespace warren::submit
