// A job from its first process to its exit code: the thin layer around its policy (supervisor.h), which
// starts what that wants started, keeps the tracker served, and tells it what happens.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "submit/command.h"
#include "submit/options.h"
#include "submit/output/console.h"
#include "submit/supervisor.h"

namespace warren::submit {

/// The exit code for a mistake in the options.
inline constexpr int kUsage = 2;

/// Runs the job on the given io_context. `cleanup`: commands of a shell that are run should dmlc-submit be
/// killed. Throws std::runtime_error when the job cannot begin.
JobResult RunJob(boost::asio::io_context& io, Console& console, const Options& options,
                 const FoundCommand& command, const std::string& cleanup);

/// What --dry-run prints.
std::string ShowDryRun(const Options& options, const FoundCommand& command);

}  // namespace warren::submit
