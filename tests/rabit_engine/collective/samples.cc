#include "samples.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace warren::testing {
namespace {

template <typename T>
void Write(std::byte* element, T value) {
  std::memcpy(element, &value, sizeof value);
}

void WriteFloat(std::byte* element, int, Random& random) {
  const int exponent = static_cast<int>(random() % 24) - 12;
  Write(element, std::ldexp(static_cast<float>(random() >> 40) / 16777216.0f - 0.5f, exponent));
}

/// Writes a huge value, which a value of the opposite sign almost cancels, or a small one: the rounded sum
/// depends on the order of addition.
void WriteDouble(std::byte* element, int, Random& random) {
  constexpr double kHuge = 1e16;
  const double small = static_cast<double>(random() >> 11) / 9007199254740992.0;
  switch (random() % 3) {
    case 0:
      return Write(element, kHuge + small);
    case 1:
      return Write(element, -kHuge - small);
    default:
      return Write(element, small);
  }
}

/// Writes a bin of a histogram: zero, a count, one float, the rounded sum of two floats, or a negative zero.
void WriteBin(std::byte* element, int, Random& random) {
  const auto gradient = [&] {
    return static_cast<double>(static_cast<float>(random() >> 40) / 16777216.0f - 0.5f);
  };
  switch (random() % 8) {
    case 0:
      return Write(element, static_cast<double>(random() % 1000));
    case 1:
      return Write(element, gradient());
    case 2:
      return Write(element, std::ldexp(gradient(), 40) + gradient());
    case 3:
      return Write(element, -0.0);
    default:
      return Write(element, 0.0);
  }
}

void WriteInt(std::byte* element, int, Random& random) {
  Write(element, static_cast<std::int32_t>(random() % 2000001) - 1000000);
}

/// Writes a float16 number between 2^-7 and 2^8, of either sign, or a NaN, which max ignores as its right
/// operand and keeps as its left one.
void WriteFloat16(std::byte* element, int, Random& random) {
  const unsigned sign = static_cast<unsigned>(random() % 2);
  const unsigned exponent = random() % 4 == 0 ? 31 : 8 + static_cast<unsigned>(random() % 15);
  const unsigned fraction = 1 + static_cast<unsigned>(random() % 1023);
  Write(element, static_cast<std::uint16_t>(sign << 15 | exponent << 10 | fraction));
}

/// Identifies a range of ranks and the way in which they were combined.
struct History {
  std::uint64_t hash;
  std::uint32_t first;
  std::uint32_t last;
  std::uint64_t nonce;
};
static_assert(sizeof(History) == 24);

void WriteHistory(std::byte* element, int rank, Random& random) {
  const auto index = static_cast<std::uint32_t>(rank);
  Write(element, History{random(), index, index, random()});
}

History Join(const History& left, const History& right) {
  const bool adjacent = left.last + 1 == right.first;
  const std::uint64_t hash = (left.hash * 6364136223846793005u + 1442695040888963407u) ^
                             std::rotl(right.hash * 2862933555777941757u, 23) ^ (adjacent ? 0 : 0xbad);
  return {hash, left.first, right.last, left.nonce * 3 + right.nonce};
}

void JoinHistories(const void* src, void* dst, std::size_t count, void*) {
  const auto* right = static_cast<const History*>(src);
  auto* left = static_cast<History*>(dst);
  for (std::size_t i = 0; i < count; ++i) left[i] = Join(left[i], right[i]);
}

constexpr std::size_t kHugeElementBytes = 300001;

void WriteHuge(std::byte* element, int, Random& random) {
  const Bytes values = RandomBytes(kHugeElementBytes, random());
  std::memcpy(element, values.data(), values.size());
}

void JoinHuge(const void* src, void* dst, std::size_t count, void*) {
  const auto* right = static_cast<const unsigned char*>(src);
  auto* left = static_cast<unsigned char*>(dst);
  for (std::size_t i = 0; i < count * kHugeElementBytes; ++i) {
    left[i] = static_cast<unsigned char>(left[i] * 3 + (right[i] ^ 0x5a));
  }
}

}  // namespace

std::uint64_t Random::operator()() {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

Bytes RandomBytes(std::size_t bytes, std::uint64_t seed) {
  Random random(seed);
  Bytes values(bytes);
  for (std::size_t done = 0; done < bytes;) {
    const std::uint64_t value = random();
    const std::size_t run = std::min(bytes - done, sizeof value);
    std::memcpy(&values[done], &value, run);
    done += run;
  }
  return values;
}

Bytes Sample::Values(int rank, std::size_t count) const {
  Random random(count * 1009 + rank);
  Bytes values(count * reduction.element_bytes());
  for (std::size_t i = 0; i < count; ++i) write(&values[i * reduction.element_bytes()], rank, random);
  return values;
}

const std::vector<Sample>& Samples() {
  static const std::vector<Sample> samples{
      {"float sum", Reduction::Typed(DataType::kFloat, ReduceOp::kSum), WriteFloat},
      {"double sum", Reduction::Typed(DataType::kDouble, ReduceOp::kSum), WriteDouble},
      {"int sum", Reduction::Typed(DataType::kInt, ReduceOp::kSum), WriteInt},
      {"float16 max", Reduction::Typed(DataType::kFloat16, ReduceOp::kMax), WriteFloat16},
      {"double sum of histograms", Reduction::Typed(DataType::kDouble, ReduceOp::kSum), WriteBin},
      {"custom of 24 bytes", Reduction::Custom(JoinHistories, nullptr, sizeof(History)), WriteHistory},
  };
  return samples;
}

const Sample& HugeElements() {
  static const Sample sample{"custom of 300,001 bytes",
                             Reduction::Custom(JoinHuge, nullptr, kHugeElementBytes), WriteHuge};
  return sample;
}

Bytes Expected(const Reduction& reduction, std::span<const Bytes> inputs) {
  if (inputs.size() == 1) return inputs.front();
  const std::size_t left_size = std::bit_floor(inputs.size() - 1);
  const Bytes left = Expected(reduction, inputs.first(left_size));
  const Bytes right = Expected(reduction, inputs.subspan(left_size));
  Bytes result(left.size());
  reduction.Combine(result.data(), left.data(), right.data(), result.size() / reduction.element_bytes());
  return result;
}

}  // namespace warren::testing
