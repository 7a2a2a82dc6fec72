// The one line that a terminal shows of a job while it runs. Pure.
#pragma once

#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

/// At most `width` characters: what matters least is left out first. Without a newline.
std::string LiveLine(const JobSnapshot& job, int width);

/// "4:07", "1:02:03".
std::string ClockTime(double seconds);

/// "rank 3 made the others wait 41 % of the time", of that rank which did most; empty when none did worth
/// speaking of. `live`: it is still so.
std::string StragglerSentence(const JobSnapshot& job, bool live);

}  // namespace warren::submit
