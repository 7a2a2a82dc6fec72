// The error for a peer that is alive but does not respond.
#pragma once

#include <string>

#include "rabit_engine/transport/transport.h"

namespace warren {

/// Throws TimedOut for rank `awaited`. The message states how long `rank`, on this host, has waited for
/// `names` ("rank 3 at 10.0.0.7:4100"), which include `awaited`.
[[noreturn]] void ThrowLate(int rank, int awaited, const std::string& names, Clock::duration waited);

}  // namespace warren
