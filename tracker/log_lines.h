// Lines of rabit-tracker's log from which dmlc-submit learns of an elastic job whose tracker another machine
// runs. Each is the end of its line, after the time and the level.
#pragma once

#include <string_view>

namespace warren::tracker {

inline constexpr std::string_view kWorkIsDone = "tracker: the work is done";
/// A worker that had said that the work is done has more to do.
inline constexpr std::string_view kWorkGoesOn = "tracker: the work goes on";
inline constexpr std::string_view kAllHaveFinished = "tracker: all workers have finished";

}  // namespace warren::tracker
