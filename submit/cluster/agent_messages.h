// What the script around a process elsewhere (script.h) tells dmlc-submit, in between what the process
// itself writes to its standard error: when it began, how it is doing, and how it ended.
//
// A message is one line: RS (036), the mark of the job, the index of the process, words, RS, newline. The
// mark is made anew for each job, so that nothing a process writes is taken for one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/process/sample.h"

namespace warren::submit {

/// One of them: the words behind the job's mark.
struct AgentMessage {
  std::size_t index = 0;  ///< of the process, in the plan
  std::string kind;       ///< "cores", "start", "usage", "stack", "stacks", "exit", "again", "fail"
  std::string text;       ///< what else it says
};

/// What a "usage" says: "ATTEMPT STATE TICKS TICKS_PER_SECOND RESIDENT_KB"; nothing: that is not what it
/// says.
std::optional<ProcessSample> ParseUsage(const std::string& text);

/// A mark for a job's messages, of letters and digits.
std::string NewJobMark();

/// Takes the messages out of a stream.
class AgentMessageReader {
 public:
  /// Longer ones are none, and their bytes are text. Enough for the "cores" of 2,000 of them.
  static constexpr std::size_t kMaxMessageBytes = 16384;

  explicit AgentMessageReader(const std::string& job_mark);

  /// Hands on what `bytes` and those kept from before contain. A beginning of a message is kept.
  void Append(std::string_view bytes, const std::function<void(std::string_view)>& on_text,
              const std::function<void(const AgentMessage&)>& on_message);
  /// At the end of the stream: what is kept is text.
  void Finish(const std::function<void(std::string_view)>& on_text);

 private:
  std::string begin_;
  std::string kept_;
};

}  // namespace warren::submit
