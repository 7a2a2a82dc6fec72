// Rows in CSR form, as returned by all readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/array.h"

namespace warren::data {

/// The rows of a block, or of a page of a cache; the members have the same meaning as RowBlock's. Valid until
/// the block changes or the page is unmapped.
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
  /// Returns the rows from `begin` up to, but not including, `end`. Offsets keep their values and do not
  /// start at 0; RowBlock::Append accepts them.
  RowView Part(std::size_t begin, std::size_t end) const;
};

/// Sparse rows. The entries of row r are offsets[r] <= e < offsets[r + 1], with values[e] in column
/// indices[e]. Absent entries are missing values, not zeros. `Index` is std::uint32_t or std::uint64_t.
///
/// Plain data: safe for concurrent reads, or for a single writer.
template <typename Index>
struct RowBlock {
  Array<std::uint64_t> offsets;  ///< rows() + 1 values; may be empty if there are no rows
  Array<Index> indices;          ///< zero-based columns, in text order, not sorted
  Array<float> values;           ///< one per entry
  Array<float> labels;           ///< one per row, unless label_offsets is set
  /// If empty, every row has exactly one label. Otherwise rows() + 1 values: the labels of row r are
  /// labels[l] for label_offsets[r] <= l < label_offsets[r + 1].
  Array<std::uint64_t> label_offsets;
  Array<float> weights;           ///< one per row; empty if no row has a weight (all weigh 1)
  Array<std::uint64_t> qids;      ///< the query of each row; empty if no row has one
  Array<Index> fields;            ///< libfm's fields, one per entry; empty for other formats
  std::uint64_t columns = 0;      ///< greater than every index; 0 without columns
  Index least_index = Index(-1);  ///< minimum over all entries; the maximum of Index without entries

  std::size_t rows() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  std::size_t entries() const { return indices.size(); }
  bool empty() const { return rows() == 0; }
  RowView<Index> View() const {
    return {offsets, indices, values, labels, label_offsets, weights, qids, fields, columns, least_index};
  }

  /// Removes all rows; keeps the memory.
  void Clear();
  /// Appends another block's rows. If only one of the two has weights, label offsets or fields, the other
  /// gets the defaults: weight 1, one label per row, field 0. Throws DataError if both have rows, but only
  /// one has query ids.
  void Append(const RowView<Index>& other);
  /// Keeps the first `rows` rows, which must not exceed rows(). `columns` and `least_index` are unchanged,
  /// unless `rows` is 0: then the block is cleared.
  void Truncate(std::size_t rows);
};

extern template struct RowView<std::uint32_t>;
extern template struct RowView<std::uint64_t>;
extern template struct RowBlock<std::uint32_t>;
extern template struct RowBlock<std::uint64_t>;

}  // namespace warren::data
