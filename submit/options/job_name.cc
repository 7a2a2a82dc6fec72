#include "submit/options/job_name.h"

#include "submit/process/command.h"

namespace warren::submit {

std::string JobName(const Options& options) {
  return options.job_name.empty() ? NameOfCommand(options.command) : options.job_name;
}

std::string QueuedJobName(const Options& options) {
  return options.job_name.empty() ? "dmlc-" + NameOfCommand(options.command) : options.job_name;
}

}  // namespace warren::submit
