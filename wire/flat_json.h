// JSON objects as they stand in messages: names and plain values. What lies deeper is passed over.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace warren::wire {

/// The whole numbers and texts of one JSON object, without what is nested in it.
class FlatJson {
 public:
  /// `what` names the message in errors. Throws ProtocolError when `text` is no JSON object. Bytes that are
  /// no UTF-8 become U+FFFD, and a backslash before a `u` that is no escape stands for itself: XGBoost writes
  /// both.
  FlatJson(std::string_view what, std::string_view text);

  /// Throws ProtocolError when there is no whole number of that name from `low` to `high`.
  std::int32_t Int(std::string_view name, std::int32_t low, std::int32_t high) const;
  /// Throws ProtocolError when there is no text of that name with at most `max_bytes` bytes.
  std::string Text(std::string_view name, std::size_t max_bytes) const;

 private:
  struct Value {
    std::string shown;  ///< as it may stand in an error
    std::optional<std::int64_t> number;
    std::optional<std::string> text;
  };
  class Reader;
  const Value* Find(std::string_view name) const;
  [[noreturn]] void Refuse(std::string_view name, std::string_view expected) const;

  std::string what_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace warren::wire
