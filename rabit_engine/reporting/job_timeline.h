// Where a process's timeline goes (base/timeline.h): into a file of its own, by WARREN_TIMELINE, and to the
// tracker with its reports, by WARREN_REPORT_TIMELINE.
#pragma once

#include <memory>

#include "rabit_engine/base/communicator.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/base/timeline.h"

namespace warren::reporting {

/// Of this rank; null when nobody wants one. Throws Misuse when the file cannot be written.
std::shared_ptr<Timeline> NewTimeline(const Settings& settings, const Communicator& communicator);

}  // namespace warren::reporting
