// Messages of dmlc-submit and the tracker: through spdlog to standard error, and to --log-file.
#pragma once

#include <string>
#include <string_view>

#include "submit/output/console.h"

namespace warren::submit {

struct LogSettings {
  bool debug = false;
  bool quiet = false;  ///< the console hears of warnings and errors only
  LogFormat format = LogFormat::kText;
  std::string file = {};  ///< empty: none
};

/// Sends every message to the console as "dmlc-submit: ..." and, with the time and level, to the file. The
/// console must live until StopLogging. Throws std::runtime_error when the file cannot be written; messages
/// go to the console then.
void StartLogging(Console& console, const LogSettings& settings);
/// Writes what a worker printed by way of the tracker to the file, if there is one, line by line.
void LogTrackerPrint(std::string_view text);
void StopLogging();

}  // namespace warren::submit
