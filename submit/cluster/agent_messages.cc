#include "submit/cluster/agent_messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <random>
#include <sstream>

namespace warren::submit {
namespace {

constexpr char kSeparator = '\036';

/// Parses a message without its job mark, such as "3 exit 0 137".
std::optional<AgentMessage> ParseMessage(std::string_view words) {
  AgentMessage message;
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), message.index);
  if (error != std::errc{} || end == words.data() + words.size() || *end != ' ') return std::nullopt;
  words.remove_prefix(static_cast<std::size_t>(end - words.data()) + 1);
  const std::size_t space = words.find(' ');
  message.kind = words.substr(0, space);
  if (space != std::string_view::npos) message.text = words.substr(space + 1);
  return message;
}

}  // namespace

Started ParseStart(const std::string& text) {
  std::istringstream words(text);
  int attempt = 0;
  Started where;
  words >> attempt >> where.pid >> where.host;
  return where;
}

ExitStatus ParseEnd(const std::string& text) {
  std::istringstream words(text);
  int attempt = 0;
  int code = 0;
  words >> attempt >> code;
  return FromShellCode(code);
}

std::optional<ProcessSample> ParseUsage(const std::string& text) {
  std::istringstream words(text);
  int attempt = 0;
  std::string state;
  double ticks = 0;
  double ticks_per_second = 0;
  std::uint64_t resident_kb = 0;
  words >> attempt >> state >> ticks >> ticks_per_second >> resident_kb;
  if (!words || state.size() != 1 || !(ticks_per_second > 0)) return std::nullopt;
  return ProcessSample{state.front(), ticks / ticks_per_second, resident_kb << 10};
}

std::string NewJobMark() {
  std::random_device random;
  return fmt::format("w{:08x}{:08x}p{}", random(), random(), getpid());
}

AgentMessageReader::AgentMessageReader(const std::string& job_mark)
    : begin_(fmt::format("{}{} ", kSeparator, job_mark)) {}

void AgentMessageReader::Append(std::string_view bytes, const std::function<void(std::string_view)>& on_text,
                                const std::function<void(const AgentMessage&)>& on_message) {
  kept_ += bytes;
  std::string_view rest = kept_;
  const auto say = [&](std::size_t count) {
    if (count > 0) on_text(rest.substr(0, count));
    rest.remove_prefix(count);
  };
  while (!rest.empty()) {
    say(std::min(rest.find(kSeparator), rest.size()));
    if (rest.empty()) break;
    if (!rest.starts_with(begin_)) {
      if (std::string_view(begin_).starts_with(rest)) break;  // the rest of the mark may follow
      say(1);
      continue;
    }
    const std::size_t end = rest.find("\036\n", begin_.size());
    if (end == std::string_view::npos) {
      if (rest.size() <= kMaxMessageBytes) break;
      say(1);
      continue;
    }
    if (const auto message = ParseMessage(rest.substr(begin_.size(), end - begin_.size())))
      on_message(*message);
    rest.remove_prefix(end + 2);
  }
  kept_ = std::string(rest);
}

void AgentMessageReader::Finish(const std::function<void(std::string_view)>& on_text) {
  if (!kept_.empty()) on_text(kept_);
  kept_.clear();
}

}  // namespace warren::submit
