// The end of a text, which often says what went wrong.
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

/// Appends `bytes` to `tail`, which keeps the last `most` bytes.
inline void AppendToTail(std::string& tail, std::string_view bytes, std::size_t most) {
  tail += bytes;
  if (tail.size() > most) tail.erase(0, tail.size() - most);
}

}  // namespace warren::submit
