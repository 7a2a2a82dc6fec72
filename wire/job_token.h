// The secret of one job: 256 random bits known only to the job's launcher, tracker and workers. Tracker and
// workers never send it to each other, only values that a one-way function derives from it (authentication.h,
// and the handshake of links in rabit_engine/transport/tcp/handshake.h). docs/how-to/security.md describes
// what the token protects.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/sha256.h"

namespace warren::wire {

/// The environment variable that holds the job's token, as 64 hexadecimal digits.
inline constexpr std::string_view kTokenVariable = "DMLC_JOB_TOKEN";

class JobToken {
 public:
  /// Makes a new token from the kernel's random numbers. Throws std::runtime_error if they are not available.
  static JobToken Random();
  /// Parses 64 hexadecimal digits; surrounding whitespace is ignored. Throws std::invalid_argument for any
  /// other text. The exception's message does not quote the text.
  static JobToken Parse(std::string_view text);
  std::string ToHex() const;

  /// Returns a secret for this purpose and context. It reveals nothing about the token or about the secrets
  /// for other purposes and contexts. `purpose` must not contain NUL.
  Digest Derive(std::string_view purpose, std::string_view context = {}) const;

  friend bool operator==(const JobToken& a, const JobToken& b) {
    return Same(BytesOf(a.bytes_), BytesOf(b.bytes_));
  }

 private:
  Digest bytes_{};
};

// The purposes for which TLS is used, each with its own pre-shared key.
inline constexpr std::string_view kTlsToTracker = "tracker";
inline constexpr std::string_view kTlsOfLinks = "links";
inline constexpr std::string_view kTlsOfMeeting = "meeting";
/// Returns the TLS pre-shared key for this purpose (tls/session.h).
inline Digest TlsSecret(const JobToken& token, std::string_view purpose) {
  return token.Derive("tls", purpose);
}

/// 256 random bits that are used only once. A proof is valid only for the nonces that it covers.
using Nonce = Digest;
Nonce RandomNonce();

std::string ToHex(std::string_view bytes);

}  // namespace warren::wire
