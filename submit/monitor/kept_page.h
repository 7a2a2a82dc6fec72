// The page of a job that is over, as one file that any browser opens: the state and the last output are in
// it, and it asks for nothing else. Pure.
#pragma once

#include <string>

#include "submit/monitor/output_history.h"
#include "submit/monitor/snapshot.h"

namespace warren::submit {

/// Of the output each process's latest lines, at most kMaxKeptLines in all.
std::string KeptPage(const JobSnapshot& job, const OutputHistory& output);

inline constexpr std::size_t kMaxKeptLines = 20'000;

}  // namespace warren::submit
