// CSV tables split after a line end. If both parts are read into one block, the rows and faults are those of
// the whole table. If the parts are read separately, the rows are the same provided that the table has no
// faults. All rows are consistent with each other and with the options.
#include <cstdint>
#include <string_view>

#include "data/text/csv.h"
#include "tests/fuzz/halves.h"

namespace {

using namespace warren::data;

/// The options selected by the bits of `choice`: the special columns and the delimiter.
CsvOptions Options(unsigned choice) {
  CsvOptions options;
  options.delimiter = ",;\t "[choice % 4];
  options.label_column = static_cast<int>(choice / 4 % 4) - 1;
  if ((choice & 16) != 0) options.weight_column = 3;
  if ((choice & 32) != 0) options.qid_column = 4;
  return options;
}

template <typename Index>
void RequireFitting(const RowBlock<Index>& block, const CsvOptions& options) {
  Require(block.fields.empty() && block.label_offsets.empty());
  Require(block.weights.size() == (options.weight_column < 0 ? 0 : block.rows()));
  Require(block.qids.size() == (options.qid_column < 0 ? 0 : block.rows()));
  for (std::size_t row = 0; row < block.rows(); ++row) {
    for (std::size_t i = block.offsets[row]; i < block.offsets[row + 1]; ++i) {
      Require(block.indices[i] < block.columns);
      Require(i == block.offsets[row] || block.indices[i - 1] < block.indices[i]);
    }
  }
}

template <typename Index>
void Try(const Halves& input, const CsvOptions& options) {
  // A part that is read separately may have more rows if there are faults, because its own first row
  // determines the number of cells.
  const auto parse = [&](std::string_view text, RowBlock<Index>& block, const auto& report) {
    ParseCsv(text, options, block, report);
  };
  RequireFitting(ParseInHalves<Index>(input, true, parse), options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Halves input(data, size);
  const CsvOptions options = Options(input.choice);
  Try<std::uint32_t>(input, options);
  Try<std::uint64_t>(input, options);
  return 0;
}
