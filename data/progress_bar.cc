#include "data/progress_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace warren::data {
namespace {

constexpr auto kFirst = std::chrono::seconds(1);
constexpr auto kEvery = std::chrono::milliseconds(200);
constexpr std::size_t kUsualWidth = 80;
constexpr int kBarWidth = 24;

std::size_t TerminalWidth() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;
}

std::string Amount(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, unit > 0 && bytes < 10 ? 1 : 0, kUnits[unit]);
}

}  // namespace

std::string DescribeProgress(const std::string& what, const Progress& progress, double seconds,
                             std::size_t width) {
  const auto bytes = static_cast<double>(progress.bytes);
  const double speed = seconds > 0 ? bytes / seconds : 0;
  std::string line;
  // Decompressed text can exceed the known total, which is then meaningless.
  if (progress.bytes_total >= progress.bytes && progress.bytes_total > 0) {
    const double share = bytes / static_cast<double>(progress.bytes_total);
    const int filled = static_cast<int>(share * kBarWidth);
    const std::string bar = std::string(filled, '=') + std::string(kBarWidth - filled, ' ');
    line = fmt::format("{}: [{}] {:.0f} %, {}/s", what, bar, 100 * share, Amount(speed));
    if (speed > 0)
      line += fmt::format(", {:.0f} s to go", (static_cast<double>(progress.bytes_total) - bytes) / speed);
  } else {
    line = fmt::format("{}: {}, {} rows, {}/s", what, Amount(bytes), progress.rows, Amount(speed));
  }
  return line.substr(0, width);
}

ProgressBar::ProgressBar(std::string what)
    : what_(std::move(what)), is_terminal_(isatty(STDERR_FILENO) != 0), next_(begin_ + kFirst) {}

ProgressBar::~ProgressBar() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void ProgressBar::Show(const Progress& progress) {
  if (!is_terminal_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kEvery;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  fmt::print(stderr, "\r{}\033[K", DescribeProgress(what_, progress, seconds, TerminalWidth() - 1));
}

}  // namespace warren::data
