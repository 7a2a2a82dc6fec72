// Decides where the timeline of a process goes (base/timeline.h): to a separate file (WARREN_TIMELINE), and
// to the tracker with the reports (WARREN_REPORT_TIMELINE).
#pragma once

#include <memory>

#include "rabit_engine/base/settings.h"
#include "rabit_engine/base/timeline.h"
#include "rabit_engine/call/communicator.h"

namespace warren::reporting {

/// Returns the timeline of this rank, or null if no timeline was asked for. Throws Misuse if the file cannot
/// be written.
std::shared_ptr<Timeline> NewTimeline(const Settings& settings, const Communicator& communicator);

}  // namespace warren::reporting
