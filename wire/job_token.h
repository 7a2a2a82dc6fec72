// The secret of one job: 256 random bits that its tracker and its workers know and nobody else. It never
// travels over a connection; what does is made from it by a one-way function (authentication.h, and the
// links' handshake in rabit_engine/transport/tcp/handshake.h). docs/how-to/security.md says what it protects.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/sha256.h"

namespace warren::wire {

/// The environment variable by which a process is told its job's token, as 64 hexadecimal digits.
inline constexpr std::string_view kTokenVariable = "DMLC_JOB_TOKEN";

class JobToken {
 public:
  /// A new one, from the kernel's random numbers. Throws std::runtime_error where there are none.
  static JobToken Random();
  /// From 64 hexadecimal digits; blanks around them are left out. Throws std::invalid_argument, which does
  /// not quote what was given.
  static JobToken Parse(std::string_view text);
  std::string ToHex() const;

  /// A secret for one purpose, which tells nothing about the token or the secrets for other purposes.
  Digest Derive(std::string_view purpose, std::string_view context = {}) const;

  friend bool operator==(const JobToken& a, const JobToken& b) {
    return Same(BytesOf(a.bytes_), BytesOf(b.bytes_));
  }

 private:
  Digest bytes_{};
};

// The purposes of TLS, each with a pre-shared key of its own.
inline constexpr std::string_view kTlsToTracker = "tracker";
inline constexpr std::string_view kTlsOfLinks = "links";
inline constexpr std::string_view kTlsOfMeeting = "meeting";
/// The pre-shared key of TLS for that purpose (tls/session.h).
inline Digest TlsSecret(const JobToken& token, std::string_view purpose) {
  return token.Derive("tls", purpose);
}

/// 256 random bits that are said once: whoever proves something proves it for these.
using Nonce = Digest;
Nonce RandomNonce();

std::string ToHex(std::string_view bytes);

}  // namespace warren::wire
