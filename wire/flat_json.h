// A parser for JSON objects in messages, which consist of names with plain values. Nested values are skipped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace warren::wire {

/// The integers and strings of one JSON object, except those in nested values.
class FlatJson {
 public:
  /// `what` names the message in errors. Throws ProtocolError unless `text` is a JSON object that is not
  /// nested too deeply. Bytes that are not UTF-8 become U+FFFD, and the backslash of an invalid \u escape is
  /// kept as a character: XGBoost writes both.
  FlatJson(std::string_view what, std::string_view text);

  /// Returns the integer with this name. Throws ProtocolError if it is missing, not an integer, or not from
  /// `low` to `high`.
  std::int32_t Int(std::string_view name, std::int32_t low, std::int32_t high) const;
  /// Returns the string with this name. Throws ProtocolError if it is missing, not a string, or longer than
  /// `max_bytes`.
  std::string Text(std::string_view name, std::size_t max_bytes) const;

 private:
  struct Value {
    std::string shown;  ///< the value as shown in errors
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
