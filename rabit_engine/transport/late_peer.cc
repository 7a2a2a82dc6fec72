#include "rabit_engine/transport/late_peer.h"

#include <fmt/format.h>

#include <chrono>

#include "posix/host_name.h"
#include "rabit_engine/base/error.h"

namespace warren {

void ThrowLate(int rank, int awaited, const std::string& names, Clock::duration waited) {
  const double seconds = std::chrono::duration<double>(waited).count();
  throw TimedOut(
      fmt::format(
          "rank {} on {} has waited {:.{}f} s for {} (rabit_timeout_sec, or the call's own timeout): alive, but stopped, stuck or busy elsewhere",
          rank, posix::HostName(), seconds, seconds < 0.9 ? 3 : 1, names),
      awaited);
}

}  // namespace warren
