// Lines of rabit-tracker's log by which dmlc-submit follows an elastic job whose tracker runs on another
// machine. Each constant is the end of a line, after the timestamp and the level.
#pragma once

#include <string_view>

namespace warren::tracker {

inline constexpr std::string_view kWorkIsDone = "tracker: the work is done";
/// A worker that had reported that the work was done has more to do.
inline constexpr std::string_view kWorkGoesOn = "tracker: the work goes on";
inline constexpr std::string_view kAllHaveFinished = "tracker: all workers have finished";

}  // namespace warren::tracker
