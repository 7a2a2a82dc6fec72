// LibSVM rows: every kernel's result is bit-identical to the plain parser's, and text split after a line end
// has the rows of its two parts, unless only one part has query ids.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/error.h"
#include "data/row_block.h"
#include "data/text/libsvm.h"
#include "data/text/simd/kernels.h"
#include "tests/data/difference.h"

namespace {

using warren::data::Difference;
using warren::data::Fault;
using warren::data::FirstIndex;
using warren::data::RowBlock;

template <typename Index>
struct Result {
  RowBlock<Index> block;
  std::vector<std::pair<std::size_t, std::string>> faults;
};

void Require(bool right) {
  if (!right) std::abort();
}

/// Checks that the parts of a block are consistent.
template <typename Index>
void RequireWhole(const RowBlock<Index>& block) {
  const std::size_t rows = block.rows();
  Require(block.values.size() == block.entries());
  Require(block.empty() || block.offsets.back() == block.entries());
  Require(block.weights.empty() || block.weights.size() == rows);
  Require(block.qids.empty() || block.qids.size() == rows);
  Require(block.fields.empty());
  Require(block.label_offsets.empty()
              ? block.labels.size() == rows
              : block.label_offsets.size() == rows + 1 && block.label_offsets.back() == block.labels.size());
  for (const Index index : block.indices) Require(index < block.columns && index >= block.least_index);
}

/// Parses with the selected kernel, in memory that ends with the padding.
template <typename Index>
Result<Index> Parse(std::string_view text, FirstIndex first) {
  std::vector<char> padded(text.begin(), text.end());
  padded.resize(text.size() + warren::data::kTextPadding, '1');
  Result<Index> result;
  warren::data::ParseLibSvm(
      std::string_view(padded.data(), text.size()), first, result.block,
      [&](const Fault& fault) { result.faults.emplace_back(fault.position, fault.expected); });
  return result;
}

template <typename Index>
Result<Index> ParsePlainly(std::string_view text, FirstIndex first) {
  const std::vector<char> exact(text.begin(), text.end());
  Result<Index> result;
  warren::data::ParseLibSvmPlainly(
      std::string_view(exact.data(), exact.size()), first, result.block,
      [&](const Fault& fault) { result.faults.emplace_back(fault.position, fault.expected); });
  return result;
}

template <typename Index>
void CompareParts(std::string_view text, std::size_t cut, FirstIndex first, const Result<Index>& whole) {
  Result<Index> head = Parse<Index>(text.substr(0, cut), first);
  const Result<Index> tail = Parse<Index>(text.substr(cut), first);
  try {
    head.block.Append(tail.block.View());
  } catch (const warren::data::DataError&) {
    return;  // only one part has query ids, which is a fault in the whole text
  }
  Require(Difference(head.block, whole.block).empty());
  Require(head.faults.size() + tail.faults.size() == whole.faults.size());
}

template <typename Index>
void Compare(std::string_view text, FirstIndex first) {
  const Result<Index> plain = ParsePlainly<Index>(text, first);
  RequireWhole(plain.block);
  using namespace warren::data::simd;
  for (const Kernels* kernels : {Sse41(), Avx2(), Neon()}) {
    if (kernels == nullptr) continue;
    Force(kernels);
    const Result<Index> result = Parse<Index>(text, first);
    Require(Difference(result.block, plain.block).empty() && result.faults == plain.faults);
  }
  Force(nullptr);
  // Only a few splits are tried, since a text may have thousands of line ends.
  constexpr std::size_t kCuts = 4;
  for (std::size_t i = 1; i < kCuts; ++i) {
    const std::size_t line_end = text.find_first_of("\r\n", text.size() * (i - 1) / kCuts);
    if (line_end != std::string_view::npos) CompareParts(text, line_end + 1, first, plain);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Each input tests one of the four combinations of first index and index width; changing one byte can
  // select another.
  unsigned sum = 0;
  for (const char c : text) sum += static_cast<unsigned char>(c);
  const FirstIndex first = sum % 2 == 0 ? FirstIndex::kZero : FirstIndex::kOne;
  if (sum / 2 % 2 == 0) {
    Compare<std::uint32_t>(text, first);
  } else {
    Compare<std::uint64_t>(text, first);
  }
  return 0;
}
