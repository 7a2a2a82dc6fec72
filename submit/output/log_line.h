// A log message of dmlc-submit as a value, which state machines can return.
#pragma once

#include <string>

namespace warren::submit {

enum class Severity { kDebug, kInfo, kWarning, kError };

struct LogLine {
  Severity severity;
  std::string text;
};

/// Logs the message through spdlog, as set up by StartLogging (log.h).
void Write(const LogLine& line);

}  // namespace warren::submit
