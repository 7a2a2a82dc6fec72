#include "rabit_engine/base/timeline.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"
#include "wire/printable.h"

namespace warren {
namespace {

// Events are not buffered longer than this while new events are added, because programs are often killed.
constexpr std::chrono::seconds kFlush{1};
constexpr std::size_t kMostUnwritten = 64 << 10;
// Viewers keep microseconds in a double, which is not precise enough for nanoseconds since 1970: two
// consecutive events would overlap, and one of them would be dropped. Times therefore count from the last
// multiple of 2^20 seconds before the start.
constexpr std::int64_t kPeriod = (std::int64_t{1} << 20) * 1'000'000'000;
// Perfetto merges lines with the same number, even if they belong to different ranks, so every rank has its
// own range of numbers.
constexpr std::int64_t kLinesOfRank = 1'000'000;

/// Quotes the text as JSON. Bytes that are not valid UTF-8 become the code points with the same numbers.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t length = wire::Utf8Bytes(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (first == '"' || first == '\\') {
      quoted += '\\';
      quoted += text.front();
    } else if (first < 0x20 || length == 0) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(first));
    } else {
      quoted += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return quoted + '"';
}

std::string PathOf(const std::string& path, int rank) {
  constexpr std::string_view kEnding = ".json";
  if (!path.ends_with(kEnding)) return fmt::format("{}.{}", path, rank);
  return fmt::format("{}.{}{}", path.substr(0, path.size() - kEnding.size()), rank, kEnding);
}

}  // namespace

Timeline::Timeline(const std::string& path, int rank, const std::string& host, Listener listener)
    : listener_(std::move(listener)), writes_file_(!path.empty()), rank_(rank) {
  if (!writes_file_) return;
  file_name_ = PathOf(path, rank);
  file_ = CloseOnForkDescriptor(open(file_name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file_) {
    throw Misuse(fmt::format("rank {}: WARREN_TIMELINE: '{}' cannot be written: {}", rank, file_name_,
                             std::strerror(errno)));
  }
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  start_ns_ = std::chrono::nanoseconds(since_1970).count() % kPeriod;
  unwritten_.assign(1, '[');
  Write(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", rank,
                    Quoted(fmt::format("rank {} on {}", rank, host))));
  Write(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", rank,
                    rank));
}

Timeline::~Timeline() {
  Finish();
}

void Timeline::Finish() {
  if (NumForks() != num_forks_) return;
  const std::lock_guard lock(mutex_);
  if (!file_) return;
  unwritten_ += "\n]\n";
  Flush();
  file_.Close();
}

/// If events cannot be written, the timeline ends; this does not fail the job.
void Timeline::Flush() {
  std::string_view left = unwritten_;
  while (!left.empty()) {
    const ssize_t written = write(file_.fd(), left.data(), left.size());
    if (written < 0 && errno != EINTR) {
      Say("rabit: rank {}: WARREN_TIMELINE: '{}' cannot be written any more, so the timeline is incomplete: {}",
          rank_, file_name_, std::strerror(errno));
      file_.Close();
      break;
    }
    if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
  }
  unwritten_.clear();
}

std::int64_t Timeline::Nanoseconds(Clock::time_point time) const {
  return start_ns_ + std::chrono::nanoseconds(time - start_).count();
}

void Timeline::Write(const std::string& event) {
  unwritten_ += has_events_ ? ",\n" : "\n";
  unwritten_ += event;
  has_events_ = true;
}

void Timeline::Tell(const Line& line, std::string_view what, Clock::time_point begin, Clock::time_point end,
                    std::initializer_list<Number> numbers) const {
  wire::TracedEvent event;
  event.line = line.name.empty() ? std::string(line.owner) : fmt::format("{}: {}", line.owner, line.name);
  event.name = what;
  event.begin_ns = std::chrono::nanoseconds(begin.time_since_epoch()).count();
  event.length_ns =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, std::chrono::nanoseconds(end - begin).count()));
  for (const Number& number : numbers) event.numbers.emplace_back(number.key, number.value);
  listener_(std::move(event));
}

void Timeline::Add(const Line& line, std::string_view what, Clock::time_point begin, Clock::time_point end,
                   std::initializer_list<Number> numbers) {
  if (NumForks() != num_forks_) return;
  if (listener_) Tell(line, what, begin, end, numbers);
  if (!writes_file_) return;
  std::string arguments;
  for (const Number& number : numbers) {
    arguments += fmt::format("{}\"{}\":{}", arguments.empty() ? "" : ",", number.key, number.value);
  }
  const std::int64_t begin_ns = Nanoseconds(begin);
  const std::int64_t length_ns = Nanoseconds(end) - begin_ns;
  std::string key(line.owner);
  key += '\0';
  key += line.name;
  const std::lock_guard lock(mutex_);
  if (!file_) return;
  const auto [place, is_new] =
      lines_.try_emplace(key, rank_ * kLinesOfRank + static_cast<std::int64_t>(lines_.size()) + 1);
  if (is_new) {
    Write(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", rank_,
                      place->second, Quoted(line.name.empty() ? line.owner : line.name)));
  }
  Write(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{}.{:03},"dur":{}.{:03},"args":{{{}}}}})",
                    Quoted(what), rank_, place->second, begin_ns / 1000, begin_ns % 1000, length_ns / 1000,
                    length_ns % 1000, arguments));
  if (end - last_flush_ >= kFlush || unwritten_.size() >= kMostUnwritten) {
    Flush();
    last_flush_ = end;
  }
}

}  // namespace warren
