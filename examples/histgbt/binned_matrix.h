// Rows as the trees see them: of each value the bin it is in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/array.h"
#include "data/row_block.h"
#include "examples/histgbt/cuts.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

enum class Layout : std::uint8_t {
  kDense8,   ///< a byte for each feature of each row
  kDense16,  ///< two bytes
  kSparse,   ///< only what is there
};

/// Plain data, read by many threads at once. In a dense layout a missing value has the bin Cuts::Bins, one
/// more than any other.
struct BinnedMatrix {
  Layout layout = Layout::kDense8;
  std::size_t rows = 0;
  std::size_t features = 0;
  data::Array<std::uint8_t> dense8;    ///< rows x features, row after row
  data::Array<std::uint16_t> dense16;  ///< the same
  /// Sparse: entries of row r are row_offsets[r] up to, not including, row_offsets[r + 1], in ascending
  /// order; each is Cuts::FirstBin of the feature plus its bin.
  data::Array<std::uint64_t> row_offsets;
  data::Array<std::uint32_t> entries;

  /// The bin of a feature in a row, or Cuts::Bins when it is missing.
  std::uint32_t Bin(std::size_t row, std::size_t feature, const Cuts& cuts) const;
};

/// No row may have a feature twice. Features behind the last of the cuts are left out.
BinnedMatrix BinRows(const data::RowView<std::uint32_t>& rows, const Cuts& cuts, Threads& threads);

/// With the layout given; kDense8 only for features of at most 255 bins and a missing one, or 256.
BinnedMatrix BinRows(const data::RowView<std::uint32_t>& rows, const Cuts& cuts, Layout layout,
                     Threads& threads);

}  // namespace warren::histgbt
