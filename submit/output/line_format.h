// The format of output lines, for people or for programs: --log-format. Does no I/O: converts values and the
// time to text.
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
  kText,  ///< for people: the line after a prefix
  kJson,  ///< for programs: one JSON object per line
};

/// Whether labels are colored: --color. kAuto: only on a terminal, and not if NO_COLOR is set.
enum class ColorChoice { kAuto, kAlways, kNever };

/// The source of a line.
struct Speaker {
  std::uint64_t id = 0;  ///< not 0; unique for each stream of each process
  std::string label;     ///< the text in the brackets: "3", "server 0"
  int color = 0;         ///< any number; equal numbers have the same color

  std::string source = "worker";  ///< "worker", "server", "scheduler" or "launcher", which starts the others
  std::optional<int> rank = {};
  std::optional<int> task = {};
};

/// The label in brackets, followed by a space; colored or plain.
std::string Prefix(const Speaker& speaker, bool colored);
/// "error: " or "warning: "; empty for other severities.
std::string_view SeverityPrefix(Severity severity);

class LineFormat {
 public:
  using Time = std::chrono::system_clock::time_point;
  struct Line {
    std::string prefix;  ///< omitted if the text continues an unfinished line of the same speaker
    std::string text;
    bool redraws = false;  ///< the text, with its prefix, replaces the speaker's unfinished line
  };

  virtual ~LineFormat() = default;
  /// Formats a line with its newline, or a piece of a long or unfinished line (line_splitter.h).
  virtual Line OfProcess(Time time, Stream stream, const Speaker& speaker, std::string_view piece,
                         bool colored) const = 0;
  /// Formats a message of dmlc-submit, given without its newline.
  virtual std::string Message(Time time, Severity severity, std::string_view text) const = 0;
  /// Formats lines that a worker printed through the tracker; the last one may lack a newline.
  virtual std::string TrackerPrint(Time time, std::string_view text) const = 0;
  /// Adds the time to a JSON object ("{...}"). Returns an empty string if the format is for people.
  virtual std::string Object(Time time, std::string_view json_object_without_time) const = 0;
  /// Whether people read this format, so that a status line makes sense.
  virtual bool is_for_people() const = 0;
};

std::unique_ptr<LineFormat> MakeLineFormat(LogFormat format);

/// The time as in RFC 3339, in UTC with milliseconds: "2026-11-27T01:11:24.042Z".
std::string Rfc3339(LineFormat::Time time);

}  // namespace warren::submit
