// The parts of tracker messages: int32 in the sender's native byte order, strings (an int32 byte length, then
// the bytes, no NUL), and, for authentication.h, bytes without a length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace warren::wire {

/// Thrown if a peer's bytes break the protocol. `what()` says what was found or expected; the receiver drops
/// the connection.
class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Builds a message, field by field.
class Writer {
 public:
  Writer& Int(std::int32_t value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
    return *this;
  }
  /// Throws std::length_error if the length of `text` does not fit an int32.
  Writer& String(std::string_view text);
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Collects bytes as they arrive, and returns whole fields. If a field has not fully arrived, the functions
/// return `std::nullopt` and consume nothing, so that the caller can try again after the next Append.
class Reader {
 public:
  void Append(std::string_view bytes);
  std::size_t available() const { return buffer_.size() - consumed_; }

  std::optional<std::int32_t> Int();
  std::optional<std::string> Bytes(std::size_t count);
  /// `what` names the field in errors. Throws ProtocolError as soon as the announced length is known to be
  /// negative or above `max_bytes`, before so many bytes are buffered.
  std::optional<std::string> String(std::string_view what, std::size_t max_bytes);
  /// Returns the next `count` bytes without consuming them; empty if fewer have arrived. The view is valid
  /// until the next call of a function that is not const.
  std::string_view Peek(std::size_t count) const;
  /// Returns the integer `offset` bytes ahead without consuming it.
  std::optional<std::int32_t> PeekInt(std::size_t offset = 0) const;

 private:
  void Consume(std::size_t count);

  std::string buffer_;
  std::size_t consumed_ = 0;
};

}  // namespace warren::wire
