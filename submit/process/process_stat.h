// Reads Linux's /proc/PID/stat, and sums its values over each worker and the worker's descendants.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "submit/process/sample.h"

namespace warren::submit {

struct ProcessStat {
  pid_t pid = -1;
  char state = '?';
  pid_t parent = -1;
  pid_t group = -1;
  pid_t session = -1;
  std::uint64_t ticks = 0;  ///< CPU time of the process and of its children that have been waited for
  std::uint64_t resident_pages = 0;
};

/// Parses the text of /proc/PID/stat; nullopt if malformed.
std::optional<ProcessStat> ParseProcessStat(std::string_view text);
/// Reads the file of a process; nullopt if the process is gone.
std::optional<ProcessStat> ReadProcessStat(pid_t pid);
/// The pids of all processes; none on systems without /proc.
std::vector<pid_t> AllProcesses();

/// The units of the values in ProcessStat.
struct ProcessUnits {
  double ticks_per_second = 100;
  std::uint64_t page_bytes = 4096;
};

/// One sample for each of `workers`, summed over the processes of its session and all its descendants.
/// Workers that are not in `all` have no sample.
std::map<pid_t, ProcessSample> SamplesOf(const std::vector<pid_t>& workers,
                                         const std::vector<ProcessStat>& all, const ProcessUnits& units);

}  // namespace warren::submit
