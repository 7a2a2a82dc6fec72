// A synthetic job with realistic numbers, for tests of its page and its metrics.
#pragma once

#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

/// The state of the job `seconds` after it began. The job has four workers per host, reads data for 6 s, and
/// ends after 600 rounds, at five rounds per second. Rank 3 makes the others wait, worker 5 has been
/// restarted, and the second to last worker is stuck for 30 s.
JobSnapshot SyntheticJob(int workers, double seconds);

/// A line of output of worker `index`, `seconds` after the job began.
std::string SyntheticLine(int index, double seconds);

}  // namespace warren::submit
