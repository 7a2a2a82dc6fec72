// Rows in CSR form: what every reader makes and every user gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "data/array.h"

namespace warren::data {

/// The rows of a block, or of a cache that is mapped into memory. Valid as long as what it was made from, and
/// unchanged. See RowBlock.
template <typename Index>
struct RowView {
  std::span<const std::uint64_t> offsets;
  std::span<const Index> indices;
  std::span<const float> values;
  std::span<const float> labels;
  std::span<const std::uint64_t> label_offsets;
  std::span<const float> weights;
  std::span<const std::uint64_t> qids;
  std::span<const Index> fields;
  std::uint64_t columns = 0;
  Index least_index = Index(-1);

  std::size_t rows() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  std::size_t entries() const { return indices.size(); }
  /// The rows from `begin` up to, not including, `end`. Their offsets count from those of the first row of
  /// the whole, not from 0: for RowBlock::Append.
  RowView Part(std::size_t begin, std::size_t end) const;
};

/// Sparse rows. Entry e of row r is offsets[r] <= e < offsets[r + 1]: values[e] in column indices[e]. Entries
/// that are not there are missing, not zero. `Index` is std::uint32_t or std::uint64_t.
///
/// Plain data: many threads may read it, one may write.
template <typename Index>
struct RowBlock {
  Array<std::uint64_t> offsets;  ///< rows() + 1 of them; none when nothing was ever added
  Array<Index> indices;          ///< columns, counted from 0; in the order of the text, not sorted
  Array<float> values;           ///< as many as indices
  Array<float> labels;           ///< one a row, unless label_offsets says otherwise
  /// Empty when every row has exactly one label. Else rows() + 1: labels of row r are label_offsets[r] <= l <
  /// label_offsets[r + 1].
  Array<std::uint64_t> label_offsets;
  Array<float> weights;           ///< one a row; empty: no row has one, all weigh 1
  Array<std::uint64_t> qids;      ///< one a row, the query it belongs to; empty: no row has one
  Array<Index> fields;            ///< libfm's, as many as indices; empty for other formats
  std::uint64_t columns = 0;      ///< more than every index; 0 without columns
  Index least_index = Index(-1);  ///< of all entries

  std::size_t rows() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  std::size_t entries() const { return indices.size(); }
  bool empty() const { return rows() == 0; }
  RowView<Index> View() const {
    return {offsets, indices, values, labels, label_offsets, weights, qids, fields, columns, least_index};
  }

  /// No rows; the memory stays.
  void Clear();
  /// Adds another block's rows behind these. Weights, labels and fields that only one of the two has are made
  /// up for as the readers do (a weight of 1, one label a row). Throws DataError when only one of the two has
  /// query ids.
  void Append(const RowView<Index>& other);
  /// Leaves the first so many rows; no more than there are. `columns` and `least_index` stay as they are.
  void Truncate(std::size_t rows);
};

extern template struct RowView<std::uint32_t>;
extern template struct RowView<std::uint64_t>;
extern template struct RowBlock<std::uint32_t>;
extern template struct RowBlock<std::uint64_t>;

}  // namespace warren::data
