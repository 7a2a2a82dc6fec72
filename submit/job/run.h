// Runs a job from its first process to its exit code: a thin layer around the job's policy (supervisor.h). It
// carries out the policy's actions, serves the tracker, and reports events to the policy.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "submit/job/supervisor.h"
#include "submit/options/options.h"
#include "submit/output/console.h"
#include "submit/process/command.h"

namespace warren::submit {

/// The exit code for a mistake in the options.
inline constexpr int kUsage = 2;

/// The caller's parameters for the start of a job.
struct JobStart {
  std::chrono::system_clock::time_point began = std::chrono::system_clock::now();
  std::string cleanup = {};  ///< shell commands to run if dmlc-submit is killed
  /// Called before the first process is started, when the tracker, if dmlc-submit runs it, already listens.
  /// `record_error`: the error in writing the job's record, or empty. If the callback throws a
  /// std::runtime_error, the job does not begin.
  std::function<void(const std::string& record_error)> on_begin = nullptr;
};

/// Runs the job on this io_context until the job is over. Throws std::runtime_error if the job cannot begin.
JobResult RunJob(boost::asio::io_context& io, Console& console, const Options& options,
                 const FoundCommand& command, const JobStart& start);

/// The output of --dry-run.
std::string ShowDryRun(const Options& options, const FoundCommand& command);

}  // namespace warren::submit
