// Labels come from hidden scores, computed in whole numbers.
#include "examples/make_libsvm/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>

namespace warren::make_libsvm {
namespace {

constexpr int32_t kOne = 10000;        // values have four decimals
constexpr int64_t kStrongWeight = 64;  // for features in every kStrongEvery-th stretch
constexpr int64_t kWeakWeight = 4;
constexpr uint32_t kStrongEvery = 4;
constexpr uint32_t kGrades = 5;  // relevance 0 to 4

// The purpose of a random number. Different purposes give a row independent draws.
enum class Purpose : uint64_t { kFeature = 1, kValue, kNoise, kWeight };

// SplitMix64's finalizer (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

uint64_t Random(uint64_t seed, Purpose purpose, uint64_t a, uint64_t b = 0) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;
  return Mix(Mix(Mix(seed + kGolden * static_cast<uint64_t>(purpose)) + kGolden * a) + kGolden * b);
}

// Maps a random number to 0 .. count - 1, nearly uniformly because count is far below 2^64.
uint64_t Below(uint64_t random, uint64_t count) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(random) * count) >> 64);
}

// Roughly normal with standard deviation 2^16: the sum of four uniform numbers, which needs no logarithm.
int64_t Bell(uint64_t random) {
  int64_t sum = 0;
  for (int part = 0; part < 4; ++part) sum += static_cast<int64_t>((random >> (16 * part)) & 0xFFFF);
  constexpr int64_t kMean = 4 * 0xFFFF / 2;
  return (sum - kMean) * 1732 / 1000;  // standard deviation of the sum: width of a number / sqrt(3)
}

int64_t IntegerRoot(int64_t square) {
  int64_t root = 0;
  for (int64_t bit = int64_t{1} << 31; bit != 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= square) root += bit;
  }
  return root;
}

int64_t Weight(uint64_t seed, uint32_t stretch, uint64_t feature, uint32_t output) {
  const int64_t most = stretch % kStrongEvery == 0 ? kStrongWeight : kWeakWeight;
  const int64_t drawn =
      static_cast<int64_t>(Below(Random(seed, Purpose::kWeight, feature, output), 2 * 1024 + 1)) - 1024;
  return most * drawn / 16;  // from -64 * most to 64 * most
}

void AppendInt(int64_t number, std::string& text) {
  char digits[24];
  const auto result = std::to_chars(digits, digits + sizeof(digits), number);
  text.append(digits, result.ptr);
}

// Appends a number in units of 1 / kOne as a decimal fraction without trailing zeros.
void AppendDecimal(int64_t number, std::string& text) {
  if (number < 0) text += '-';
  const int64_t size = number < 0 ? -number : number;
  AppendInt(size / kOne, text);
  int64_t rest = size % kOne;
  if (rest == 0) return;
  text += '.';
  for (int64_t unit = kOne / 10; rest != 0; unit /= 10) {
    text += static_cast<char>('0' + rest / unit);
    rest %= unit;
  }
}

void Require(bool holds, std::string_view option, std::string_view found, std::string_view expected) {
  if (!holds) throw std::runtime_error(fmt::format("{}: found {}, expected {}", option, found, expected));
}

uint32_t EntriesPerRow(const Options& options) {
  // This product and its rounding give the same bits on every machine (IEEE 754).
  const auto wanted = static_cast<uint64_t>(std::llround(options.density * options.features));
  return static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, options.features));
}

// Values are uniform on [-1, 1] (or all 1) and weights on [-m, m], so a product has the standard
// deviation m / 3 (or m / sqrt 3).
int64_t SignalDeviation(uint32_t entries, bool binary) {
  const int64_t strong = (entries + kStrongEvery - 1) / kStrongEvery;
  const int64_t weak = entries - strong;
  const int64_t square =
      strong * (64 * kStrongWeight) * (64 * kStrongWeight) + weak * (64 * kWeakWeight) * (64 * kWeakWeight);
  return std::max<int64_t>(1, IntegerRoot(square) * kOne / (binary ? 1732 : 3000) * 1000);
}

}  // namespace

void Validate(const Options& options) {
  constexpr uint32_t kMaxFeatures = 1u << 31;
  Require(options.features >= 1 && options.features <= kMaxFeatures, "--features",
          std::to_string(options.features), "1 to 2147483648");
  Require(options.density > 0 && options.density <= 1, "--density", fmt::format("{}", options.density),
          "a number above 0, up to 1");
  Require(options.noise >= 0 && options.noise <= 1000, "--noise", fmt::format("{}", options.noise),
          "0 to 1000");
  constexpr auto kMaxRow = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  Require(options.first_row <= kMaxRow && options.rows <= kMaxRow - options.first_row, "--first-row",
          std::to_string(options.first_row),
          fmt::format("0 to {} for {} rows", kMaxRow - std::min(options.rows, kMaxRow), options.rows));
  Require(options.query_size >= 1, "--query-size", "0", "at least 1");
  Require(options.classes >= 2, "--classes", std::to_string(options.classes), "at least 2");
}

