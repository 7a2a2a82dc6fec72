// Text from the network as it may stand in a log line.
#pragma once

#include <string>
#include <string_view>

namespace warren::wire {

/// The first 64 bytes, without control characters.
std::string Printable(std::string_view text);

}  // namespace warren::wire
