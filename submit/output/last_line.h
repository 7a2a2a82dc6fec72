#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warren::submit {

/// Returns the last line of the text that does not consist only of blanks and the characters -, = and * (such
/// as "-----"), or "" if the text has no such line.
inline std::string LastLine(std::string_view text) {
  while (!text.empty()) {
    const std::size_t newline = text.rfind('\n');
    std::string_view line = newline == std::string_view::npos ? text : text.substr(newline + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t\r-=*") != std::string_view::npos) return std::string(line);
    text = text.substr(0, newline == std::string_view::npos ? 0 : newline);
  }
  return "";
}

}  // namespace warren::submit
