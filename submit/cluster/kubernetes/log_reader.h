// The log of a container as `kubectl logs --follow --timestamps` prints it. The connection of such a command
// may break at any time, silently; the next is asked for what came since the last line, to the second, and
// what is known already is left out here.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace warren::submit {

class LogReader {
 public:
  /// Hands on what is new in `bytes`, without the times.
  void Append(std::string_view bytes, const std::function<void(std::string_view)>& on_text);
  /// The next bytes come from another command.
  void Reconnect();
  /// For --since-time; empty: from the beginning.
  std::string since() const;

 private:
  void BeginLine();

  std::string begin_;              ///< of a line whose time is not whole yet
  bool in_line_ = false;           ///< the time of the line has been read
  std::string time_;               ///< of the last line, as it was printed
  std::string key_;                ///< the same, comparable
  std::size_t line_bytes_ = 0;     ///< how much of that line has been handed on
  std::size_t lines_of_time_ = 0;  ///< how many lines had that time
  std::size_t again_ = 0;          ///< how many of them this command has brought
  std::size_t skip_ = 0;           ///< bytes of this line that are known
  bool catching_up_ = false;       ///< what comes may be known
  bool skip_line_ = false;         ///< all of it is known
};

}  // namespace warren::submit
