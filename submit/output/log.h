// Logging of dmlc-submit and the tracker, through spdlog, to standard error and to --log-file.
#pragma once

#include <string>
#include <string_view>

#include "submit/output/console.h"

namespace warren::submit {

struct LogSettings {
  bool debug = false;
  bool quiet = false;  ///< only warnings and errors go to the console
  LogFormat format = LogFormat::kText;
  std::string file = {};  ///< the log file; empty for none
};

/// Sends every message to the console as "dmlc-submit: ..." and, with time and level, to the file. `console`
/// must live until StopLogging. Throws std::runtime_error if the file cannot be written; messages then go to
/// the console only. If a later write to the file fails, as on a full disk, a warning says so once.
void StartLogging(Console& console, const LogSettings& settings);
/// Writes to the file, if any, the text that a worker printed through the tracker, line by line.
void LogTrackerPrint(std::string_view text);
void StopLogging();

}  // namespace warren::submit
