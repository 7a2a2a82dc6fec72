#include "wire/flat_json.h"

#include <fmt/format.h>

#include <cctype>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "wire/bytes.h"
#include "wire/printable.h"

namespace warren::wire {
namespace {

/// The maximum nesting depth of a message.
constexpr int kMaxDepth = 32;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool IsUnicodeEscape(std::string_view text) {  // "\uXXXX"
  if (text.size() < 6) return false;
  for (std::size_t i = 2; i < 6; ++i) {
    if (std::isxdigit(static_cast<unsigned char>(text[i])) == 0) return false;
  }
  return true;
}

std::string Repaired(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t length = Utf8Bytes(text);
    if (length == 0) {
      out += kReplacement;
      length = 1;
    } else if (text.front() == '\\' && text.size() > 1) {
      if (text[1] == 'u' && !IsUnicodeEscape(text)) out += '\\';
      length = 2;
      out += text.substr(0, length);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

/// The callbacks of nlohmann::json::sax_parse. They return false to stop the parser.
class FlatJson::Reader {
 public:
  explicit Reader(FlatJson& object) : object_(object) {}

  bool null() { return Keep({"null", {}, {}}); }
  bool boolean(bool value) { return Keep({value ? "true" : "false", {}, {}}); }
  bool number_integer(std::int64_t value) { return Keep({std::to_string(value), value, {}}); }
  bool number_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return number_integer(static_cast<std::int64_t>(value));
    return Keep({std::to_string(value), {}, {}});
  }
  bool number_float(double, const std::string& text) { return Keep({Printable(text), {}, {}}); }
  bool string(std::string& value) {
    return Keep({fmt::format("\"{}\"", Printable(value)), {}, std::move(value)});
  }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool key(std::string& name) {
    if (depth_ == 1) key_ = std::move(name);
    return true;
  }
  bool start_object(std::size_t) {
    if (depth_ == 1) Keep({"an object", {}, {}});
    return Deeper();
  }
  bool end_object() { return --depth_ >= 0; }
  bool start_array(std::size_t) {
    if (depth_ == 0) return Stop("a list");
    if (depth_ == 1) Keep({"a list", {}, {}});
    return Deeper();
  }
  bool end_array() { return --depth_ >= 0; }
  bool parse_error(std::size_t position, const std::string&, const std::exception&) {
    return Stop(fmt::format("something else at byte {}", position));
  }

  const std::string& found() const { return found_; }

 private:
  bool Keep(Value value) {
    if (depth_ == 0) return Stop(value.shown);
    if (depth_ == 1) object_.values_.insert_or_assign(key_, std::move(value));
    return true;
  }
  bool Deeper() { return ++depth_ <= kMaxDepth || Stop(fmt::format("nesting deeper than {}", kMaxDepth)); }
  bool Stop(std::string found) {
    if (found_.empty()) found_ = std::move(found);
    return false;
  }

  FlatJson& object_;
  std::string key_;
  int depth_ = 0;
  std::string found_;
};

FlatJson::FlatJson(std::string_view what, std::string_view text) : what_(what) {
  Reader reader(*this);
  if (!nlohmann::json::sax_parse(Repaired(text), &reader)) {
    throw ProtocolError(fmt::format("the {} is not a JSON object: found {} in \"{}\"", what, reader.found(),
                                    Printable(text)));
  }
}

const FlatJson::Value* FlatJson::Find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void FlatJson::Refuse(std::string_view name, std::string_view expected) const {
  const Value* value = Find(name);
  throw ProtocolError(fmt::format("the {} has {} for \"{}\", expected {}", what_,
                                  value == nullptr ? "nothing" : value->shown, name, expected));
}

std::int32_t FlatJson::Int(std::string_view name, std::int32_t low, std::int32_t high) const {
  const Value* value = Find(name);
  if (value == nullptr || !value->number || *value->number < low || *value->number > high)
    Refuse(name, fmt::format("{} to {}", low, high));
  return static_cast<std::int32_t>(*value->number);
}

std::string FlatJson::Text(std::string_view name, std::size_t max_bytes) const {
  const Value* value = Find(name);
  if (value == nullptr || !value->text || value->text->size() > max_bytes)
    Refuse(name, fmt::format("a text of at most {} bytes", max_bytes));
  return *value->text;
}

}  // namespace warren::wire
