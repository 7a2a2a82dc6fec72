// Ends processes on request, to test how a program recovers: mock=rank,version,seqno,trial ends that rank's
// process before its call number seqno (from 0) of that version, if the process has been restarted trial
// times. Only librabit_mock does this.
#pragma once

#include <cstdint>
#include <string_view>

#include "rabit_engine/base/settings.h"

namespace warren::recovery {

/// Called before each call whose result may be kept, before each checkpoint and before Finalize. Does nothing
/// in librabit; in librabit_mock (mock.cc) it may end the process. Throws Misuse if a mock setting is
/// malformed.
void MockBefore(std::string_view call, const Settings& settings, int rank, int version, std::uint64_t seqno);

}  // namespace warren::recovery
