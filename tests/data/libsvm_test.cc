// LibSVM text: every kind of row is read, and every fault is reported with its position and adds nothing to
// the block. Every kernel gives the plain parser's result, wherever a word lies in its windows and whatever
// follows the text.
#include "data/text/libsvm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/simd/kernels.h"
#include "tests/data/difference.h"
#include "tests/random_cases.h"

namespace warren::data {
namespace {

using Random = std::mt19937_64;

constexpr FirstIndex kZero = FirstIndex::kZero;
constexpr FirstIndex kOne = FirstIndex::kOne;

std::vector<const simd::Kernels*> AllKernels() {
  std::vector<const simd::Kernels*> here;
  for (const simd::Kernels* kernels : {&simd::Plain(), simd::Sse41(), simd::Avx2(), simd::Neon()}) {
    if (kernels != nullptr) here.push_back(kernels);
  }
  return here;
}

class Forced {
 public:
  explicit Forced(const simd::Kernels& kernels) { simd::Force(&kernels); }
  ~Forced() { simd::Force(nullptr); }
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;
};

/// Memory for text whose padding ends at the last readable byte.
class GuardedMemory {
 public:
  GuardedMemory() {
    void* const memory =
        mmap(nullptr, kBytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<char*>(memory);
    if (mprotect(begin_ + kBytes, kPage, PROT_NONE) != 0) throw std::bad_alloc();
  }
  ~GuardedMemory() { munmap(begin_, kBytes + kPage); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  /// Copies the text and fills the bytes after it with repetitions of `padding`. Returns the copy, which is
  /// valid until the next call.
  std::string_view Put(std::string_view text, std::string_view padding) {
    if (text.size() > kBytes - kTextPadding) throw std::bad_alloc();
    char* const end = begin_ + kBytes - kTextPadding;
    for (std::size_t i = 0; i < kTextPadding; ++i) end[i] = padding[i % padding.size()];
    char* const place = end - text.size();
    std::memcpy(place, text.data(), text.size());
    return {place, text.size()};
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  static constexpr std::size_t kPage = 4096;
  char* begin_ = nullptr;
};

GuardedMemory& Guarded() {
  static GuardedMemory memory;
  return memory;
}

template <typename Index>
struct Result {
  RowBlock<Index> block;
  std::vector<std::string> faults;

  FaultHandler Handler(std::size_t shift = 0) {
    return [this, shift](const Fault& fault) {
      faults.push_back(fmt::format("{}: {}", fault.position + shift, fault.expected));
    };
  }
};

/// The name of the first part of the results that is not bit-identical, or "".
template <typename Index>
std::string Difference(const Result<Index>& a, const Result<Index>& b) {
  return a.faults != b.faults ? "faults" : Difference(a.block, b.block);
}

/// The rows of the block as LibSVM text. If the block has weights, every row is shown with its weight, even
/// if it was parsed without one.
template <typename Index>
std::string Render(const RowBlock<Index>& block) {
  std::string text;
  for (std::size_t row = 0; row < block.rows(); ++row) {
    const bool many = !block.label_offsets.empty();
    const std::size_t begin = many ? block.label_offsets[row] : row;
    const std::size_t end = many ? block.label_offsets[row + 1] : row + 1;
    for (std::size_t i = begin; i < end; ++i)
      text += fmt::format("{}{}", i == begin ? "" : ",", block.labels[i]);
    if (!block.weights.empty()) text += fmt::format(":{}", block.weights[row]);
    if (!block.qids.empty()) text += fmt::format(" qid:{}", block.qids[row]);
    for (std::size_t e = block.offsets[row]; e < block.offsets[row + 1]; ++e) {
      text += fmt::format(" {}:{}", block.indices[e], block.values[e]);
    }
    text += "\n";
  }
  return text;
}

template <typename Index>
Result<Index> ParsePlainly(std::string_view text, FirstIndex first) {
  // Copied to memory that ends with the text, so that the address sanitizer detects reads past its end.
  const std::vector<char> exact(text.begin(), text.end());
  Result<Index> result;
  ParseLibSvmPlainly(std::string_view(exact.data(), exact.size()), first, result.block, result.Handler());
  return result;
}

/// Parses the first `cut` bytes and then the rest into one block, as a reader of files does.
template <typename Index>
Result<Index> ParseInParts(std::string_view text, std::size_t cut, FirstIndex first,
                           std::string_view padding) {
  Result<Index> result;
  if (cut > 0)
    ParseLibSvm(Guarded().Put(text.substr(0, cut), padding), first, result.block, result.Handler());
  ParseLibSvm(Guarded().Put(text.substr(cut), padding), first, result.block, result.Handler(cut));
  return result;
}

constexpr std::string_view kPadding = "7:1 2:3.5\n";

/// Returns the plain parser's result, after checking that every kernel returns the same.
template <typename Index = std::uint32_t>
Result<Index> Parse(std::string_view text, FirstIndex first = kZero, std::size_t cut = 0,
                    std::string_view padding = kPadding) {
  Result<Index> plain = ParsePlainly<Index>(text, first);
  EXPECT_TRUE(plain.block.fields.empty());
  for (const simd::Kernels* kernels : AllKernels()) {
    const Forced forced(*kernels);
    const Result<Index> result = ParseInParts<Index>(text, cut, first, padding);
    const std::string difference = Difference(result, plain);
    EXPECT_EQ(difference, "") << kernels->name << " gives\n"
                              << Render(result.block) << fmt::format("{}", fmt::join(result.faults, "\n"))
                              << "\nfor the text, cut at " << cut << ",\n"
                              << testing::PrintToString(std::string(text))
                              << "\nof which the plain parser makes\n"
                              << Render(plain.block) << fmt::format("{}", fmt::join(plain.faults, "\n"));
  }
  return plain;
}

/// The rows of `text`, which must not have faults.
template <typename Index = std::uint32_t>
std::string Rows(std::string_view text, FirstIndex first = kZero) {
  const Result<Index> result = Parse<Index>(text, first);
  EXPECT_EQ(result.faults, std::vector<std::string>{}) << text;
  return Render(result.block);
}

/// Like Rows, but also checks the text after an ordinary row, so that kernels read the text from its first
/// row on.
template <typename Index = std::uint32_t>
std::string RowsBehindOthers(const std::string& text, FirstIndex first = kZero) {
  std::string rows = Rows<Index>(text, first);
  const std::string behind = Rows<Index>("9 9:9\n" + text, first);
  EXPECT_EQ(behind.substr(behind.find('\n') + 1), rows);
  return rows;
}

TEST(LibSvm, ReadsLabelsAndFeatures) {
  EXPECT_EQ(RowsBehindOthers("1 0:1 3:4.5 17:-0.25\n-1 2:1e3\n"), "1 0:1 3:4.5 17:-0.25\n-1 2:1000\n");
  EXPECT_EQ(RowsBehindOthers("0.5 1:1\n+1 1:+2\n.5 1:.5\n5. 1:5.\n1e-2 1:1E+2\n"),
            "0.5 1:1\n1 1:2\n0.5 1:0.5\n5 1:5\n0.01 1:100\n");
}

TEST(LibSvm, ReadsRowsWithoutFeatures) {
  EXPECT_EQ(RowsBehindOthers("1\n2\n-3.5\n4 \n"), "1\n2\n-3.5\n4\n");
  const auto block = Parse("1\n2\n").block;
  EXPECT_EQ(block.columns, 0U);
  EXPECT_EQ(block.least_index, std::numeric_limits<std::uint32_t>::max());
}

TEST(LibSvm, AnIndexAloneHasTheValueOne) {
  EXPECT_EQ(RowsBehindOthers("1 3 5:2 7\n1 123456789\n1 0\n"), "1 3:1 5:2 7:1\n1 123456789:1\n1 0:1\n");
}

TEST(LibSvm, KeepsTheOrderOfFeatures) {
  EXPECT_EQ(RowsBehindOthers("1 5:1 2:2 3:3\n"), "1 5:1 2:2 3:3\n");
}

TEST(LibSvm, ReadsWeights) {
  EXPECT_EQ(Rows("1:0.5 1:1\n2:2\n-1:0 1:2\n"), "1:0.5 1:1\n2:2\n-1:0 1:2\n");
}

TEST(LibSvm, ARowWithoutAWeightWeighsOneWhereOthersHaveOne) {
  EXPECT_EQ(Rows("1 1:1\n2 1:2\n3:0.5 1:3\n4 1:4\n5\n"), "1:1 1:1\n2:1 1:2\n3:0.5 1:3\n4:1 1:4\n5:1\n");
  EXPECT_TRUE(Parse("1 1:1\n2 1:2\n").block.weights.empty());
}

TEST(LibSvm, ReadsSeveralLabels) {
  EXPECT_EQ(Rows("1,2 1:1\n3 2:2\n4,5,6\n"), "1,2 1:1\n3 2:2\n4,5,6\n");
  EXPECT_EQ(Rows("1 1:1\n2 1:2\n3,4:0.5 1:3\n"), "1:1 1:1\n2:1 1:2\n3,4:0.5 1:3\n");
  EXPECT_TRUE(Parse("1 1:1\n").block.label_offsets.empty());
}

TEST(LibSvm, ReadsQueryIds) {
  EXPECT_EQ(Rows("1 qid:3 1:1\n0 qid:3\n2 qid:18446744073709551615 4\n1 qid:000000000000000000007 1:2\n"),
            "1 qid:3 1:1\n0 qid:3\n2 qid:18446744073709551615 4:1\n1 qid:7 1:2\n");
  EXPECT_EQ(Rows("1:2 qid:1 1:1\n3 qid:1\n"), "1:2 qid:1 1:1\n3:1 qid:1\n");
  EXPECT_EQ(Rows("1 \t qid:1\t1:1\n1\tqid:123456789012345678 \t 1:1\n1 qid:1234567890123456789 1:1\n"),
            "1 qid:1 1:1\n1 qid:123456789012345678 1:1\n1 qid:1234567890123456789 1:1\n");
}

TEST(LibSvm, LeavesCommentsOut) {
  EXPECT_EQ(RowsBehindOthers("# one 1:1\n1 1:1 # 2:2\n#\n2 1:2#3:3\n3# 1:1\n  # x\n4 1:4 #\n5 6#\n6 #\n"),
            "1 1:1\n2 1:2\n3\n4 1:4\n5 6:1\n6\n");
  EXPECT_EQ(Rows("1 qid:1#5\n2 qid:2 # 1:1\n3 qid:3 1:1#\n"), "1 qid:1\n2 qid:2\n3 qid:3 1:1\n");
  EXPECT_EQ(Rows("1:2#5\n2:3 # 1:1\n"), "1:2\n2:3\n");
  EXPECT_EQ(
      RowsBehindOthers("1 1:1 # " + std::string(300, 'x') + "\n1 #" + std::string(300, ' ') + "\n1 1:2\n"),
      "1 1:1\n1\n1 1:2\n");
  EXPECT_EQ(RowsBehindOthers(std::string("1 1:1 # \xFF\x01\0:.-\n1 1:2\n", 21)), "1 1:1\n1 1:2\n");
}

TEST(LibSvm, PassesOverRowsWithoutAWord) {
  EXPECT_EQ(RowsBehindOthers("\n\n1 1:1\n \n\t\n\n2 1:2\n\n"), "1 1:1\n2 1:2\n");
  EXPECT_EQ(Rows(""), "");
  EXPECT_EQ(Rows("\n"), "");
  EXPECT_EQ(Rows(" "), "");
  EXPECT_EQ(Rows(" \t # nothing"), "");
  EXPECT_EQ(RowsBehindOthers(std::string(500, '\n') + "1 1:1\n" + std::string(500, ' ') + "\n"), "1 1:1\n");
}

TEST(LibSvm, RowsEndAtLfCrLfAndCr) {
  EXPECT_EQ(RowsBehindOthers("1 1:1\r\n2 1:2\r3 1:3\n\r4 1:4\r\r5\r\n6 # x\r7\r\n"),
            "1 1:1\n2 1:2\n3 1:3\n4 1:4\n5\n6\n7\n");
}

TEST(LibSvm, TheLastLineNeedsNoEnd) {
  EXPECT_EQ(RowsBehindOthers("1 1:1\n2 1:2"), "1 1:1\n2 1:2\n");
  EXPECT_EQ(RowsBehindOthers("1 1:1\n2"), "1 1:1\n2\n");
  EXPECT_EQ(RowsBehindOthers("1 1:1\n2 3"), "1 1:1\n2 3:1\n");
  EXPECT_EQ(RowsBehindOthers("1 1:1\n2 3 "), "1 1:1\n2 3:1\n");
  EXPECT_EQ(RowsBehindOthers("1 1:1\n2 1:2 # x"), "1 1:1\n2 1:2\n");
}

TEST(LibSvm, BlanksAndTabsMayBeAnywhereBetweenWords) {
  EXPECT_EQ(RowsBehindOthers(" 1  1:1\t\t2:2 \t 3:3 \n\t2\t1:1\t\n"), "1 1:1 2:2 3:3\n2 1:1\n");
}

TEST(LibSvm, ReadsInfinityAndNan) {
  EXPECT_EQ(RowsBehindOthers("inf 1:-INF 2:Infinity 3:+inf\n-inf 1:1e99 2:-1e99\n"),
            "inf 1:-inf 2:inf 3:inf\n-inf 1:inf 2:-inf\n");
  EXPECT_EQ(RowsBehindOthers("1 1:NaN 2:1\n"), "1 1:nan 2:1\n");
}

TEST(LibSvm, KeepsTheSignOfZero) {
  const auto block = Parse("1 1:1\n-0 1:-0 2:0 3:-0.0 4:-.0 5:-0.00000000000\n").block;
  const std::uint32_t minus_zero = std::uint32_t{1} << 31;
  EXPECT_EQ(std::bit_cast<std::uint32_t>(block.labels[1]), minus_zero);
  std::vector<std::uint32_t> bits;
  for (std::size_t e = 1; e < block.entries(); ++e)
    bits.push_back(std::bit_cast<std::uint32_t>(block.values[e]));
  EXPECT_EQ(bits, (std::vector<std::uint32_t>{minus_zero, 0, minus_zero, minus_zero, minus_zero}));
}

TEST(LibSvm, IndicesFromOneAreMadeToCountFromZero) {
  EXPECT_EQ(RowsBehindOthers("1 1:1 2 10:3.123456789\n1 000001:1\n", kOne), "1 0:1 1:1 9:3.1234567\n1 0:1\n");
  const auto block = Parse("1 5:1\n1 3:1 8\n1 4:1\n", kOne).block;
  EXPECT_EQ(block.columns, 8U);
  EXPECT_EQ(block.least_index, 2U);
}

TEST(LibSvm, LooksForTheGreatestAndTheLeastIndex) {
  const auto block = Parse("1 5:1\n1 3:1 8\n1 4:1\n1 7:1.000000001 2:1e1 12\n").block;
  EXPECT_EQ(block.columns, 13U);
  EXPECT_EQ(block.least_index, 2U);
}

TEST(LibSvm, ReadsIndicesUpToTheLimits) {
  EXPECT_EQ(RowsBehindOthers("1 4294967294:2\n1 4294967294\n1 0000000000004294967294:1\n"),
            "1 4294967294:2\n1 4294967294:1\n1 4294967294:1\n");
  EXPECT_EQ(RowsBehindOthers("1 4294967295:2\n1 4294967295\n", kOne), "1 4294967294:2\n1 4294967294:1\n");
  EXPECT_EQ(Parse("1 4294967294\n").block.columns, 4294967295U);
  EXPECT_EQ(RowsBehindOthers<std::uint64_t>(
                "1 4294967296:2 999999999999999999:1 1000000000000000000 18446744073709551614:3\n"),
            "1 4294967296:2 999999999999999999:1 1000000000000000000:1 18446744073709551614:3\n");
  EXPECT_EQ(RowsBehindOthers<std::uint64_t>("1 18446744073709551614:2\n", kOne),
            "1 18446744073709551613:2\n");
  EXPECT_EQ(Parse<std::uint64_t>("1 18446744073709551614\n").block.columns,
            std::numeric_limits<std::uint64_t>::max());
}

TEST(LibSvm, ReadsValuesOfEveryLength) {
  // Values with the dot at every position, after indices of every length.
  const std::string digits = "12345678901234567890123";
  std::string text;
  std::string expected;
  for (std::size_t length = 1; length <= digits.size(); ++length) {
    for (std::size_t dot = 0; dot <= length; ++dot) {
      const std::string number = digits.substr(0, dot) + "." + digits.substr(dot, length - dot);
      const std::string index = digits.substr(0, 1 + (length + dot) % 9);
      // One entry per row, since an index may occur only once in a row.
      text += fmt::format("1 {}:{}\n1 {}:-{}\n1 {}:{}\n", index, number, index, number, index,
                          digits.substr(0, length));
      const float value = std::stof(number);
      expected += fmt::format("1 {}:{}\n1 {}:{}\n1 {}:{}\n", index, value, index, -value, index,
                              std::stof(digits.substr(0, length)));
    }
  }
  EXPECT_EQ(RowsBehindOthers(text), expected);
}

TEST(LibSvm, ReadsRowsOfManyLengths) {
  std::string text;
  for (int features = 0; features < 300; ++features) {
    text += "1";
    for (int i = 0; i < features; ++i) text += fmt::format(" {}:{}", i, i % 7);
    text += "\n";
  }
  EXPECT_EQ(RowsBehindOthers(text), text);
}

TEST(LibSvm, AddsToTheRowsThatAreThere) {
  const std::string text = "1 1:1\n2:2 3\n3 1:1 # x\n4,5 1:1\n6 7\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    if (cut == 0 || text[cut - 1] == '\n') Parse(text, kZero, cut);
  }
  RowBlock<std::uint32_t> block;
  const FaultHandler none = [](const Fault&) { FAIL(); };
  ParseLibSvm(Guarded().Put("1 1:1\n", kPadding), kZero, block, none);
  ParseLibSvm(Guarded().Put("", kPadding), kZero, block, none);
  ParseLibSvm(Guarded().Put("2 2:2\n", kPadding), kZero, block, none);
  EXPECT_EQ(Render(block), "1 1:1\n2 2:2\n");
  block.Clear();
  ParseLibSvm(Guarded().Put("3 qid:1\n", kPadding), kZero, block, none);
  EXPECT_EQ(Render(block), "3 qid:1\n");
}

const char* const kLabelExpected = "label, label:weight or label,label..., all of them decimal numbers";
const char* const kWeightExpected = "label:weight, both of them decimal numbers";
const char* const kQidExpected = "qid:n, n a whole number from 0 to 2^64 - 1";
const char* const kFeatureExpected = "index:value or an index alone";
const char* const kValueExpected = "index:value with a decimal number as value";

/// Expects exactly this fault in `row`, wherever the row is, and expects the rows around it to be unaffected.
template <typename Index = std::uint32_t>
void ExpectFault(const std::string& row, std::size_t position, const std::string& expected,
                 FirstIndex first = kZero, const std::string& others = "1 1:1\n") {
  using Strings = std::vector<std::string>;
  const std::string rendered = Rows<Index>(others, first);
  for (const char* end : {"\n", "\r", "\r\n", "# x\n", ""}) {
    const Result<Index> alone = Parse<Index>(row + end, first);
    if (others == "1 1:1\n") {
      EXPECT_EQ(alone.faults, Strings{fmt::format("{}: {}", position, expected)}) << row;
      EXPECT_TRUE(alone.block.empty()) << row;
    }
    const Result<Index> last = Parse<Index>(others + row + end, first);
    EXPECT_EQ(last.faults, Strings{fmt::format("{}: {}", others.size() + position, expected)}) << row;
    EXPECT_EQ(Render(last.block), rendered) << row;
    EXPECT_EQ(Difference<Index>({last.block, {}}, Parse<Index>(others, first)), "") << row;
    if (*end == '\0') continue;
    const Result<Index> between = Parse<Index>(fmt::format("{}{}{}{}", others, row, end, others), first);
    EXPECT_EQ(between.faults, last.faults) << row;
    EXPECT_EQ(Render(between.block), rendered + rendered) << row;
  }
}

TEST(LibSvm, AnIndexTwiceInARowIsABadRowWhereverItStands) {
  const std::string expected = "each index once in a row";
  ExpectFault("1 5:1 2:2 5:3", 10, expected);
  ExpectFault("1 2 2", 4, expected);
  ExpectFault("1:2 1:1 02:1 3:1 2:0 # c", 17, expected);
  ExpectFault("1 1:1 1:1", 6, expected, kOne);
  // A bad row among good rows that the kernels parse: the good rows must lose no entries.
  std::string text;
  for (int row = 0; row < 50; ++row) text += "1 3:1 7:2 30:3\n";
  for (const std::string bad : {"0 3:1 3:2\n", "0 7:1 3:2 7:1\n", "0 1 2 3 4 5 6 7 1\n"}) {
    const auto parsed = Parse(text + bad + text + "2 99:1\n");
    EXPECT_EQ(parsed.faults.size(), 1U) << bad;
    EXPECT_EQ(parsed.block.rows(), 101U);
    EXPECT_EQ(parsed.block.columns, 100U);
    EXPECT_EQ(parsed.block.least_index, 3U);
  }
}

TEST(LibSvmFaults, ALabelThatIsNoNumber) {
  for (const char* row :
       {"x 1:1",     "1x 1:1", "qid:1 1:1", ":1 1:1", "1,x 1:1", "1, 1:1",    ",1 1:1", "1,,2 1:1",
        ", 1:1",     "- 1:1",  "1;2 1:1",   "0x1",    "'1' 1:1", "1\x01 1:1", "\x7F",   "\xFF\xFE 1:1",
        "1,x:2 1:1", "x:y",    "e1",        "1e",     ".",       "5:1:x",     "1qid:3", "1.2.3"}) {
    const bool weight = std::string_view(row) == "5:1:x";
    ExpectFault(row, 0, weight ? kWeightExpected : kLabelExpected);
  }
  ExpectFault("  \t x 1:1", 4, kLabelExpected);
}

TEST(LibSvmFaults, AWeightThatIsNoNumber) {
  for (const char* row : {"1: 1:1", "1:x 1:1", "1:2:3 1:1", "1:2,3", "1,2: 1", "1:1e 1:1", "1:-", "1::"}) {
    ExpectFault(row, 0, kWeightExpected);
    ExpectFault(row, 0, kWeightExpected, kZero, "1:2 1:1\n3:0.5\n");
  }
  ExpectFault(" 1:x", 1, kWeightExpected);
}

TEST(LibSvmFaults, ALabelOrAWeightThatNoRowCanBeTrainedOnWith) {
  const std::string label = "a label that is not nan and within the range of a float";
  for (const char* row : {"nan 1:1", "-NaN 1:1", "1e39 1:1", "-1e99", "nan:1 1:1", "1,nan 1:1", "inf,1e39"})
    ExpectFault(row, 0, label);
  const std::string weight = "a finite weight of at least 0";
  for (const char* row :
       {"1:nan 1:1", "1:-1 1:1", "0.5:-1e-9", "1:inf 1:1", "1:-inf", "1:1e39 1:1", "1,2:-1"})
    ExpectFault(row, 0, weight);
  EXPECT_EQ(RowsBehindOthers("1:-0 1:1\n1:0 1:1\n"), "1:-0 1:1\n1:0 1:1\n");
}

TEST(LibSvmFaults, AQueryIdThatIsNoWholeNumber) {
  const std::string others = "1 qid:1 1:1\n2 qid:2 3\n";
  for (const char* row :
       {"1 qid: 1:1", "1 qid:x", "1 qid:-1", "1 qid:+1", "1 qid:1.0 1:1", "1 qid:18446744073709551616",
        "1 qid:1:2", "1 qid:123456789012345678x 1:1", "1 qid:1\x01"}) {
    ExpectFault(row, 2, kQidExpected, kZero, others);
  }
  EXPECT_EQ(Parse("1 qid:x\n1 1:1\n").faults, std::vector<std::string>{fmt::format("2: {}", kQidExpected)});
}

TEST(LibSvmFaults, AQueryIdInSomeRowsOnly) {
  const std::string missing = "qid:n after the label, as in the rows before";
  const std::string others = "1 qid:1 1:1\n2 qid:2 3\n";
  ExpectFault("1 1:1", 2, missing, kZero, others);
  ExpectFault("1", 1, missing, kZero, others);
  ExpectFault("1   ", 4, missing, kZero, others);
  ExpectFault("1 1:1 qid:3", 2, missing, kZero, others);
  ExpectFault("1 qi:3", 2, missing, kZero, others);
  ExpectFault("1 Qid:3", 2, missing, kZero, others);
  ExpectFault("1 qid", 2, missing, kZero, others);
  const std::string row = "1 qid:3 1:1\n";
  const auto result = Parse("1 1:1\n" + row + "2 2:2\n");
  EXPECT_EQ(result.faults, std::vector<std::string>{"8: no qid, as in the rows before"});
  EXPECT_EQ(Render(result.block), "1 1:1\n2 2:2\n");
}

TEST(LibSvmFaults, AQueryIdBehindAFeature) {
  ExpectFault("1 1:1 qid:3", 6, kFeatureExpected);
  ExpectFault("1 qid:1 qid:2 1:1", 8, kFeatureExpected, kZero, "1 qid:1 1:1\n");
}

TEST(LibSvmFaults, AnIndexThatIsNoWholeNumber) {
  for (const char* word :
       {"x:1",   "-1:1",  "+1:1", "1.5:1", ":1",     ":",    "1e3:1", "x",       "-1", "1.5",  "1e3", ".",
        "0x1:1", "1,2:1", "a1:1", "1a:1",  "\xFF:1", "\x01", "1\x01", "1\x7F:1", "..", ".5:1", "::1"}) {
    ExpectFault(fmt::format("1 2:3 {} 4:5", word), 6, kFeatureExpected);
    ExpectFault(fmt::format("1 {}", word), 2, kFeatureExpected);
  }
}

TEST(LibSvmFaults, AValueThatIsNoNumber) {
  for (const char* word : {"1:",
                           "1:x",
                           "1:-",
                           "1:+",
                           "1:.",
                           "1:-.",
                           "1:+.",
                           "1:--1",
                           "1:+-1",
                           "1:1-",
                           "1:1.2.3",
                           "1:..",
                           "1:1e",
                           "1:1:2",
                           "1::1",
                           "1:0x1",
                           "1:1,5",
                           "1:nan(1)",
                           "1:infin",
                           "1:1\x01",
                           "1:\xFF",
                           "1:.-1",
                           "1:-.-1",
                           "123456789:.",
                           "12345678:-.",
                           "1:1.12345678901x",
                           "1:123456789.123.4",
                           "1:1234567890123456789012345678901234567890x",
                           "1:.e1",
                           "1:..........",
                           "1:1.5-",
                           "1:-:1"}) {
    ExpectFault(fmt::format("1 2:3 {} 4:5", word), 6, kValueExpected);
    ExpectFault(fmt::format("1 {}", word), 2, kValueExpected);
  }
}

TEST(LibSvmFaults, AnIndexThatIsTooGreat) {
  const std::string most = "an index up to 4294967294 (64-bit indices go further)";
  for (const char* word :
       {"4294967295:1", "4294967295", "9999999999:1", "18446744073709551615:1", "12345678901:x"}) {
    ExpectFault(fmt::format("1 {}", word), 2, most);
  }
  ExpectFault("1 4294967296:1", 2, "an index up to 4294967295 (64-bit indices go further)", kOne);
  ExpectFault<std::uint64_t>("1 18446744073709551615:1", 2, "an index up to 18446744073709551614");
  // Numbers of more than 64 bits are refused, too.
  for (const char* word : {"18446744073709551616:1", "99999999999999999999999999",
                           "340282366920938463463374607431768211457:1"}) {
    const std::string text = fmt::format("1 1:1\n1 {}\n1 1:1\n", word);
    EXPECT_EQ(Parse(text).faults.size(), 1U) << word;
    EXPECT_EQ(Parse<std::uint64_t>(text).faults.size(), 1U) << word;
  }
}

TEST(LibSvmFaults, AnIndexOfZeroWhereTheyCountFromOne) {
  for (const char* word :
       {"0:1", "0", "00:1", "000000000000000000000:1", "0:1.000000000001", "0:x", "00000000", "0:1e1"}) {
    ExpectFault(fmt::format("1 1:1 {} 2:2", word), 6, "an index of 1 or more (indexing_mode=1)", kOne);
  }
}

TEST(LibSvmFaults, EveryRowHasItsOwn) {
  EXPECT_EQ(
      Parse("x\n1 y\n2 1:1\n3 1:z\n4 4:4\n").faults,
      (std::vector<std::string>{fmt::format("0: {}", kLabelExpected), fmt::format("4: {}", kFeatureExpected),
                                fmt::format("14: {}", kValueExpected)}));
}

TEST(LibSvmFaults, ABadRowLeavesNoneOfItsWeightsLabelsQueryIdsAndIndicesBehind) {
  for (const char* bad : {"1:2 x\n", "1,2 x\n", "1,2:3 x\n", "1 99:1 x\n", "1 0:1 5:x\n"}) {
    const std::string row = bad;
    for (const std::string before : {"", "5 5:5\n", "5 5:5\n6 6:6\n"}) {
      const auto with = Parse(before + row + "7 7:7\n");
      ASSERT_EQ(with.faults.size(), 1U) << row;
      EXPECT_EQ(Difference<std::uint32_t>({with.block, {}}, Parse(before + "7 7:7\n")), "") << before << row;
    }
  }
  const auto with = Parse("1 qid:1 x\n7 7:7\n");
  EXPECT_EQ(Render(with.block), "7 7:7\n");
}

TEST(LibSvmFaults, AHandlerThatThrowsEndsTheParsingAndTheRowsBeforeStay) {
  for (const simd::Kernels* kernels : AllKernels()) {
    const Forced forced(*kernels);
    RowBlock<std::uint32_t> block;
    const FaultHandler stop = [](const Fault& fault) { throw DataError(fault.expected); };
    EXPECT_THROW(ParseLibSvm(Guarded().Put("1 1:1\n2 2:2\n3 3:3 x\n4 4:4\n", kPadding), kZero, block, stop),
                 DataError);
    EXPECT_EQ(Render(block), "1 1:1\n2 2:2\n");
    EXPECT_EQ(block.entries(), 2U);
    EXPECT_EQ(block.labels.size(), 2U);
  }
}

/// Rows of every kind, good and bad.
const std::vector<std::string>& Corpus() {
  static const std::vector<std::string> corpus = [] {
    std::vector<std::string> texts;
    for (const char* row :
         {"1 1:1 2:2.5 3:-0.125",
          "0",
          "-1 12345678:12345678 123456789:1",
          "1 1:1.23456789012345678",
          "1 1:0.1234567890123456",
          "1 1:-0.00000000000000001",
          "1 5 6 7:1 8",
          "1 3:1 17:0 127:9 5:1",
          "0 1:1 22:2 333:3 4444:4 55555:5 666666:6 7777777:7 88888888:8 999999999:9 9:9 8:8",
          "1 0:1 5:1 3:1",
          "1 1:1  2:1\t3:1 4:1",
          "2.5 1:1e10 2:1e-10 3:+4",
          "1 1:inf 2:nan 3:-Infinity",
          "# nothing but this",
          "1 1:1 # 5:5 # 6",
          "1#",
          "1:2 1:1",
          "1:0.5",
          "1,2 1:1",
          "1,2,3:4 1:1",
          "1 qid:7 1:1",
          "1:2 qid:8",
          "1 qid:123456789012345678 1",
          "1 qid:18446744073709551615 1",
          "1 1234567890:1",
          "1 123456789012345678:1",
          "1 1234567890123456789:1",
          "1\t1:1\t\t2:2 \t ",
          "1 1:1.5.5",
          "1 1:.",
          "1 1:-.",
          "1 1:",
          "1 :1",
          "x",
          "1 x:1 1:1",
          "1 1:2:3",
          "1 1:16777217 2:16777217.0 3:1.000000059604644775390625",
          "1 1:1234567 2:12345678 3:123456789 4:1234.5678 5:12345.6789",
          "1 0:1",
          "1 1:00000000000000000000000000000000000000000000000001",
          "1 00000000000000000000000000000000000000000000000000000000000000000000000001:5",
          "1 1:1.00000000000000000000000000000000000000000000000000000000000000000000000000000000000",
          "1 1:1 # \x01\xFF",
          "1 1:1\x01",
          "1 \x80:1",
          "1 1:99999999 99999999:0.99999999 1:99999999.9 1:.99999999 1:.999999999",
          "1 1:9999999999999999 2:9007199254740993"}) {
      texts.emplace_back(row);
    }
    return texts;
  }();
  return corpus;
}

/// The first row decides how the following rows are read.
constexpr std::array<std::string_view, 5> kFirstRows = {"", "1 1:1\n", "1:2 1:1\n", "1 qid:1 1:1\n",
                                                        "1:2 qid:1\n"};

TEST(LibSvmKernels, GiveWhatThePlainParserGivesWhereverTheWordsAre) {
  for (const std::string& row : Corpus()) {
    for (const std::string_view before : kFirstRows) {
      for (std::size_t shift = 0; shift <= 70; ++shift) {
        const std::string blanks(shift, ' ');
        const std::string letters(shift, 'x');
        Parse(fmt::format("{}{}{}\n2 1:1\n", before, blanks, row), kZero);
        Parse(fmt::format("{}1 2:3{} {}\n2 1:1\n", before, blanks, row), kOne);
        Parse<std::uint64_t>(fmt::format("{}#{}\n{}\r\n1 1", before, letters, row), kOne);
        Parse<std::uint64_t>(fmt::format("{}1 1:1 # {}\n{}", before, std::string(shift, ':'), row), kZero);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(LibSvmKernels, GiveWhatThePlainParserGivesForAllRowsBehindOneAnother) {
  for (const std::string_view before : kFirstRows) {
    std::string text(before);
    for (int round = 0; round < 3; ++round) {
      for (const std::string& row : Corpus()) text += row + "\n1 1:1\n";
    }
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      if (cut == 0 || text[cut - 1] == '\n') Parse(text, kZero, cut);
      if (HasFailure()) return;
    }
    Parse<std::uint64_t>(text, kOne);
  }
}

/// Generates text with rows, most of them ordinary.
class Grammar {
 public:
  explicit Grammar(std::uint64_t seed) : random_(seed) {}

  std::string Text() {
    std::string text(kFirstRows[Below(kFirstRows.size())]);
    const bool qids = text.find("qid") != std::string::npos;
    const bool weights = text.find("1:2") != std::string::npos;
    const std::size_t rows = 1 + Below(12);
    // A third of the generated texts have no odd rows, so that the kernels read many rows.
    odd_ = Below(3) == 0 ? 0 : 1 + Below(8);
    for (std::size_t i = 0; i < rows; ++i) text += Row(weights, qids);
    if (Below(4) == 0) text.resize(text.size() - 1);
    return text;
  }

  std::size_t Below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

 private:
  bool Odd() { return Below(100) < odd_; }
  std::string Digits(std::size_t most) {
    std::string digits;
    const std::size_t count = 1 + Below(most);
    for (std::size_t i = 0; i < count; ++i) digits += static_cast<char>('0' + Below(10));
    return digits;
  }
  template <std::size_t n>
  std::string OneOf(const std::array<const char*, n>& words) {
    return words[Below(n)];
  }

  std::string Number() {
    if (Odd()) {
      static constexpr std::array words = {"",       "-",     "+",       ".",    "-.",       "--1",
                                           "1e",     "1e5",   "-1.5e-7", "inf",  "NaN",      "-Infinity",
                                           "nan(1)", "+1",    "1.2.3",   "1,5",  "x",        "1:2",
                                           "1e99",   "1e-99", ".5.",     "\x01", "\xC3\xA9", "1#"};
      return OneOf(words);
    }
    std::string number;
    switch (Below(8)) {
      case 0:
        number = Digits(1);
        break;
      case 1:
        number = Digits(8);
        break;
      case 2:
        number = "0." + Digits(18);
        break;
      case 3:
        number = Digits(22);
        break;
      case 4:
        number = std::array{"16777217", "1.000000059604644775390625", "33554435.0",
                            "0.50000002980232239"}[Below(4)];
        break;
      case 5:
        number = std::string(Below(30), '0') + Digits(3);
        break;
      default:
        number = Digits(3) + "." + Digits(1 + Below(18));
    }
    if (Below(6) == 0)
      number.insert(Below(number.size() + 1), number.find('.') == std::string::npos ? "." : "0");
    return (Below(4) == 0 ? "-" : "") + number;
  }
  std::string Feature() {
    if (Odd()) {
      static constexpr std::array words = {"x",        ":",     "::",     "qid:1",   "-1:1",  "1.5:1",
                                           ":5",       "1e1:1", "#",      "# 1:1",   "1#2",   "+1:1",
                                           "..",       "0:1",   "\xFF:1", "1:",      "a:b:c", "#a:b ",
                                           "\x01\x02", "5:.",   "5:-.",   "1:1#:.-", "0"};
      return OneOf(words);
    }
    if (Odd()) return Digits(70) + ":" + Digits(70);
    const std::string index = Below(10) == 0 ? Digits(20) : Digits(1 + Below(10));
    return Below(8) == 0 ? index : index + ":" + Number();
  }
  std::string Row(bool weights, bool qids) {
    std::string row = std::string(Below(20) == 0 ? Below(80) : 0, ' ');
    row += Below(2) == 0 ? Digits(1) : Number();
    if (Odd()) row += "," + Number();
    if (weights ? Below(3) != 0 : Odd()) row += ":" + Number();
    if (qids ? !Odd() : Odd()) row += " qid:" + Digits(Below(10) == 0 ? 22 : 5);
    const std::size_t features = Below(10) == 0 ? Below(40) : Below(6);
    for (std::size_t i = 0; i < features; ++i) row += Blank() + Feature();
    if (Below(10) == 0) row += Blank() + "#" + std::string(Below(90), 'x');
    if (Below(10) == 0) row += Blank();
    if (Odd()) return OneOf(std::array{"\n", "\r", "#\n", " \t\n", "\x01\n"});
    return row + (Below(10) == 0 ? OneOf(std::array{"\r", "\r\n", "\n\n"}) : "\n");
  }
  std::string Blank() { return Below(12) == 0 ? OneOf(std::array{"  ", "\t", " \t ", "\t\t"}) : " "; }

  Random random_;
  std::size_t odd_ = 0;
};

bool EndsLine(char c) {
  return c == '\n' || c == '\r';
}

/// The position at which a reader of files would split the text: after the last line end before `place`, or
/// 0.
std::size_t SomeCut(std::string_view text, std::size_t place) {
  while (place > 0 && !EndsLine(text[place - 1])) --place;
  return place;
}

template <typename Next>
void CompareOnRandomTexts(unsigned texts, std::uint64_t seed, const Next& next) {
  Random random(seed);
  const std::array<std::string_view, 5> paddings = {kPadding, "9", ":", "\n", "#.- 1:1\n"};
  for (unsigned i = 0; i < RandomCases(texts); ++i) {
    const std::string text = next();
    const FirstIndex first = random() % 2 == 0 ? kZero : kOne;
    const std::size_t cut = random() % 2 == 0 ? 0 : SomeCut(text, random() % (text.size() + 1));
    const std::string_view padding = paddings[random() % paddings.size()];
    if (random() % 2 == 0) {
      Parse<std::uint32_t>(text, first, cut, padding);
    } else {
      Parse<std::uint64_t>(text, first, cut, padding);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(LibSvmKernels, GiveWhatThePlainParserGivesForRandomRows) {
  Grammar grammar(1);
  CompareOnRandomTexts(40000, 2, [&] { return grammar.Text(); });
}

TEST(LibSvmKernels, GiveWhatThePlainParserGivesForRandomBytes) {
  Random random(3);
  const std::string_view alphabet = "0123456789.:-+e# \t\n\rqid,x";
  CompareOnRandomTexts(250000, 4, [&] {
    std::string text(kFirstRows[random() % kFirstRows.size()]);
    const std::size_t length = random() % 40;
    for (std::size_t i = 0; i < length; ++i) text += alphabet[random() % alphabet.size()];
    return text;
  });
}

TEST(LibSvmKernels, GiveWhatThePlainParserGivesForRandomBytesInFeatures) {
  Random random(5);
  const std::string_view alphabet = "0123456789012345678901234567890123456789..::::--    # \ne+";
  CompareOnRandomTexts(100000, 6, [&] {
    std::string text = "1 1:1\n1 ";
    const std::size_t length = random() % 30;
    for (std::size_t i = 0; i < length; ++i) text += alphabet[random() % alphabet.size()];
    return text + "\n1 1:1\n";
  });
}

TEST(LibSvmKernels, GiveWhatThePlainParserGivesForValuesOfASingleDigit) {
  Random random(7);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  const std::string_view odd = "0123456789.:-+e# \t\n\r,x";
  CompareOnRandomTexts(40000, 8, [&] {
    std::string text(kFirstRows[below(kFirstRows.size())]);
    const std::size_t most_digits = 1 + below(9);
    for (std::size_t rows = 1 + below(4); rows > 0; --rows) {
      text += static_cast<char>('0' + below(10));
      for (std::size_t features = below(30); features > 0; --features) {
        text += ' ';
        for (std::size_t digits = 1 + below(most_digits); digits > 0; --digits)
          text += static_cast<char>('0' + below(10));
        text += ':';
        text += static_cast<char>('0' + below(10));
      }
      text += '\n';
    }
    if (below(2) == 0) text[below(text.size())] = odd[below(odd.size())];
    return text;
  });
}

TEST(LibSvmKernels, GiveWhatThePlainParserGivesForOneOddByteInAnOrdinaryRow) {
  const std::string text =
      "1 1:1\n1 12:3.25 3:-0.5 123456789:1.234567890123 7 8:12345678 # end\n0 1:1 2:2 3:3\n";
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string odd = text;
      odd[at] = static_cast<char>(byte);
      Parse(odd, kOne);
      Parse<std::uint64_t>(odd, kZero);
      odd.insert(at, 1, static_cast<char>(byte));
      Parse(odd, kZero);
      if (HasFailure()) return;
    }
  }
}

TEST(LibSvmKernels, ReadNothingBehindThePaddingAndMakeNothingOfWhatIsInIt) {
  for (const std::string_view padding :
       {"0", "9", ":", ".", "-", " ", "\n", "\r", "#", "1:1 ", "1 1:1\n", "qid:1 ", "\xFF", "e9"}) {
    for (const std::string_view before : kFirstRows) {
      const std::string start(before);
      for (const char* row : {"1 1:1", "1 1:123456789.123456", "1", "1 ", "1 5", "1 1:-", "1 1:", "1:",
                              "1 qid:1", "1 qid:", "1 qi", "#", "1 #", "1 1:1.5 2:2.5", "-", ""}) {
        for (const char* end : {"", "\n", " \n", "\r\n", "\n\n"}) Parse(start + row + end, kZero, 0, padding);
      }
      for (std::size_t length = 0; length < 140; ++length) {
        Parse(start + "1 " + std::string(length, ' ') + "1:1\n", kZero, 0, padding);
        Parse(start + "1 1:" + std::string(length, '3') + "\n", kZero, 0, padding);
        Parse(start + "1 1:1 #" + std::string(length, ':') + "\n", kZero, 0, padding);
        Parse<std::uint64_t>(start + std::string(length, '\n'), kZero, 0, padding);
        Parse<std::uint64_t>(start + "1 " + std::string(length, '3'), kZero, 0, padding);
      }
      if (HasFailure()) return;
    }
  }
}

/// A number as text, as close to the midpoint of two floats as 13 to 17 decimals allow.
std::string NearAMiddle(Random& random) {
  const auto mantissa = static_cast<double>((1 << 24) + 2 * (random() % (1 << 23)) + 1);
  const double middle = std::ldexp(mantissa, static_cast<int>(random() % 8) - 27);
  return fmt::format("{:.{}f}", middle, 13 + random() % 5);
}

TEST(LibSvmKernels, DoNotRoundTwice) {
  Random random(7);
  std::string text = "1 1:1\n";
  std::vector<std::string> numbers;
  for (int i = 0; i < 5000; ++i) {
    numbers.push_back(NearAMiddle(random));
    text += fmt::format("1 {}:{}\n", i, numbers.back());
  }
  const Result<std::uint32_t> result = Parse(text);
  ASSERT_EQ(result.block.entries(), numbers.size() + 1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(result.block.values[i + 1], std::strtof(numbers[i].c_str(), nullptr)) << numbers[i];
  }
}

/// The number of bytes that a kernel reads before it leaves a row to the plain parser.
template <typename Index>
std::size_t ReadByKernel(const simd::Kernels& kernels, std::string_view text, bool weights, bool qids) {
  const std::string_view place = Guarded().Put(text, kPadding);
  RowBlock<Index> block;
  block.offsets.resize(text.size(), 0);
  block.indices.resize(text.size());
  block.values.resize(text.size());
  block.labels.resize(text.size());
  block.weights.resize(text.size());
  block.qids.resize(text.size());
  simd::LibSvmRows<Index> rows{
      .at = place.data(),
      .end = place.data() + place.size(),
      .first = 1,
      .rows = 0,
      .entries = 0,
      .offsets = block.offsets.data(),
      .indices = block.indices.data(),
      .values = block.values.data(),
      .labels = block.labels.data(),
      .weights = weights ? block.weights.data() : nullptr,
      .qids = qids ? block.qids.data() : nullptr,
      .columns = 0,
      .least = std::numeric_limits<Index>::max(),
      .ascending = true,
  };
  simd::LibSvm<Index>(kernels)(rows);
  return static_cast<std::size_t>(rows.at - place.data());
}

TEST(LibSvmKernels, ReadOrdinaryRowsToTheEnd) {
  const std::array<std::string_view, 4> starts = {"1", "-0.25:0.5", "3 qid:123456789012345678",
                                                  "1e2 qid:1 \t"};
  for (const simd::Kernels* kernels : AllKernels()) {
    if (kernels->libsvm32 == nullptr) continue;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      std::string text;
      for (std::size_t shift = 0; shift < 70; ++shift) {
        text += std::string(shift, ' ') + std::string(starts[i]);
        text +=
            " 1:1 12:-3.25 123:0.000123 4567:12345678 123456789:1.23456789012345 7 8:1e5 9:+1 10:inf\t11:.5  12:5.";
        text += " 13:123456789012345678901234567890 14:16777217 15:3.14159265358979312 16:0 #" +
                std::string(100 + shift, 'x') + "\r\n\n";
        if (i == 0) text += std::string(shift, ' ') + "0\r5\n";
        text += std::string(starts[i]) + std::string(shift, ' ');
        for (int index = 1; index < 100'000'000; index = 3 * index + 1)
          text += fmt::format(" {}:{}", index, index % 10);
        text += "\n";
      }
      const bool weights = i == 1;
      const bool qids = i >= 2;
      EXPECT_EQ(ReadByKernel<std::uint32_t>(*kernels, text, weights, qids), text.size())
          << kernels->name << text;
      EXPECT_EQ(ReadByKernel<std::uint64_t>(*kernels, text, weights, qids), text.size())
          << kernels->name << text;
    }
  }
}

TEST(LibSvmKernels, TheWidestIsTakenUnlessAnotherOneIsForced) {
  const simd::Kernels* const widest = &simd::Best();
  {
    const Forced forced(simd::Plain());
    EXPECT_EQ(&simd::Best(), &simd::Plain());
  }
  EXPECT_EQ(&simd::Best(), widest);
}

}  // namespace
}  // namespace warren::data
