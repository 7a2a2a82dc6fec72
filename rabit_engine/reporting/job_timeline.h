// Decides where the timeline of a process (base/timeline.h) is written: to a file per rank (WARREN_TIMELINE),
// to the tracker with the reports (WARREN_REPORT_TIMELINE), or both.
#pragma once

#include <memory>

#include "rabit_engine/base/settings.h"
#include "rabit_engine/base/timeline.h"
#include "rabit_engine/call/communicator.h"

namespace warren::reporting {

/// Returns the timeline of this rank; null if none was requested, or only one for the tracker and this
/// process does not report. Throws Misuse if the file cannot be written.
std::shared_ptr<Timeline> NewTimeline(const Settings& settings, const Communicator& communicator);

}  // namespace warren::reporting
