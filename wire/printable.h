// Makes text from the network safe to show in a log line or on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warren::wire {

/// Returns the length in bytes of the UTF-8 character at the beginning of `text`, or 0 if it is not valid
/// UTF-8. `text` must not be empty.
std::size_t Utf8Bytes(std::string_view text);

/// Returns the first 64 bytes, with everything but printable ASCII written as \xNN.
std::string Printable(std::string_view text);

/// Returns the whole text, for display. Newlines, tabs and UTF-8 stay unchanged, and "\r\n" becomes a
/// newline. Control characters (C0 and C1, such as those that begin escape sequences) and bytes that are not
/// UTF-8 become \xNN; marks that change the direction of the text after them, and Unicode line separators,
/// become \uNNNN.
std::string PrintableLines(std::string_view text);

/// Like PrintableLines, but as one line: newlines and tabs become spaces.
std::string PrintableLine(std::string_view text);

}  // namespace warren::wire
