#include "data/agreement.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "data/error.h"

namespace warren::data {

template <typename Index>
bool Agree(RowBlock<Index>& block, Indexing indexing, const AllreduceMax& allreduce_max) {
  enum { kColumns, kBelowLeast, kFieldZero, kWithQid, kWithoutQid, kCount };
  std::uint64_t values[kCount] = {};
  values[kColumns] = block.columns;
  // The least of all by way of the greatest; 0 for whoever has no entry.
  if (block.entries() > 0)
    values[kBelowLeast] = std::numeric_limits<std::uint64_t>::max() - block.least_index;
  values[kFieldZero] =
      std::find(block.fields.begin(), block.fields.end(), Index{0}) != block.fields.end() ? 1 : 0;
  values[kWithQid] = !block.empty() && !block.qids.empty() ? 1 : 0;
  values[kWithoutQid] = !block.empty() && block.qids.empty() ? 1 : 0;
  allreduce_max(values, std::size(values));
  if (values[kWithQid] != 0 && values[kWithoutQid] != 0) {
    throw DataError(
        "some workers read rows with a qid and others rows without; expected one in every row, or in none");
  }
  block.columns = values[kColumns];
  const bool from_one = values[kFieldZero] == 0 && values[kBelowLeast] != 0 &&
                        values[kBelowLeast] != std::numeric_limits<std::uint64_t>::max();
  if (indexing != Indexing::kDetect || !from_one) return false;
  for (Index& index : block.indices) --index;
  for (Index& field : block.fields) --field;
  if (block.entries() > 0) --block.least_index;
  --block.columns;
  return true;
}

template bool Agree(RowBlock<std::uint32_t>&, Indexing, const AllreduceMax&);
template bool Agree(RowBlock<std::uint64_t>&, Indexing, const AllreduceMax&);

}  // namespace warren::data
