// The name of a job.
#pragma once

#include <string>

#include "submit/options/options.h"

namespace warren::submit {

/// The value of --jobname or, without that option, the name of the command (NameOfCommand).
std::string JobName(const Options& options);
/// The name of the job in a cluster's queue: like JobName, but with "dmlc-" before the command's name.
std::string QueuedJobName(const Options& options);

}  // namespace warren::submit
