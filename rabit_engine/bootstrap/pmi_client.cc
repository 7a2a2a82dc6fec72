#include "rabit_engine/bootstrap/pmi_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/parse_number.h"
#include "rabit_engine/transport/tcp/socket.h"

namespace warren {
namespace {

using Clock = std::chrono::steady_clock;

/// The maximum length of a line in MPICH's own client; old launchers truncate longer lines.
constexpr std::size_t kMaxLineChars = 1024;
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string ToBase64Url(std::string_view bytes) {
  std::string text;
  std::uint32_t bits = 0;
  int num_bits = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(byte);
    for (num_bits += 8; num_bits >= 6; num_bits -= 6) text += kDigits[bits >> (num_bits - 6) & 63];
  }
  if (num_bits > 0) text += kDigits[bits << (6 - num_bits) & 63];
  return text;
}

std::optional<std::string> FromBase64Url(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  std::uint32_t bits = 0;
  int num_bits = 0;
  for (const char digit : text) {
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      bytes += static_cast<char>(bits >> num_bits & 0xff);
    }
  }
  return bytes;
}

}  // namespace

std::map<std::string, std::string> ParsePmiLine(std::string_view line) {
  std::map<std::string, std::string> words;
  while (!line.empty()) {
    const std::size_t space = line.find(' ');
    const std::string_view word = line.substr(0, space);
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) words.emplace(word.substr(0, equals), word.substr(equals + 1));
    line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
  }
  return words;
}

std::vector<std::string> EncodePmiRecord(std::string_view record, std::size_t max_chars) {
  constexpr std::size_t kCountChars = 12;  // space for the number of pieces and the dot
  const std::string text = ToBase64Url(record);
  const std::size_t per_piece = max_chars > kCountChars ? max_chars - kCountChars : 1;
  const std::size_t num_pieces = std::max<std::size_t>(1, (text.size() + per_piece - 1) / per_piece);
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < num_pieces; ++i) pieces.push_back(text.substr(i * per_piece, per_piece));
  pieces.front().insert(0, fmt::format("{}.", num_pieces));
  return pieces;
}

std::size_t NumPmiPieces(std::string_view first_piece) {
  constexpr std::size_t kMaxPieces = std::size_t{1} << 16;
  const std::size_t dot = first_piece.find('.');
  const auto count = ParseNumber<std::size_t>(first_piece.substr(0, dot), 1, kMaxPieces);
  if (dot == std::string_view::npos || !count) {
    throw EngineError(
        fmt::format("a record received by PMI begins with \"{}\", expected the number of its pieces",
                    first_piece.substr(0, 32)));
  }
  return *count;
}

std::string DecodePmiRecord(std::span<const std::string> pieces) {
  if (pieces.empty() || NumPmiPieces(pieces.front()) != pieces.size()) {
    throw EngineError(fmt::format("a record received by PMI has {} pieces, but announces a different number",
                                  pieces.size()));
  }
  std::string text = pieces.front().substr(pieces.front().find('.') + 1);
  for (const std::string& piece : pieces.subspan(1)) text += piece;
  auto record = FromBase64Url(text);
  if (!record) throw EngineError("a record received by PMI contains characters that no rank sent");
  return *record;
}

PmiClient::PmiClient(int descriptor, std::chrono::seconds timeout)
    : descriptor_(descriptor), timeout_(timeout) {
  Ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
  const Words maxes = Ask("cmd=get_maxes", "maxes");
  space_ = Ask("cmd=get_my_kvsname", "my_kvsname")["kvsname"];
  const auto limit = [&maxes](const char* name) {
    const auto found = maxes.find(name);
    const auto value = found == maxes.end() ? std::nullopt : ParseNumber<std::size_t>(found->second, 16);
    if (!value) throw EngineError(fmt::format("PMI: the launcher's limit {} is missing or too small", name));
    return *value - 1;  // launchers count a terminating NUL
  };
  max_key_chars_ = limit("keylen_max");
  const std::size_t around =
      std::string_view("cmd=put kvsname= key= value=\n").size() + space_.size() + max_key_chars_;
  if (around + 16 > kMaxLineChars) throw EngineError("PMI: the launcher's names leave no room for values");
  max_value_chars_ = std::min(limit("vallen_max"), kMaxLineChars - 1 - around);
}

void PmiClient::Put(const std::string& key, std::string_view value) {
  Ask(fmt::format("cmd=put kvsname={} key={} value={}", space_, key, value), "put_result");
}

std::string PmiClient::Get(const std::string& key) {
  return Ask(fmt::format("cmd=get kvsname={} key={}", space_, key), "get_result")["value"];
}

void PmiClient::Barrier() {
  Ask("cmd=barrier_in", "barrier_out");
}

void PmiClient::Finalize() {
  Ask("cmd=finalize", "finalize_ack");
}

PmiClient::Words PmiClient::Ask(const std::string& line, std::string_view answer) {
  try {
    SendLine(line + "\n");
    Words words = ParsePmiLine(ReceiveLine());
    if (words["cmd"] != answer)
      throw EngineError(fmt::format("it answered \"{}\", expected \"{}\"", words["cmd"], answer));
    if (const auto rc = words.find("rc"); rc != words.end() && rc->second != "0") {
      throw EngineError(fmt::format("it answered rc={} {}", rc->second, words["msg"]));
    }
    return words;
  } catch (const TimedOut&) {
    throw TimedOut(
        fmt::format("PMI: the launcher did not answer \"{}\" within {} s; another rank may be missing",
                    line.substr(0, 80), timeout_.count()));
  } catch (const EngineError& error) {
    throw EngineError(fmt::format("PMI: the launcher at descriptor {} was sent \"{}\": {}", descriptor_,
                                  line.substr(0, 80), error.what()));
  }
}

void PmiClient::WaitFor(short events, Clock::time_point deadline) const {
  if (!tcp::WaitFor(descriptor_, events, deadline)) throw TimedOut("no answer");
}

void PmiClient::SendLine(const std::string& line) {
  const auto deadline = Clock::now() + timeout_;
  std::string_view rest = line;
  while (!rest.empty()) {
    WaitFor(POLLOUT, deadline);
    const ssize_t sent = send(descriptor_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EINTR && errno != EAGAIN) throw EngineError(tcp::ErrorText(errno));
  }
}

std::string PmiClient::ReceiveLine() {
  const auto deadline = Clock::now() + timeout_;
  for (;;) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    WaitFor(POLLIN, deadline);
    std::array<char, 4096> piece;
    const ssize_t count = read(descriptor_, piece.data(), piece.size());
    if (count == 0) {
      throw EngineError("it closed the connection");
    }
    if (count < 0 && errno != EINTR && errno != EAGAIN) throw EngineError(tcp::ErrorText(errno));
    if (count > 0) received_.append(piece.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace warren
