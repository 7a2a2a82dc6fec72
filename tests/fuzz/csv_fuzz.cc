// CSV tables split after a line end. If both parts are read into one block, the rows and faults are those of
// the whole table. If the parts are read separately, the rows are the same provided that the table has no
// faults. All rows are consistent with each other and with the options.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/csv.h"
#include "tests/data/show_rows.h"

namespace {

using namespace warren::data;

void Require(bool holds) {
  if (!holds) std::abort();
}

/// The positions at which to split: the beginning of `text`, and after each CR and LF.
std::vector<std::size_t> Cuts(std::string_view text) {
  std::vector<std::size_t> cuts{0};
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' || text[i] == '\r') cuts.push_back(i + 1);
  }
  return cuts;
}

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
void Try(std::string_view text, const CsvOptions& options, std::size_t cut) {
  const auto parse = [&](std::size_t begin, std::size_t end, RowBlock<Index>& block) {
    std::string faults;
    ParseCsv(text.substr(begin, end - begin), options, block, [&](const Fault& fault) {
      Require(fault.position <= end - begin && !fault.expected.empty());
      faults += std::to_string(begin + fault.position) + ": " + fault.expected + "\n";
    });
    return faults;
  };
  RowBlock<Index> whole;
  const std::string faults = parse(0, text.size(), whole);
  const std::string rows = ShowRows(whole);
  RequireFitting(whole, options);

  RowBlock<Index> one_after_the_other;
  std::string faults_of_parts = parse(0, cut, one_after_the_other);
  faults_of_parts += parse(cut, text.size(), one_after_the_other);
  Require(faults_of_parts == faults && ShowRows(one_after_the_other) == rows);

  // If there are faults, a part read separately may have more rows, because its own first row determines the
  // number of cells.
  if (!faults.empty()) return;
  RowBlock<Index> joined;
  RowBlock<Index> rest;
  Require(parse(0, cut, joined).empty() && parse(cut, text.size(), rest).empty());
  joined.Append(rest.View());
  Require(ShowRows(joined) == rows);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::vector<std::size_t> cuts = Cuts(text);
  const std::size_t cut = cuts[data[1] % cuts.size()];
  const CsvOptions options = Options(data[0]);
  Try<std::uint32_t>(text, options, cut);
  Try<std::uint64_t>(text, options, cut);
  return 0;
}
