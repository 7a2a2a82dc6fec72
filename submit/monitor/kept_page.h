// The page of a finished job as a single HTML file, which any browser can open: it contains the job's state
// and the last output, and loads nothing else. Does no I/O.
#pragma once

#include <string>

#include "submit/monitor/output_history.h"
#include "submit/monitor/snapshot.h"
#include "submit/monitor/usage_history.h"

namespace warren::submit {

/// Returns the page with each process's last output lines, at most kMaxKeptLines in total.
std::string KeptPage(const JobSnapshot& job, const OutputHistory& output, const UsageHistory& usage);

inline constexpr std::size_t kMaxKeptLines = 20'000;

}  // namespace warren::submit
