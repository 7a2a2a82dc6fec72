// A synthetic job, whose numbers move like those of a real one, for tests of what displays jobs.
#pragma once

#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

/// The job `seconds` after it began. Four workers per host; rank 3 makes the others wait, worker 5 was
/// restarted, the last but one is stuck for a while. The job ends after 600 rounds, five per second.
JobSnapshot SyntheticJob(int workers, double seconds);

/// The output of worker `index` in that second.
std::string SyntheticLine(int index, double seconds);

}  // namespace warren::submit
