// Values as JSON, appended to a text that is being made: for messages that are made once a second for a
// thousand workers, where a tree of JSON values first would cost more than all else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warren::submit {

/// With its quotes. What is no UTF-8 becomes U+FFFD, and a "<" is written as an escape, so that the text may
/// stand in a script element of HTML.
void AppendJson(std::string& json, std::string_view text);
/// The shortest that is read as the same number; null for infinities and NaN, which JSON has not.
void AppendJson(std::string& json, double number);
void AppendJson(std::string& json, std::int64_t number);
void AppendJson(std::string& json, std::uint64_t number);
void AppendJson(std::string& json, bool value);

}  // namespace warren::submit
