// The terminal's status line for a running job. Does no I/O.
#pragma once

#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

/// The status line, without a newline: at most `width` bytes. If it would be longer, the least important
/// parts are left out.
std::string LiveLine(const JobSnapshot& job, int width);

/// Formats a duration as "4:07" or "1:02:03".
std::string ClockTime(double seconds);

/// "rank 3 made the others wait 41 % of the time", for the rank with the largest share; empty if the share is
/// below 5 %. `live`: about the last half minute and in the present tense, instead of about the whole job.
std::string StragglerSentence(const JobSnapshot& job, bool live);

}  // namespace warren::submit
