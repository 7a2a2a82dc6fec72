// Text from the network as it may stand in a log line or on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace warren::wire {

/// The first 64 bytes, without control characters.
std::string Printable(std::string_view text);

/// All of a text that somebody wants shown: lines, tabs and UTF-8 as they are, all that a terminal would obey
/// (escape sequences, C0 and C1 control characters, a return without a new line) and all that is no UTF-8 as
/// \xNN; marks that change the direction of the text behind them, and separators of lines, as \uNNNN.
std::string PrintableLines(std::string_view text);

/// The same as one line: newlines and tabs become blanks.
std::string PrintableLine(std::string_view text);

}  // namespace warren::wire
