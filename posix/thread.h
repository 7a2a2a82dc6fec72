// What a thread asks of the kernel. Needs nothing else of the tree.
#pragma once

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace warren::posix {

/// The limits of this thread's waits are kept to the microsecond, not to 50 of them, where the kernel has
/// both.
inline void WakePromptly() {
#ifdef PR_SET_TIMERSLACK
  prctl(PR_SET_TIMERSLACK, 1UL);
#endif
}

}  // namespace warren::posix
