// The latest lines that the processes of a job have written, for the page: bounded for each process and in
// all, so that a job that writes for days needs no more memory than one that writes for minutes. Pure.
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
  std::uint64_t number = 0;  ///< of all lines of the job, from 1
  Stream stream = Stream::kOut;
  std::string text;  ///< without its newline
};

/// Which lines are wanted.
struct OutputQuery {
  std::optional<std::size_t> process = {};  ///< none: of all
  std::uint64_t before = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t after = 0;
  std::size_t limit = 500;    ///< the latest of those that are wanted
  std::string contains = {};  ///< upper and lower case of ASCII are the same; cut to kSearchBytes
};

class OutputHistory {
 public:
  /// Beyond, the oldest lines are dropped.
  static constexpr std::size_t kBytesOfProcess = std::size_t{256} << 10;
  static constexpr std::size_t kBytes = std::size_t{64} << 20;
  /// A longer line is cut.
  static constexpr std::size_t kLineBytes = std::size_t{8} << 10;
  /// A longer text is searched for by its beginning: the time of a search grows with it.
  static constexpr std::size_t kSearchBytes = 256;

  explicit OutputHistory(std::size_t processes, std::size_t bytes_of_process = kBytesOfProcess,
                         std::size_t bytes = kBytes);

  /// A line, with its newline, or a piece of one (output/line_splitter.h): each is kept as a line, but for a
  /// progress bar whose latest state is kept alone.
  void Add(std::size_t process, Stream stream, std::string_view line);

  /// {"lines": [[number, process, "out", "text"], ...], "from": number, "last": number}: oldest first. All
  /// lines from "from" on have been looked at: there may be older ones when that is above 1. "last": the
  /// latest line of the job.
  std::string Json(const OutputQuery& query) const;

  std::size_t processes() const { return of_.size(); }

 private:
  struct Lines {
    std::deque<OutputLine> lines;
    std::size_t bytes = 0;
    bool is_drawn_over = false;  ///< the last line is a progress bar's
  };

  std::vector<Lines> of_;
  std::size_t bytes_of_process_;
  std::uint64_t last_ = 0;
};

}  // namespace warren::submit
