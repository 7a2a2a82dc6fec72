// A log message of dmlc-submit as a value, which state machines can return.
#pragma once

#include <string>
#include <string_view>

namespace warren::submit {

enum class Severity { kDebug, kInfo, kWarning, kError };

/// "debug", "info", "warning", "error".
std::string_view Name(Severity severity);

struct LogLine {
  Severity severity;
  std::string text;
};

/// Logs the message through spdlog, as set up by StartLogging (log.h).
void Write(const LogLine& line);

}  // namespace warren::submit
