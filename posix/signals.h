// Signals in the calling thread. Depends on nothing else in the tree.
#pragma once

#include <csignal>

namespace warren::posix {

/// Blocks all signals in the calling thread while the object exists. A process or thread that is started
/// meanwhile begins with all signals blocked: a new process then does not run its parent's handlers, and a
/// new thread leaves the signals to the other threads.
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
