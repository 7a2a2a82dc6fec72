// SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104), the only cryptography that a job token needs. Implemented
// here because Warren's libraries are loaded into other people's programs and must not require another
// library there. Encryption, which is optional, uses OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace warren::wire {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  Sha256& Update(std::string_view bytes);
  /// Returns the digest of all the bytes given. May be called only once.
  Digest Finish();

 private:
  void Compress(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_{};
  std::uint64_t bytes_ = 0;
};

/// A key for several HMACs. The work that depends only on the key, half of the work for a short message, is
/// done once.
class HmacKey {
 public:
  explicit HmacKey(std::string_view key);
  /// Returns the HMAC of the concatenated parts. If their lengths vary, the caller must make the boundaries
  /// unambiguous.
  Digest Code(std::initializer_list<std::string_view> parts) const;

 private:
  Sha256 inner_;
  Sha256 outer_;
};

inline Digest HmacSha256(std::string_view key, std::initializer_list<std::string_view> parts) {
  return HmacKey(key).Code(parts);
}

/// The bytes of a digest, for use in a message.
inline std::string_view BytesOf(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// Compares two strings in a time that depends only on their lengths, not on where they differ.
bool Same(std::string_view a, std::string_view b);

}  // namespace warren::wire
