// A message of dmlc-submit as a value: what its state machines have to say.
#pragma once

#include <string>

namespace warren::submit {

enum class Severity { kDebug, kInfo, kWarning, kError };

struct LogLine {
  Severity severity;
  std::string text;
};

/// Through spdlog, wherever StartLogging (log.h) has sent that.
void Write(const LogLine& line);

}  // namespace warren::submit
