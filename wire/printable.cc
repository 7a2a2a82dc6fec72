#include "wire/printable.h"

#include <fmt/format.h>

namespace warren::wire {

std::string Printable(std::string_view text) {
  constexpr std::size_t kMostBytes = 64;
  std::string out;
  for (const char c : text.substr(0, kMostBytes)) {
    out +=
        c >= 0x20 && c < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace warren::wire
