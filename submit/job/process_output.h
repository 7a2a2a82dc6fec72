// Splits the output of one process into lines, writes it to the process's log file, and keeps the last lines.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "submit/output/kept_log.h"
#include "submit/output/line_splitter.h"
#include "submit/process/stream.h"

namespace warren::submit {

class ProcessOutput {
 public:
  /// Receives a whole line or a part of a line, never empty.
  using Show = std::function<void(Stream stream, std::string_view piece)>;

  /// Truncates the log file; an empty path means no log file. Throws std::runtime_error if it cannot be
  /// written.
  explicit ProcessOutput(const std::string& log_file);

  /// Begins the output of an attempt; `attempt` counts from 0.
  void Begin(int attempt);
  void Append(Stream stream, std::string_view bytes, const Show& show);
  /// Handles the end of the process, possibly in the middle of a line.
  void Finish(const Show& show);

  /// The last lines of the current attempt; their number and lengths are limited.
  const std::deque<std::string>& tail() const { return tail_; }

 private:
  void AddToTail(std::string_view piece);

  LineSplitter out_, err_;
  std::deque<std::string> tail_;
  bool tail_line_open_ = false;  ///< whether the last line in tail_ has not ended yet
  std::optional<KeptLog> log_;
};

}  // namespace warren::submit
