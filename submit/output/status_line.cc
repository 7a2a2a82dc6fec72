#include "submit/output/status_line.h"

#include <algorithm>
#include <utility>

#include "wire/printable.h"

namespace warren::submit {
namespace {

constexpr std::string_view kErase = "\r\x1b[J";

bool GoesOnWithCharacter(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

}  // namespace

void StatusLine::Set(std::string_view text, TimePoint now) {
  std::string shown = wire::PrintableLine(text);
  if (shown == text_) return;
  text_ = std::move(shown);
  DrawSoon(now);
}

void StatusLine::Refresh(TimePoint now) {
  if (is_set()) DrawSoon(now);
}

void StatusLine::DrawSoon(TimePoint now) {
  if (due_) return;
  due_ = last_ ? std::max(now, *last_ + kStatusInterval) : now;
}

std::string StatusLine::BeforeOutput() {
  if (!std::exchange(drawn_, false)) return {};
  return std::string(kErase);
}

void StatusLine::AfterOutput(std::chrono::milliseconds patience, TimePoint now) {
  if (!is_set()) return;
  if (patience.count() > 0) {
    due_ = now + patience;
    return;
  }
  // The last output line is finished, so drawing need not wait for the rest of it.
  const TimePoint soon = last_ ? std::max(now, *last_ + kStatusInterval) : now;
  due_ = std::min(due_.value_or(soon), soon);
}

std::string StatusLine::Draw(int width, TimePoint now) {
  due_.reset();
  last_ = now;
  std::string drawing = BeforeOutput();
  if (!is_set()) return drawing;
  drawn_ = true;
  // The last column stays free, since some terminals wrap the line if it is used.
  return drawing + CutToColumns(text_, width - 1) + '\r';
}

std::string StatusLine::Hide() {
  text_.clear();
  due_.reset();
  return BeforeOutput();
}

std::string CutToColumns(std::string_view text, int columns) {
  std::size_t i = 0;
  for (int column = 0; i < text.size() && column < columns; ++column) {
    do ++i;
    while (i < text.size() && GoesOnWithCharacter(text[i]));
  }
  return std::string(text.substr(0, i));
}

}  // namespace warren::submit
