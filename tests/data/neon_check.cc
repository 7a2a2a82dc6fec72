// Compares the NEON kernels with the plain parser, on a real or emulated processor that has NEON. Built and
// run by neon_test.py.
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>

#include "data/text/libsvm.h"
#include "data/text/simd/kernels.h"
#include "tests/data/difference.h"

namespace {

using namespace warren::data;

template <typename Index>
struct Result {
  RowBlock<Index> block;
  std::string faults;

  FaultHandler Handler() {
    return [this](const Fault& fault) { faults += std::to_string(fault.position) + fault.expected + '\n'; };
  }
};

template <typename Index>
bool SameResult(const std::string& text) {
  std::string padded = text + std::string(kTextPadding, '1');
  Result<Index> fast;
  Result<Index> plain;
  const std::string_view rows(padded.data(), text.size());
  ParseLibSvm(rows, FirstIndex::kOne, fast.block, fast.Handler());
  ParseLibSvmPlainly(rows, FirstIndex::kOne, plain.block, plain.Handler());
  return Difference(fast.block, plain.block).empty() && fast.faults == plain.faults;
}

/// Calls the kernel directly: through the parser, a kernel that reads nothing would go unnoticed.
bool ReadsOrdinaryRowsItself() {
  std::string text;
  for (int row = 0; row < 50; ++row) text += "1 1:0.25 20:-13.5 300:7 41:0.1234567890123 5:1\n";
  const std::size_t bytes = text.size();
  text += std::string(kTextPadding, '1');
  constexpr std::size_t kRoom = 1000;
  std::uint64_t offsets[kRoom] = {};
  std::uint32_t indices[kRoom] = {};
  float values[kRoom] = {};
  float labels[kRoom] = {};
  simd::LibSvmRows<std::uint32_t> rows{.at = text.data(),
                                       .end = text.data() + bytes,
                                       .first = 0,
                                       .rows = 0,
                                       .entries = 0,
                                       .offsets = offsets,
                                       .indices = indices,
                                       .values = values,
                                       .labels = labels,
                                       .weights = nullptr,
                                       .qids = nullptr,
                                       .columns = 0,
                                       .least = 0,
                                       .ascending = true};
  simd::LibSvm<std::uint32_t>(simd::Best())(rows);
  return rows.at == rows.end && rows.rows == 50 && rows.entries == 250;
}

class Texts {
 public:
  std::string Next() {
    std::string text = "1 1:1\n";
    short_values_ = random_() % 3 == 0;
    for (auto rows = random_() % 8; rows > 0; --rows) {
      text += std::to_string(random_() % 3);
      for (auto words = random_() % 12; words > 0; --words) text += " " + Word();
      text += random_() % 5 == 0 ? "  # note\r\n" : "\n";
    }
    // A third of the texts have a random byte replaced.
    if (random_() % 3 == 0) text[random_() % text.size()] = ":.-+e# \t\nqid,x0"[random_() % 15];
    return text;
  }

 private:
  std::string Digits(unsigned most) {
    std::string digits;
    for (auto left = random_() % most + 1; left > 0; --left)
      digits += static_cast<char>('0' + random_() % 10);
    return digits;
  }
  std::string Word() {
    if (short_values_) return Digits(8) + ':' + Digits(1);
    std::string word = Digits(random_() % 9 == 0 ? 10 : 4) + ":";
    if (random_() % 3 == 0) word += '-';
    word += Digits(random_() % 4 == 0 ? 20 : 2);
    if (random_() % 2 == 0) word += "." + Digits(random_() % 4 == 0 ? 19 : 7);
    if (random_() % 9 == 0) word += "e-" + Digits(2);
    return word;
  }

  std::mt19937 random_{1};
  bool short_values_ = false;
};

}  // namespace

int main() {
  if (std::string_view(simd::Best().name) != "neon") {
    std::printf("the best kernels here are %s\n", simd::Best().name);
    return 1;
  }
  if (!ReadsOrdinaryRowsItself()) {
    std::printf("the kernel leaves ordinary rows to the plain parser\n");
    return 1;
  }
  Texts texts;
  constexpr int kTexts = 20'000;
  for (int i = 0; i < kTexts; ++i) {
    const std::string text = texts.Next();
    if (SameResult<std::uint32_t>(text) && SameResult<std::uint64_t>(text)) continue;
    std::printf("not the same: %s\n", text.c_str());
    return 1;
  }
  std::printf("%d texts are the same\n", kTexts);
  return 0;
}
