// The error for a peer that is alive but does not respond.
#pragma once

#include <string>

#include "rabit_engine/transport/transport.h"

namespace warren {

/// Throws TimedOut for rank `awaited`. `rank`: this rank; `names`: how the message names the awaited rank
/// ("rank 3 at 10.0.0.7:4100"); `waited`: the time that this rank has waited for it.
[[noreturn]] void ThrowLate(int rank, int awaited, const std::string& names, Clock::duration waited);

}  // namespace warren
