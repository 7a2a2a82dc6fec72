// Messages of dmlc-submit and the tracker: through spdlog to standard error, and to --log-file.
#pragma once

#include <string>

#include "submit/output/console.h"

namespace warren::submit {

/// Sends every message to the console as "dmlc-submit: ..." and, unless `file` is empty, with the time and
/// level to that file. The console must live until StopLogging. Throws std::runtime_error when the file
/// cannot be written; messages go to the console then.
void StartLogging(Console& console, bool debug, const std::string& file);
void StopLogging();

}  // namespace warren::submit
