// JSON messages: those that a tracker receives from XGBoost 2.1 and later, and reports. No input may crash
// the reader, the division of the input into pieces must not matter, and a message that was understood must
// have the same meaning after it is encoded again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "wire/collective.h"
#include "wire/report.h"

namespace {

namespace collective = warren::wire::collective;

std::string Encode(const collective::WorkerMessage& message) {
  return std::visit([](const auto& value) { return collective::Encode(value); }, message);
}
using warren::wire::Encode;  // the overloads for reports

/// Returns all messages that were understood, encoded again. Sets `refused` to whether the rest was refused.
template <typename Stream>
std::string ReadInPieces(std::string_view bytes, std::size_t piece, bool& refused) {
  Stream stream;
  std::string understood;
  refused = false;
  try {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      stream.Append(bytes.substr(at, piece));
      while (auto message = stream.Next()) understood += Encode(*message);
    }
  } catch (const warren::wire::ProtocolError&) {
    refused = true;
  }
  return understood;
}

template <typename Stream>
void Try(std::string_view bytes) {
  bool refused = false;
  bool refused_in_pieces = false;
  const std::string whole = ReadInPieces<Stream>(bytes, bytes.size() + 1, refused);
  if (whole != ReadInPieces<Stream>(bytes, 7, refused_in_pieces) || refused != refused_in_pieces)
    std::abort();
  bool refused_again = false;
  if (ReadInPieces<Stream>(whole, whole.size() + 1, refused_again) != whole || refused_again) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Try<collective::WorkerStream>(bytes);
  Try<warren::wire::ReportStream>(bytes);
  return 0;
}
