// A job from its first process to its exit code: starts what the plan says, keeps the tracker served,
// restarts what fails, stops everything when the job cannot go on, and tells the user why.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "submit/command.h"
#include "submit/options.h"
#include "submit/output/console.h"
#include "submit/plan.h"

namespace warren::submit {

/// Exit codes besides those of the processes.
inline constexpr int kTrouble = 1;
inline constexpr int kUsage = 2;
inline constexpr int kReaderGone = 141;  ///< as a program killed by SIGPIPE

struct JobResult {
  int exit_code = 0;         ///< of dmlc-submit
  bool interrupted = false;  ///< by a signal: nobody may be reading the output any more
};

/// Runs the job on the given io_context. `farewell`: commands of a shell that are run should dmlc-submit be
/// killed. Throws std::runtime_error when the job cannot begin.
JobResult RunJob(boost::asio::io_context& io, Console& console, const Options& options,
                 const FoundCommand& command, const std::string& farewell);

/// What --dry-run prints.
std::string ShowDryRun(const Options& options, const FoundCommand& command);

}  // namespace warren::submit
