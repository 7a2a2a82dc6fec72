// What Linux says of processes in /proc/PID/stat, and what that makes of a worker and all that it has
// started. Pure; sampler.h reads.
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
  pid_t session = -1;
  std::uint64_t ticks = 0;  ///< of a processor, with those of children that are gone
  std::uint64_t resident_pages = 0;
};

/// The text of a /proc/PID/stat; nothing: it is none.
std::optional<ProcessStat> ParseProcessStat(std::string_view text);

/// What those numbers count in.
struct ProcessUnits {
  double ticks_per_second = 100;
  std::uint64_t page_bytes = 4096;
};

/// Each of `workers`, with the processes of the session it leads and all descendants. One that is not in
/// `all` has none.
std::map<pid_t, ProcessSample> SamplesOf(const std::vector<pid_t>& workers,
                                         const std::vector<ProcessStat>& all, const ProcessUnits& units);

}  // namespace warren::submit
