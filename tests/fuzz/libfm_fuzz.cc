// libfm text split after a line end: the two parts have the rows of the whole text, read into one block or
// separately, and together its faults. The rows are consistent.
#include <cstdint>
#include <string_view>

#include "data/text/libfm.h"
#include "tests/fuzz/halves.h"

namespace {

using namespace warren::data;

template <typename Index>
void Try(const Halves& input, FirstIndex first) {
  const RowBlock<Index> whole = ParseInHalves<Index>(
      input, false, [&](std::string_view text, RowBlock<Index>& block, const auto& report) {
        ParseLibFm(text, first, block, report);
      });
  Require(whole.fields.size() == whole.entries());
  Require(whole.label_offsets.empty() && whole.qids.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Halves input(data, size);
  const auto first = static_cast<FirstIndex>(input.choice % 2);
  Try<std::uint32_t>(input, first);
  Try<std::uint64_t>(input, first);
  return 0;
}
