// libfm text split after a line end: the two parts have the rows of the whole text, read into one block or
// separately, and together its faults. The rows are consistent.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/libfm.h"
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

template <typename Index>
void Try(std::string_view text, FirstIndex first, std::size_t cut) {
  const auto parse = [&](std::size_t begin, std::size_t end, RowBlock<Index>& block) {
    std::string faults;
    ParseLibFm(text.substr(begin, end - begin), first, block, [&](const Fault& fault) {
      Require(fault.position <= end - begin && !fault.expected.empty());
      faults += std::to_string(begin + fault.position) + ": " + fault.expected + "\n";
    });
    return faults;
  };
  RowBlock<Index> whole;
  const std::string faults = parse(0, text.size(), whole);
  const std::string rows = ShowRows(whole);
  Require(whole.fields.size() == whole.entries());
  Require(whole.label_offsets.empty() && whole.qids.empty());

  RowBlock<Index> one_after_the_other;
  std::string faults_of_parts = parse(0, cut, one_after_the_other);
  faults_of_parts += parse(cut, text.size(), one_after_the_other);
  Require(faults_of_parts == faults && ShowRows(one_after_the_other) == rows);

  RowBlock<Index> joined;
  RowBlock<Index> rest;
  parse(0, cut, joined);
  parse(cut, text.size(), rest);
  joined.Append(rest.View());
  Require(ShowRows(joined) == rows);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::vector<std::size_t> cuts = Cuts(text);
  const std::size_t cut = cuts[data[1] % cuts.size()];
  const auto first = static_cast<FirstIndex>(data[0] % 2);
  Try<std::uint32_t>(text, first, cut);
  Try<std::uint64_t>(text, first, cut);
  return 0;
}
