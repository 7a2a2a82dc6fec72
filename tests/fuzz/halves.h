// Tables in text that are split after a line end, for the fuzzers of parsers that read a table in parts.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "data/row_block.h"
#include "data/text/format.h"
#include "tests/data/show_rows.h"

namespace warren::data {

inline void Require(bool holds) {
  if (!holds) std::abort();
}

/// The fuzzer's input: a byte that chooses options, a byte that chooses where to split the text, and the
/// text.
struct Halves {
  Halves(const std::uint8_t* data, std::size_t size)
      : choice(data[0]), text(reinterpret_cast<const char*>(data) + 2, size - 2) {
    std::vector<std::size_t> cuts{0};
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n' || text[i] == '\r') cuts.push_back(i + 1);
    }
    cut = cuts[data[1] % cuts.size()];
  }

  unsigned choice;
  std::string_view text;
  std::size_t cut = 0;  ///< the beginning of the text, or a position after a CR or LF
};

/// Parses the whole text and its two parts with `parse(text, block, report)`. Requires that the parts, read
/// into one block, have the rows and faults of the whole. Read separately, they must have its rows; if
/// `faults_change_rows`, only if it has no faults. Returns the rows of the whole.
template <typename Index, typename Parse>
RowBlock<Index> ParseInHalves(const Halves& input, bool faults_change_rows, const Parse& parse) {
  const auto read = [&](std::size_t begin, std::size_t end, RowBlock<Index>& block) {
    std::string faults;
    parse(input.text.substr(begin, end - begin), block, [&](const Fault& fault) {
      Require(fault.position <= end - begin && !fault.expected.empty());
      faults += std::to_string(begin + fault.position) + ": " + fault.expected + "\n";
    });
    return faults;
  };
  RowBlock<Index> whole;
  const std::string faults = read(0, input.text.size(), whole);
  const std::string rows = ShowRows(whole);

  RowBlock<Index> one_after_the_other;
  std::string faults_of_parts = read(0, input.cut, one_after_the_other);
  faults_of_parts += read(input.cut, input.text.size(), one_after_the_other);
  Require(faults_of_parts == faults && ShowRows(one_after_the_other) == rows);

  if (faults_change_rows && !faults.empty()) return whole;
  RowBlock<Index> joined;
  RowBlock<Index> rest;
  const std::string faults_of_separate =
      read(0, input.cut, joined) + read(input.cut, input.text.size(), rest);
  Require(faults_of_separate.empty() || !faults_change_rows);
  joined.Append(rest.View());
  Require(ShowRows(joined) == rows);
  return whole;
}

}  // namespace warren::data
