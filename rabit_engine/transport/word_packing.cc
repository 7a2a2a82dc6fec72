#include "rabit_engine/transport/word_packing.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace warren {
namespace {

constexpr std::size_t kWordBytes = 8;
constexpr std::size_t kBlockWords = 64;
constexpr std::size_t kSampledPairs = 32;

/// Converts between this machine's byte order and the code's, which is little-endian.
std::uint64_t LittleEndian(std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::big) return __builtin_bswap64(word);
  return word;
}

std::uint64_t Load(const std::byte* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

void Store(std::byte* to, std::uint64_t word) {
  std::memcpy(to, &word, sizeof word);
}

/// Returns the number of low zero bytes of a nonzero word.
unsigned LowZeroBytes(std::uint64_t word) {
  return static_cast<unsigned>(std::countr_zero(word)) / 8;
}

std::byte* PackBlock(const std::byte* data, std::size_t words, std::byte* code) {
  std::uint64_t present[kBlockWords];
  std::uint64_t mask = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = Load(data + i * kWordBytes);
    // No branch: the CPU cannot predict which words are zero.
    present[count] = word;
    mask |= std::uint64_t{word != 0} << i;
    count += word != 0 ? 1 : 0;
  }
  Store(code, LittleEndian(mask));
  auto* lengths = reinterpret_cast<unsigned char*>(code + kWordBytes);
  std::byte* bytes = code + kWordBytes + (count + 1) / 2;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned skipped = LowZeroBytes(present[i]);
    const auto length = static_cast<unsigned char>(kWordBytes - skipped);
    if (i % 2 == 0) {
      lengths[i / 2] = static_cast<unsigned char>(length - 1);
    } else {
      lengths[i / 2] = static_cast<unsigned char>(lengths[i / 2] | (length - 1) << 4);
    }
    Store(bytes, LittleEndian(present[i] >> (8 * skipped)));
    bytes += length;
  }
  return bytes;
}

/// Returns the end of the block's code. The code is invalid if the result is nullptr or lies after `end`.
const std::byte* UnpackBlock(const std::byte* code, const std::byte* end, std::size_t words,
                             std::byte* data) {
  if (end - code < static_cast<std::ptrdiff_t>(kWordBytes)) return nullptr;
  std::uint64_t mask = LittleEndian(Load(code));
  if (words < kBlockWords && (mask >> words) != 0) return nullptr;
  const auto* lengths = reinterpret_cast<const unsigned char*>(code + kWordBytes);
  const std::byte* bytes = code + kWordBytes + (std::popcount(mask) + 1) / 2;
  if (static_cast<std::size_t>(std::popcount(mask)) < words) std::memset(data, 0, words * kWordBytes);
  for (unsigned i = 0; mask != 0; mask &= mask - 1, ++i) {
    const unsigned skipped = kWordBytes - 1 - (lengths[i / 2] >> (i % 2 * 4) & 7U);
    const std::uint64_t word = LittleEndian(Load(bytes)) << (8 * skipped);
    Store(data + static_cast<std::size_t>(std::countr_zero(mask)) * kWordBytes, word);
    bytes += kWordBytes - skipped;
  }
  return bytes;
}

}  // namespace

std::size_t PackingCapacity(std::size_t bytes) {
  const std::size_t blocks = bytes / (kBlockWords * kWordBytes) + 1;
  return bytes + blocks * (kWordBytes + kBlockWords / 2) + kWordBytes;
}

std::size_t PackWords(std::span<const std::byte> data, std::byte* code) {
  std::byte* end = code;
  const std::size_t words = data.size() / kWordBytes;
  for (std::size_t i = 0; i < words; i += kBlockWords) {
    end = PackBlock(data.data() + i * kWordBytes, std::min(kBlockWords, words - i), end);
  }
  const std::size_t rest = data.size() % kWordBytes;
  if (rest > 0) std::memcpy(end, data.data() + words * kWordBytes, rest);
  return static_cast<std::size_t>(end - code) + rest;
}

bool UnpackWords(std::span<const std::byte> code, std::span<std::byte> data) {
  const std::byte* next = code.data();
  const std::byte* const end = next + code.size();
  const std::size_t words = data.size() / kWordBytes;
  for (std::size_t i = 0; i < words; i += kBlockWords) {
    next = UnpackBlock(next, end, std::min(kBlockWords, words - i), data.data() + i * kWordBytes);
    if (next == nullptr || next > end) return false;
  }
  const std::size_t rest = data.size() % kWordBytes;
  if (static_cast<std::size_t>(end - next) != rest) return false;
  if (rest > 0) std::memcpy(data.data() + words * kWordBytes, next, rest);
  return true;
}

double EstimatePackedShare(std::span<const std::byte> data) {
  const std::size_t pairs = data.size() / (2 * kWordBytes);
  if (pairs == 0) return 1;
  // The sample consists of pairs of neighbors, because gradients and Hessians alternate and may pack
  // differently. The step is odd: the number of bins of a feature is often a power of two, and an even step
  // could then hit the same bins of every feature.
  const std::size_t step = pairs / kSampledPairs | 1;
  std::size_t half_bytes = 0;
  std::size_t words = 0;
  for (std::size_t pair = step / 2; pair < pairs; pair += step) {
    for (const std::size_t at : {2 * pair, 2 * pair + 1}) {
      const std::uint64_t word = Load(data.data() + at * kWordBytes);
      if (word != 0) half_bytes += 1 + 2 * (kWordBytes - LowZeroBytes(word));
      ++words;
    }
  }
  const double block_head = 1.0 / kBlockWords;
  return block_head + static_cast<double>(half_bytes) / static_cast<double>(2 * kWordBytes * words);
}

}  // namespace warren
