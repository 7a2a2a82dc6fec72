// What is said of a peer that is alive and does not come.
#pragma once

#include <string>

#include "rabit_engine/transport/transport.h"

namespace warren {

/// Throws TimedOut: `rank`, on this host, has waited so long for others, of whom `awaited` is one: `names`
/// ("rank 3 at 10.0.0.7:4100").
[[noreturn]] void ThrowLate(int rank, int awaited, const std::string& names, Clock::duration waited);

}  // namespace warren
