// Deaths on order, to try out how a program recovers: mock=rank,version,seqno,trial ends that rank's process
// before its call number seqno (from 0) of that version, in its trial-th life (0: the first). Only
// librabit_mock does it.
#pragma once

#include <cstdint>
#include <string>

#include "rabit_engine/base/settings.h"

namespace warren::recovery {

/// Called before each call and checkpoint. Does nothing here; in librabit_mock (mock.cc) it may not return.
/// Throws Misuse for an argument that is not understood.
void MockBefore(const char* call, const Settings& settings, int rank, int version, std::uint64_t seqno);

}  // namespace warren::recovery
