// What all workers of a job have to agree on once each has read its part: how many columns there are, and
// whether they are counted from 0 or from 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "data/row_block.h"
#include "data/uri.h"

namespace warren::data {

/// Replaces each of `count` values by the greatest of all workers': rabit::Allreduce<rabit::op::Max>(values,
/// count).
using AllreduceMax = std::function<void(std::uint64_t* values, std::size_t count)>;

/// For one process.
inline void NobodyElse(std::uint64_t* /*values*/, std::size_t /*count*/) {}

/// Makes `block.columns` the number of columns of the whole data set, by one allreduce. With
/// Indexing::kDetect indices (and libfm's fields) are made to count from 0 if no worker has an entry in
/// column 0 (or field 0); returns whether that was done. Workers without rows take part, too. Throws
/// DataError, on all workers alike, when some have rows with a qid and others rows without.
template <typename Index>
bool Agree(RowBlock<Index>& block, Indexing indexing, const AllreduceMax& allreduce_max = NobodyElse);

extern template bool Agree(RowBlock<std::uint32_t>&, Indexing, const AllreduceMax&);
extern template bool Agree(RowBlock<std::uint64_t>&, Indexing, const AllreduceMax&);

}  // namespace warren::data
