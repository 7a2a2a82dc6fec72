// A job that nobody runs, with numbers that move as those of a real one: for what shows jobs.
#pragma once

#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

/// `seconds` after it began. Four workers a host; rank 3 makes the others wait, worker 5 was restarted, the
/// last but one is stuck for a while. It ends after 600 rounds, five a second.
JobSnapshot SyntheticJob(int workers, double seconds);

/// What worker `index` writes in that second.
std::string SyntheticLine(int index, double seconds);

}  // namespace warren::submit
