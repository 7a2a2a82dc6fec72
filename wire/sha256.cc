#include "wire/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace warren::wire {
namespace {

constexpr std::size_t kBlockBytes = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t BigEndian32(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
         std::uint32_t{bytes[3]};
}

}  // namespace

void Sha256::Compress(const std::uint8_t* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = BigEndian32(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
    const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> round = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += round[i];
}

Sha256& Sha256::Update(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t held = bytes_ % kBlockBytes;
    const std::size_t taken = std::min(bytes.size(), kBlockBytes - held);
    std::memcpy(block_.data() + held, bytes.data(), taken);
    bytes_ += taken;
    bytes.remove_prefix(taken);
    if (bytes_ % kBlockBytes == 0) Compress(block_.data());
  }
  return *this;
}

Digest Sha256::Finish() {
  const std::uint64_t bits = bytes_ * 8;
  Update(std::string_view("\x80", 1));
  constexpr std::array<char, kBlockBytes> kZeros{};
  const std::size_t held = bytes_ % kBlockBytes;
  const std::size_t zeros = (held <= 56 ? 56 : 56 + kBlockBytes) - held;
  Update({kZeros.data(), zeros});
  std::array<char, 8> length;
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i));
  Update({length.data(), length.size()});
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

HmacKey::HmacKey(std::string_view key) {
  std::array<char, kBlockBytes> pad{};
  if (key.size() > kBlockBytes) {
    const Digest shorter = Sha256().Update(key).Finish();
    std::memcpy(pad.data(), shorter.data(), shorter.size());
  } else {
    std::copy(key.begin(), key.end(), pad.begin());
  }
  for (char& byte : pad) byte = static_cast<char>(byte ^ 0x36);
  inner_.Update({pad.data(), pad.size()});
  for (char& byte : pad) byte = static_cast<char>(byte ^ 0x36 ^ 0x5c);
  outer_.Update({pad.data(), pad.size()});
}

Digest HmacKey::Code(std::initializer_list<std::string_view> parts) const {
  Sha256 inner = inner_;
  for (const std::string_view part : parts) inner.Update(part);
  const Digest digest = inner.Finish();
  return Sha256(outer_).Update(BytesOf(digest)).Finish();
}

bool Same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  // `volatile` prevents the compiler from stopping at the first difference.
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace warren::wire
