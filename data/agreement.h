// After each worker of a job has read its part, the workers agree on the shape of the whole data set: the
// number of columns, whether columns count from 0 or from 1, the number of labels per row, and whether rows
// have weights or queries.
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

/// Replaces each of `count` values with its maximum over all workers, for example by
/// rabit::Allreduce<rabit::op::Max>(values, count).
using AllreduceMax = std::function<void(std::uint64_t* values, std::size_t count)>;

/// The AllreduceMax of a process without other workers.
inline void NobodyElse(std::uint64_t* /*values*/, std::size_t /*count*/) {}

/// Properties of a whole data set, the same on all workers.
struct Shape {
  std::uint64_t columns = 0;         ///< greater than every index
  std::uint64_t labels_per_row = 1;  ///< 0 if the rows differ in this number; 1 if there are no rows
  bool has_weights = false;          ///< whether any row has a weight; rows without one weigh 1
  bool has_queries = false;          ///< whether the rows have query ids
  bool counted_from_one = false;     ///< whether Indexing::kDetect has found that the text counts from 1
};

/// Determines the shape of a data set from its rows. The result does not depend on the division of the rows
/// among workers and parts.
class ShapeFinder {
 public:
  static constexpr std::size_t kWords = 10;

  template <typename Index>
  void Add(const RowView<Index>& rows);

  /// Adds Reader::inputs_digest, for workers that each read a part of the same inputs.
  void AddInputs(std::uint64_t digest);

  /// Returns the shape of all workers' rows, using one allreduce. Workers without rows must also call it.
  /// Throws DataError on all workers if some rows have a qid and others do not, or if the workers have added
  /// different inputs.
  Shape Agree(Indexing indexing, const AllreduceMax& allreduce_max = NobodyElse) const;

  /// The findings so far. To combine several finders, take the maximum of each word.
  std::span<std::uint64_t, kWords> words() { return words_; }

 private:
  std::array<std::uint64_t, kWords> words_{};
};

extern template void ShapeFinder::Add(const RowView<std::uint32_t>&);
extern template void ShapeFinder::Add(const RowView<std::uint64_t>&);

/// Makes the rows conform to the shape of the whole data set, using one allreduce, and returns the shape:
/// `columns` becomes the number of columns of the whole data set; if any worker's rows have weights, all rows
/// get weights. With Indexing::kDetect, indices and libfm's fields are reduced by 1 unless any of them, on
/// any worker, is 0. `inputs_digest` is for ShapeFinder::AddInputs; 0 if each worker has inputs of its own.
/// Throws like ShapeFinder::Agree.
template <typename Index>
Shape Agree(RowBlock<Index>& block, Indexing indexing, const AllreduceMax& allreduce_max = NobodyElse,
            std::uint64_t inputs_digest = 0);

extern template Shape Agree(RowBlock<std::uint32_t>&, Indexing, const AllreduceMax&, std::uint64_t);
extern template Shape Agree(RowBlock<std::uint64_t>&, Indexing, const AllreduceMax&, std::uint64_t);

/// Reads the whole data set, whichever part `uri` names, and returns a finder with all its rows. For a worker
/// that cannot communicate with the others. Throws DataError like Reader, and for standard input, pipes and
/// devices, which can be read only once.
ShapeFinder FindShape(const DataUri& uri, const ReaderOptions& options = {});

}  // namespace warren::data
