// The shell scripts of this folder as strings, without comment lines that are not indented.
#pragma once

namespace warren::submit {

extern const char* const kCommonScript;   ///< common.sh
extern const char* const kMarksScript;    ///< marks.sh
extern const char* const kUsageScript;    ///< usage.sh
extern const char* const kStacksScript;   ///< stacks.sh
extern const char* const kGangScript;     ///< gang.sh
extern const char* const kPodScript;      ///< pod.sh
extern const char* const kWatchedScript;  ///< watched.sh

}  // namespace warren::submit
