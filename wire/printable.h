// Makes text from the network safe for a log line or a terminal.
#pragma once

#include <string>
#include <string_view>

namespace warren::wire {

/// The first 64 bytes, with anything but printable ASCII written as \xNN.
std::string Printable(std::string_view text);

/// The whole text, for display. Newlines, tabs and UTF-8 stay unchanged, and "\r\n" becomes a newline.
/// Control characters (C0 and C1, such as those that begin escape sequences) and bytes that are not UTF-8
/// become \xNN; marks that change the direction of the text after them, and Unicode line separators, become
/// \uNNNN.
std::string PrintableLines(std::string_view text);

/// Like PrintableLines, but as one line: newlines and tabs become blanks.
std::string PrintableLine(std::string_view text);

}  // namespace warren::wire
