// Bytes that a worker receives from something that may not be a tracker: no input may crash the reader.
#include <cstdint>
#include <string_view>

#include "wire/classic.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace classic = warren::wire::classic;
  classic::TrackerStream stream;
  bool has_assignment = false;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    for (std::size_t at = 0; at < size; at += 5) {
      stream.Append(bytes.substr(at, 5));
      if (!has_assignment) has_assignment = stream.NextAssignment().has_value();
      while (has_assignment && stream.NextLinkPlan()) {
      }
    }
  } catch (const warren::wire::ProtocolError&) {
    return 0;
  }
  return 0;
}