Generator::Generator(const Options& options)
    : options_(options),
      entries_per_row_(EntriesPerRow(options)),
      scale_(SignalDeviation(entries_per_row_, options.binary_features)),
      noise_scale_(static_cast<int64_t>(options.noise * 1024)),
      entries_(entries_per_row_) {
  Validate(options);
}

void Generator::DrawEntries(uint64_t row) {
  for (uint64_t stretch = 0; stretch < entries_per_row_; ++stretch) {
    const uint64_t begin = stretch * options_.features / entries_per_row_;
    const uint64_t end = (stretch + 1) * options_.features / entries_per_row_;
    const uint64_t offset =
        end - begin == 1 ? 0 : Below(Random(options_.seed, Purpose::kFeature, row, stretch), end - begin);
    int32_t value = kOne;
    if (!options_.binary_features) {
      const uint64_t drawn = Below(Random(options_.seed, Purpose::kValue, row, stretch), 2 * kOne);
      value = static_cast<int32_t>(drawn) - kOne;
      if (value >= 0) ++value;  // zero would look like a missing value
    }
    entries_[stretch] = {static_cast<uint32_t>(begin + offset), value};
  }
}

int64_t Generator::Score(uint32_t output) const {
  int64_t score = 0;
  for (uint32_t stretch = 0; stretch < entries_per_row_; ++stretch) {
    const Entry& entry = entries_[stretch];
    score += Weight(options_.seed, stretch, entry.feature, output) * entry.value;
    // Interaction: a strong feature with a high value multiplies its weak neighbor's share of the score by
    // -31.
    if (stretch % kStrongEvery == 1 && entries_[stretch - 1].value > kOne / 2) {
      score -= 32 * Weight(options_.seed, stretch, entry.feature, output) * entry.value;
    }
  }
  return score;
}

int64_t Generator::NoisyScore(uint64_t row, uint32_t output) const {
  const int64_t bell = Bell(Random(options_.seed, Purpose::kNoise, row, output));
  return Score(output) + (scale_ / 1024 * noise_scale_ / 256) * bell / 256;
}

uint32_t Generator::BestClass(uint64_t row) const {
  uint32_t best = 0;
  int64_t best_score = NoisyScore(row, 0);
  for (uint32_t output = 1; output < options_.classes; ++output) {
    const int64_t score = NoisyScore(row, output);
    if (score > best_score) best = output, best_score = score;
  }
  return best;
}

int64_t Generator::Label(uint64_t row) const {
  switch (options_.task) {
    case Task::kBinary:
      return NoisyScore(row, 0) > 0 ? kOne : 0;
    case Task::kMulticlass:
      return int64_t{kOne} * BestClass(row);
    case Task::kRegression:
      return NoisyScore(row, 0) / std::max<int64_t>(1, scale_ / kOne);
    default:
      // Grades of equal width from -1 to 1 standard deviations; the outer two are open-ended.
      return kOne *
             std::clamp<int64_t>((NoisyScore(row, 0) + scale_) * kGrades / (2 * scale_), 0, kGrades - 1);
  }
}

void Generator::AppendNumbers(uint64_t row, std::vector<float>& numbers) {
  const auto number = [](int64_t ones) { return static_cast<float>(static_cast<double>(ones) / kOne); };
  DrawEntries(row);
  numbers.push_back(number(Label(row)));
  numbers.resize(numbers.size() + options_.features, std::numeric_limits<float>::quiet_NaN());
  float* const values = numbers.data() + numbers.size() - options_.features;
  for (const Entry& entry : entries_) values[entry.feature] = number(entry.value);
}

void Generator::AppendRow(uint64_t row, std::string& text) {
  DrawEntries(row);
  AppendDecimal(Label(row), text);
  if (options_.task == Task::kRanking) {
    text += " qid:";
    AppendInt(static_cast<int64_t>(row / options_.query_size + 1), text);
  }
  for (const Entry& entry : entries_) {
    text += ' ';
    AppendInt(int64_t{entry.feature} + 1, text);
    text += ':';
    AppendDecimal(entry.value, text);
  }
  text += '\n';
}

}  // namespace warren::make_libsvm
