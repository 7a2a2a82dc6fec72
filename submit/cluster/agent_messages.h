// Messages from the wrapper script of a remote process (script.h). They are interleaved with the lines that
// the process itself writes to its standard error, and report its start, resource usage, stacks and end.
//
// A message is one line: RS (octal 036); the job mark, the index of the process, the kind and the text of the
// message, separated by spaces; RS; newline. The mark is random and differs for each job, so that the output
// of a process is not mistaken for a message.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "submit/process/planned_process.h"
#include "submit/process/process.h"
#include "submit/process/sample.h"

namespace warren::submit {

/// One message, without the job mark.
struct AgentMessage {
  std::size_t index = 0;  ///< index of the process in the plan
  /// One of "cores", "start", "usage", "stack", "stacks", "ended", "exit", "stopped", "again" and "fail".
  std::string kind;
  std::string text;  ///< the part of the message after the kind
};

/// Parses the text of a "start" message: "ATTEMPT PID HOST".
Started ParseStart(const std::string& text);
/// Parses the text of a message about the end of an attempt ("exit", "stopped", "again"): "ATTEMPT CODE",
/// where CODE is a shell's `$?`.
ExitStatus ParseEnd(const std::string& text);
/// Parses the text of a "usage" message: "ATTEMPT STATE TICKS TICKS_PER_SECOND RESIDENT_KB". Returns nullopt
/// if it is malformed.
std::optional<ProcessSample> ParseUsage(const std::string& text);

/// A new random mark for a job's messages, made of letters and digits.
std::string NewJobMark();

/// Separates the messages in a stream from the other text.
class AgentMessageReader {
 public:
  /// An unfinished message longer than this is treated as text. The "cores" message of a host with 2,000
  /// hardware threads fits.
  static constexpr std::size_t kMaxMessageBytes = 16384;

  explicit AgentMessageReader(const std::string& job_mark);

  /// Passes on the text and the messages in `bytes`. An incomplete message at the end is kept for the next
  /// call; a malformed one is dropped.
  void Append(std::string_view bytes, const std::function<void(std::string_view)>& on_text,
              const std::function<void(const AgentMessage&)>& on_message);
  /// Passes on a kept incomplete message as text. Call at the end of the stream.
  void Finish(const std::function<void(std::string_view)>& on_text);

 private:
  std::string begin_;
  std::string kept_;
};

}  // namespace warren::submit
