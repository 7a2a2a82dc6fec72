// How what is said looks, to people or to programs: --log-format. Pure: values and the time in, bytes out.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "submit/output/log_line.h"
#include "submit/process/stream.h"

namespace warren::submit {

enum class LogFormat {
  kText,  ///< a prefix and the line
  kJson,  ///< one JSON object a line
};

/// Whose output a line is.
struct Speaker {
  std::uint64_t id = 0;  ///< not 0; another for each stream of each process
  std::string label;     ///< what stands in the brackets: "3", "server 0"
  int color = 0;         ///< any number; the same one is always shown in the same colour

  std::string source = "worker";  ///< "worker", "server", "scheduler", or "launcher": what started them
  std::optional<int> rank = {};
  std::optional<int> task = {};
};

/// The label in brackets and a space, in colour or plain.
std::string Prefix(const Speaker& speaker, bool colored);
/// "error: " and the like; empty for what is none.
std::string_view SeverityPrefix(Severity severity);

class LineFormat {
 public:
  using Time = std::chrono::system_clock::time_point;
  struct Line {
    std::string prefix;  ///< left out where the text goes on with an unfinished line of the same speaker
    std::string text;
    bool redraws = false;  ///< the line begins anew, with its prefix, over what the speaker wrote of it
  };

  virtual ~LineFormat() = default;
  /// A line with its newline, or a piece of a long or unfinished one (line_splitter.h).
  virtual Line OfProcess(Time time, Stream stream, const Speaker& speaker, std::string_view piece,
                         bool colored) const = 0;
  /// A message of dmlc-submit, without its newline.
  virtual std::string Message(Time time, Severity severity, std::string_view text) const = 0;
  /// What a worker printed by way of the tracker: lines, the last perhaps without a newline.
  virtual std::string TrackerPrint(Time time, std::string_view text) const = 0;
  /// A JSON object ("{...}") with the time put into it; empty where people read.
  virtual std::string Object(Time time, std::string_view json_object_without_time) const = 0;
  /// Colours and a status line have a meaning.
  virtual bool is_for_people() const = 0;
};

std::unique_ptr<LineFormat> MakeLineFormat(LogFormat format);

/// RFC 3339 in UTC with milliseconds: "2026-11-27T01:11:24.042Z"
std::string Rfc3339(LineFormat::Time time);

}  // namespace warren::submit
