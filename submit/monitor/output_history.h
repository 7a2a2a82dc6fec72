// The latest output lines of a job's processes, for the page. Their size is limited per process and in total,
// so that a job that writes for days needs no more memory than one that writes for minutes. Does no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/process/stream.h"

namespace warren::submit {

struct OutputLine {
  std::uint64_t number = 0;  ///< counts all lines of the job, from 1
  Stream stream = Stream::kOut;
  std::string text;  ///< without its newline
};

/// Selects lines; all conditions must hold.
struct OutputQuery {
  std::optional<std::size_t> process = {};  ///< nullopt: all processes
  /// Only lines with numbers above `after` and below `before`.
  std::uint64_t before = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t after = 0;
  std::size_t limit = 500;    ///< the latest lines, at most this many
  std::string contains = {};  ///< the case of ASCII letters is ignored; truncated to kSearchBytes
};

class OutputHistory {
 public:
  /// Default limits on the size of the lines, per process and in total. Beyond them the oldest lines are
  /// dropped.
  static constexpr std::size_t kBytesOfProcess = std::size_t{256} << 10;
  static constexpr std::size_t kBytes = std::size_t{64} << 20;
  /// Limit on the length of a line. Longer lines are truncated.
  static constexpr std::size_t kLineBytes = std::size_t{8} << 10;
  /// Longer search texts are truncated, since the time of a search grows with their length.
  static constexpr std::size_t kSearchBytes = 256;

  explicit OutputHistory(std::size_t processes, std::size_t bytes_of_process = kBytesOfProcess,
                         std::size_t bytes = kBytes);

  /// Adds a line with its newline, or a piece of a line (output/line_splitter.h). Each piece is kept as a
  /// line, except that only the latest state of a progress bar is kept.
  void Add(std::size_t process, Stream stream, std::string_view line);

  /// Returns {"lines": [[number, process, "out", "text"], ...], "from": number, "last": number}, with the
  /// oldest line first. "from": all lines from this number on have been searched; if it is above 1, there may
  /// be older matches. "last": the number of the job's latest line.
  std::string Json(const OutputQuery& query) const;

  std::size_t processes() const { return of_.size(); }

 private:
  struct Lines {
    std::deque<OutputLine> lines;
    std::size_t bytes = 0;
    bool is_drawn_over = false;  ///< the last line is an unfinished progress bar
  };

  std::vector<Lines> of_;
  std::size_t bytes_of_process_;
  std::uint64_t last_ = 0;
};

}  // namespace warren::submit
