// Bytes that a tracker receives: no input may crash the reader, the division of the input into pieces must
// not matter, and understood messages have the same bytes when they are encoded again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "wire/classic.h"

namespace {

namespace classic = warren::wire::classic;

std::string Encode(const classic::WorkerMessage& message) {
  return std::visit([](const auto& value) { return classic::Encode(value); }, message);
}

/// Returns all messages that were understood, encoded again, followed by "refused" if the rest was refused.
std::string ReadInPieces(std::string_view bytes, std::size_t piece) {
  classic::WorkerStream stream;
  std::string understood;
  try {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      stream.Append(bytes.substr(at, piece));
      while (auto message = stream.Next()) understood += Encode(*message);
    }
  } catch (const warren::wire::ProtocolError&) {
    understood += "refused";
  }
  return understood;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = ReadInPieces(bytes, size + 1);
  if (whole != ReadInPieces(bytes, 1) || whole != ReadInPieces(bytes, 7)) std::abort();
  const bool refused = whole.ends_with("refused");
  if (!refused && std::string_view(whole) != bytes.substr(0, whole.size())) std::abort();
  return 0;
}
