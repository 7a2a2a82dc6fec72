// The terminal's status line for a running job. Does no I/O.
#pragma once

#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

/// The status line: at most `width` characters, without a newline; the least important parts are left out
/// first.
std::string LiveLine(const JobSnapshot& job, int width);

/// Formats a duration as "4:07" or "1:02:03".
std::string ClockTime(double seconds);

/// "rank 3 made the others wait 41 % of the time", for the rank with the largest share; empty if that share
/// is negligible. `live`: about the last half minute, in the present tense.
std::string StragglerSentence(const JobSnapshot& job, bool live);

}  // namespace warren::submit
