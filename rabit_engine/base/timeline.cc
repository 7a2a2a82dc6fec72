#include "rabit_engine/base/timeline.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "rabit_engine/base/error.h"

namespace warren {
namespace {

// What is written is in the file after so long, if the process goes on: programs are often killed.
constexpr std::chrono::seconds kFlush{1};
// Readers keep microseconds in a double, in which those since 1970 have no nanoseconds: two events that
// follow each other would overlap, and one would be dropped. So times begin anew every 2^20 seconds.
constexpr std::int64_t kPeriod = (std::int64_t{1} << 20) * 1'000'000'000;
// Perfetto takes lines of one number for the same, whatever their rank.
constexpr std::int64_t kLinesOfRank = 1'000'000;

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      quoted += '\\';
      quoted += letter;
    } else if (static_cast<unsigned char>(letter) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
    } else {
      quoted += letter;
    }
  }
  return quoted + '"';
}

std::string PathOf(const std::string& path, int rank) {
  constexpr std::string_view kEnding = ".json";
  if (!path.ends_with(kEnding)) return fmt::format("{}.{}", path, rank);
  return fmt::format("{}.{}{}", path.substr(0, path.size() - kEnding.size()), rank, kEnding);
}

}  // namespace

Timeline::Timeline(const std::string& path, int rank, const std::string& host) : rank_(rank) {
  const std::string own = PathOf(path, rank);
  file_ = std::fopen(own.c_str(), "we");
  if (file_ == nullptr) {
    throw Misuse(
        fmt::format("rank {}: WARREN_TIMELINE: '{}' cannot be written: {}", rank, own, std::strerror(errno)));
  }
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  start_ns_ = std::chrono::nanoseconds(since_1970).count() % kPeriod;
  std::fputs("[", file_);
  Write(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", rank,
                    Quoted(fmt::format("rank {} on {}", rank, host))));
  Write(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", rank,
                    rank));
}

Timeline::~Timeline() {
  std::fputs("\n]\n", file_);
  std::fclose(file_);
}

std::int64_t Timeline::Nanoseconds(Clock::time_point time) const {
  return start_ns_ + std::chrono::nanoseconds(time - start_).count();
}

void Timeline::Write(const std::string& event) {
  std::fputs(has_events_ ? ",\n" : "\n", file_);
  has_events_ = true;
  std::fwrite(event.data(), 1, event.size(), file_);
}

void Timeline::Add(std::string_view line, std::string_view what, Clock::time_point begin,
                   Clock::time_point end, std::initializer_list<Number> numbers) {
  std::string arguments;
  for (const Number& number : numbers) {
    arguments += fmt::format("{}\"{}\":{}", arguments.empty() ? "" : ",", number.key, number.value);
  }
  const std::int64_t begin_ns = Nanoseconds(begin);
  const std::int64_t length_ns = Nanoseconds(end) - begin_ns;
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = lines_.try_emplace(
      std::string(line), rank_ * kLinesOfRank + static_cast<std::int64_t>(lines_.size()) + 1);
  if (is_new) {
    Write(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", rank_,
                      place->second, Quoted(line)));
  }
  Write(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{}.{:03},"dur":{}.{:03},"args":{{{}}}}})",
                    Quoted(what), rank_, place->second, begin_ns / 1000, begin_ns % 1000, length_ns / 1000,
                    length_ns % 1000, arguments));
  if (end - last_flush_ >= kFlush) {
    std::fflush(file_);
    last_flush_ = end;
  }
}

}  // namespace warren
