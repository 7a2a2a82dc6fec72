#include "wire/bytes.h"

#include <fmt/format.h>

#include <limits>

namespace warren::wire {
namespace {

/// The number of consumed bytes above which Append drops them from the buffer. Without this limit, they would
/// be dropped only when the buffer becomes empty, which may never happen.
constexpr std::size_t kMostConsumedBytes = 4096;

}  // namespace

Writer& Writer::String(std::string_view text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw std::length_error(
        fmt::format("a string of {} bytes does not fit into a tracker message", text.size()));
  }
  Int(static_cast<std::int32_t>(text.size()));
  bytes_.append(text);
  return *this;
}

void Reader::Append(std::string_view bytes) {
  if (consumed_ > kMostConsumedBytes) {
    buffer_.erase(0, consumed_);
    consumed_ = 0;
  }
  buffer_.append(bytes);
}

std::string_view Reader::Peek(std::size_t count) const {
  if (available() < count) return {};
  return std::string_view(buffer_).substr(consumed_, count);
}

void Reader::Consume(std::size_t count) {
  consumed_ += count;
  if (consumed_ == buffer_.size()) {
    buffer_.clear();
    consumed_ = 0;
  }
}

std::optional<std::int32_t> Reader::PeekInt(std::size_t offset) const {
  std::int32_t value = 0;
  const std::string_view raw = Peek(offset + sizeof value);
  if (raw.empty()) return std::nullopt;
  std::memcpy(&value, raw.data() + offset, sizeof value);
  return value;
}

std::optional<std::int32_t> Reader::Int() {
  const auto value = PeekInt();
  if (value) Consume(sizeof *value);
  return value;
}

std::optional<std::string> Reader::Bytes(std::size_t count) {
  if (available() < count) return std::nullopt;
  std::string bytes(Peek(count));
  Consume(count);
  return bytes;
}

std::optional<std::string> Reader::String(std::string_view what, std::size_t max_bytes) {
  const auto length = PeekInt();
  if (!length) return std::nullopt;
  if (*length < 0 || static_cast<std::size_t>(*length) > max_bytes) {
    throw ProtocolError(fmt::format("the {} announces {} bytes, expected 0 to {}", what, *length, max_bytes));
  }
  const std::size_t whole = sizeof *length + static_cast<std::size_t>(*length);
  const std::string_view field = Peek(whole);
  if (field.empty()) return std::nullopt;
  std::string text(field.substr(sizeof *length));
  Consume(whole);
  return text;
}

}  // namespace warren::wire
