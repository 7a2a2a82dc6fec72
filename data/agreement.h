// The agreement of all workers of a job, once each has read its part, on what all parts have in common: how
// many columns there are, whether they are counted from 0 or from 1, and which of labels, weights and queries
// the rows have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "data/reader.h"
#include "data/row_block.h"
#include "data/uri.h"

namespace warren::data {

/// Replaces each of `count` values by the greatest of all workers': rabit::Allreduce<rabit::op::Max>(values,
/// count).
using AllreduceMax = std::function<void(std::uint64_t* values, std::size_t count)>;

/// The AllreduceMax of a process that is alone.
inline void NobodyElse(std::uint64_t* /*values*/, std::size_t /*count*/) {}

/// What the rows of a data set have in common, whichever worker reads them.
struct Shape {
  std::uint64_t columns = 0;         ///< more than every index
  std::uint64_t labels_per_row = 1;  ///< 0 if rows differ; 1 if there are no rows
  bool has_weights = false;          ///< some row has a weight; rows without one weigh 1
  bool has_queries = false;          ///< the rows have query ids
  bool counted_from_one = false;     ///< Indexing::kDetect only: the text counts from 1
};

/// Finds out the shape of a data set from its rows, in any number of parts and workers.
class ShapeFinder {
 public:
  static constexpr std::size_t kWords = 8;

  template <typename Index>
  void Add(const RowView<Index>& rows);

  /// The shape of the rows of all workers, by one allreduce. Workers without rows take part, too. Throws
  /// DataError, on all workers alike, when some rows have a qid and others have none.
  Shape Agree(Indexing indexing, const AllreduceMax& allreduce_max = NobodyElse) const;

  /// What was found so far. The greatest of several finders' words at each place are those of all their rows.
  std::span<std::uint64_t, kWords> words() { return words_; }

 private:
  std::array<std::uint64_t, kWords> words_{};
};

extern template void ShapeFinder::Add(const RowView<std::uint32_t>&);
extern template void ShapeFinder::Add(const RowView<std::uint64_t>&);

/// Gives the rows the shape of the whole data set, by one allreduce: `columns` is that of all workers; where
/// some worker's rows have weights, all rows have. With Indexing::kDetect indices (and libfm's fields) are
/// made to count from 0 if no worker has an entry in column 0 (or field 0). Throws as ShapeFinder::Agree.
template <typename Index>
Shape Agree(RowBlock<Index>& block, Indexing indexing, const AllreduceMax& allreduce_max = NobodyElse);

extern template Shape Agree(RowBlock<std::uint32_t>&, Indexing, const AllreduceMax&);
extern template Shape Agree(RowBlock<std::uint64_t>&, Indexing, const AllreduceMax&);

/// Reads the whole data set, whatever part `uri` names, for a worker that has nobody to ask. Throws DataError
/// as Reader does, and for streams, which can be read once only.
ShapeFinder FindShape(const DataUri& uri, const ReaderOptions& options = {});

}  // namespace warren::data
