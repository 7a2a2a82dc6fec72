#include "wire/job_token.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <system_error>

namespace warren::wire {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kDigits = "0123456789abcdef";

Digest RandomBytes() {
  Digest bytes;
  if (getentropy(bytes.data(), bytes.size()) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot get random numbers");
  }
  return bytes;
}

}  // namespace

JobToken JobToken::Random() {
  JobToken token;
  token.bytes_ = RandomBytes();
  return token;
}

JobToken JobToken::Parse(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text = text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  JobToken token;
  const auto refuse = [&](const char* what) {
    throw std::invalid_argument(std::string("a job token has 64 hexadecimal digits, but ") + what);
  };
  if (text.size() != 2 * token.bytes_.size()) {
    refuse(("this text has " + std::to_string(text.size()) + " characters").c_str());
  }
  for (std::size_t i = 0; i < token.bytes_.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, token.bytes_[i], 16);
    if (error != std::errc{} || end != digits + 2) refuse("this text has other characters");
  }
  return token;
}

std::string JobToken::ToHex() const {
  return wire::ToHex(BytesOf(bytes_));
}

Digest JobToken::Derive(std::string_view purpose, std::string_view context) const {
  // Purposes contain no NUL, so the bytes show where the purpose ends and the context begins.
  return HmacSha256(BytesOf(bytes_), {"warren ", purpose, std::string_view("\0", 1), context});
}

Nonce RandomNonce() {
  return RandomBytes();
}

std::string ToHex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

}  // namespace warren::wire
