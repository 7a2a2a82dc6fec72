// One process of a running job and what is known about it, its last lines and its log file among it.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "submit/cluster/cluster.h"
#include "submit/output/line_splitter.h"
#include "submit/plan.h"
#include "submit/process/descriptor.h"

namespace warren::submit {

struct Member {
  const PlannedProcess* process = nullptr;
  std::string name;  ///< "worker 3"
  Started started;
  int attempt = -1;  ///< DMLC_NUM_ATTEMPT
  int restarts = 0;  ///< of it alone, since the job began or was last begun again
  bool running = false;
  bool succeeded = false;
  std::optional<int> rank;
  LineSplitter out, err;
  std::deque<std::string> tail;  ///< its last lines, to be repeated if it fails
  bool tail_line_open = false;   ///< the last of them has no newline yet
  Descriptor log;

  /// "worker 1 (rank 2, host vm, pid 4242)"
  std::string Describe() const;

  /// Begins the log file anew if the plan names one. Throws std::runtime_error when it cannot be written.
  void OpenLog();
  /// Adds to the log file, if there is one. A log that can no longer be written is given up with a warning.
  void WriteLog(std::string_view bytes);

  /// Keeps a line, or a part of one, for the end. `piece` is not empty.
  void AddToTail(std::string_view piece);
};

}  // namespace warren::submit
