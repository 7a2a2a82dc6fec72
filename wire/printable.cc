#include "wire/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace warren::wire {
namespace {

void AppendEscaped(std::string& out, std::string_view bytes) {
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

/// Whether the character is a control character: U+0000 to U+001F or U+007F to U+009F.
bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

/// Returns the code of a character that ends a line (U+2028, U+2029) or changes the direction of the text
/// after it (U+202A to U+202E, U+2066 to U+2069); 0 for all others. warren/_system/printable.py has the same
/// list.
int CodeThatMovesText(std::string_view character) {
  if (character.size() != 3 || character[0] != '\xe2') return 0;
  const int code = 0x2000 | (character[1] & 0x3f) << 6 | (character[2] & 0x3f);
  const bool moves = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return moves ? code : 0;
}

}  // namespace

std::size_t Utf8Bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t bytes = byte(0) < 0x80   ? 1
                            : byte(0) < 0xc2 ? 0
                            : byte(0) < 0xe0 ? 2
                            : byte(0) < 0xf0 ? 3
                            : byte(0) < 0xf5 ? 4
                                             : 0;
  if (bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (bytes == 3 && byte(0) == 0xe0 && byte(1) < 0xa0) return 0;
  if (bytes == 3 && byte(0) == 0xed && byte(1) > 0x9f) return 0;  // a surrogate
  if (bytes == 4 && byte(0) == 0xf0 && byte(1) < 0x90) return 0;
  if (bytes == 4 && byte(0) == 0xf4 && byte(1) > 0x8f) return 0;
  return bytes;
}

std::string Printable(std::string_view text) {
  constexpr std::size_t kMostBytes = 64;
  std::string out;
  for (const char c : text.substr(0, kMostBytes)) {
    out +=
        c >= 0x20 && c < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string PrintableLines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = Utf8Bytes(text);
    const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    const bool is_plain = bytes > 0 && (!IsControl(character) || character == "\n" || character == "\t");
    const int moves = bytes > 0 ? CodeThatMovesText(character) : 0;
    if (moves != 0) {
      out += fmt::format("\\u{:04x}", moves);
    } else if (is_plain) {
      out += character;
    } else if (!text.starts_with("\r\n")) {
      AppendEscaped(out, character);
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string PrintableLine(std::string_view text) {
  std::string line = PrintableLines(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

}  // namespace warren::wire
