// What one process of a job writes: its lines, the last of them, its log file.
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
  /// A whole line or a part of one, never empty.
  using Show = std::function<void(Stream stream, std::string_view piece)>;

  /// Begins the log file anew; an empty path: there is none. Throws std::runtime_error when it cannot be
  /// written.
  explicit ProcessOutput(const std::string& log_file);

  /// The process is started for this attempt, from 0.
  void Begin(int attempt);
  void Append(Stream stream, std::string_view bytes, const Show& show);
  /// The process has ended, perhaps in the middle of a line.
  void Finish(const Show& show);

  /// The last lines of this attempt.
  const std::deque<std::string>& tail() const { return tail_; }

 private:
  void AddToTail(std::string_view piece);

  LineSplitter out_, err_;
  std::deque<std::string> tail_;
  bool tail_line_open_ = false;  ///< the last of them has no newline yet
  std::optional<KeptLog> log_;
};

}  // namespace warren::submit
