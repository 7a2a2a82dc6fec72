// A job as metrics in OpenMetrics' text format, version 1.0, which Prometheus reads. docs/how-to/watching.md
// lists them. Pure; its length is linear in the number of workers.
#pragma once

#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

/// The command is left out: metrics are shown to anybody, and a command may have a password in it.
std::string OpenMetrics(const JobSnapshot& job);

}  // namespace warren::submit
