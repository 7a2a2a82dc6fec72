// Appends values as JSON to a string. This is for frequent messages about thousands of workers: building a
// tree of JSON values for each of them would be too slow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warren::submit {

/// Appends the text in quotes. Invalid UTF-8 becomes U+FFFD, and "<" is escaped, so that the result may be
/// put into a script element of HTML.
void AppendJson(std::string& json, std::string_view text);
/// Appends the shortest text that is read back as the same number; null for infinities and NaN, which JSON
/// cannot represent.
void AppendJson(std::string& json, double number);
void AppendJson(std::string& json, std::int64_t number);
void AppendJson(std::string& json, std::uint64_t number);
void AppendJson(std::string& json, bool value);

}  // namespace warren::submit
