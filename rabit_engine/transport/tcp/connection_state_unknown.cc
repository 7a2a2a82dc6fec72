// Systems other than Linux: a host that does not answer is noticed by the kernel's own probes alone
// (PrepareLink).
#include "rabit_engine/transport/tcp/connection_state.h"

namespace warren::tcp {

int Unanswered(int /*fd*/) {
  return 0;
}

bool IsFull(int /*fd*/) {
  return false;
}

}  // namespace warren::tcp
