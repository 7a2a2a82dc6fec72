// For systems other than Linux, where the state is unknown. There, only the kernel's own probes (see
// PrepareLink) detect a host that does not answer, and all links count as slow (PackingPolicy).
#include "rabit_engine/transport/tcp/connection_state.h"

namespace warren::tcp {

int Unanswered(int /*fd*/) {
  return 0;
}

bool IsFull(int /*fd*/) {
  return false;
}

SendProgress ProgressOf(int /*fd*/) {
  return {};
}

}  // namespace warren::tcp
