// Kernel settings of the calling thread. Depends on nothing else in the tree.
#pragma once

#include <pthread.h>

#include <csignal>

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

/// Blocks all signals in the calling thread during the object's lifetime. Threads and processes that this
/// thread starts meanwhile also begin with all signals blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace warren::posix
