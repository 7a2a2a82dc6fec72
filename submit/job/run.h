// Runs a job from its first process to its exit code: a thin layer around the job's policy (supervisor.h). It
// carries out the policy's actions, serves the tracker, and reports events to the policy.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "submit/job/supervisor.h"
#include "submit/options/options.h"
#include "submit/output/console.h"
#include "submit/process/command.h"

namespace warren::submit {

/// The exit code for a mistake in the options.
inline constexpr int kUsage = 2;

/// Runs the job on the given io_context. `cleanup`: shell commands to run if dmlc-submit is killed. Throws
/// std::runtime_error if the job cannot begin.
JobResult RunJob(boost::asio::io_context& io, Console& console, const Options& options,
                 const FoundCommand& command, const std::string& cleanup);

/// The output of --dry-run.
std::string ShowDryRun(const Options& options, const FoundCommand& command);

}  // namespace warren::submit
