// Appends values as JSON to a string. Used for frequent messages about thousands of workers, for which
// building a tree of JSON values would dominate the cost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warren::submit {

/// Appends the text with quotes. Invalid UTF-8 becomes U+FFFD, and "<" is escaped, so that the result may be
/// put into a script element of HTML.
void AppendJson(std::string& json, std::string_view text);
/// Appends the shortest text that reads back as the same number; null for infinities and NaN, which JSON
/// lacks.
void AppendJson(std::string& json, double number);
void AppendJson(std::string& json, std::int64_t number);
void AppendJson(std::string& json, std::uint64_t number);
void AppendJson(std::string& json, bool value);

}  // namespace warren::submit
