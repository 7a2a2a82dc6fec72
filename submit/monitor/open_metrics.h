// The metrics of a job in the OpenMetrics text format, version 1.0, which Prometheus reads.
// docs/how-to/watching.md lists the metrics. Does no I/O; the length is linear in the number of workers.
#pragma once

#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

/// Returns the metrics. They do not contain the job's command, because metrics are public, and a command may
/// contain a password.
std::string OpenMetrics(const JobSnapshot& job);

}  // namespace warren::submit
