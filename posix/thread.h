// Kernel settings of the calling thread. Depends on nothing else in the tree.
#pragma once

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace warren::posix {

/// Sets the timer slack of this thread to 1 ns instead of the default of 50 us, so that timed waits end on
/// time. Does nothing if the kernel has no such setting.
inline void WakePromptly() {
#ifdef PR_SET_TIMERSLACK
  prctl(PR_SET_TIMERSLACK, 1UL);
#endif
}

}  // namespace warren::posix
