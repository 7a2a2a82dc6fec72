// Rows for tree growing: each value is replaced by the number of its bin.
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
  kDense8,   ///< one byte for each feature of each row
  kDense16,  ///< two bytes for each feature of each row
  kSparse,   ///< present values only
};

/// Plain data that many threads can read concurrently. In a dense layout a missing value has bin
/// Cuts::Bins(feature), one above the last bin.
struct BinnedMatrix {
  Layout layout = Layout::kDense8;
  std::size_t rows = 0;
  std::size_t features = 0;
  data::Array<std::uint8_t> dense8;    ///< rows x features, row after row
  data::Array<std::uint16_t> dense16;  ///< as dense8, with two bytes per bin
  /// For kSparse: the entries of row r are entries[row_offsets[r]] up to, but not including,
  /// entries[row_offsets[r + 1]], in ascending order; each is the feature's Cuts::FirstBin plus its bin.
  data::Array<std::uint64_t> row_offsets;
  data::Array<std::uint32_t> entries;

  /// Returns the bin of a feature in a row, or Cuts::Bins(feature) if the value is missing.
  std::uint32_t Bin(std::size_t row, std::size_t feature, const Cuts& cuts) const;
};

/// Bins the rows, none of which may have a feature twice. Features from cuts.features() on are left out. The
/// layout depends on the number of bins and on the share of values that are present.
BinnedMatrix BinRows(const data::RowView<std::uint32_t>& rows, const Cuts& cuts, Threads& threads);

/// Like the other BinRows, with the given layout. kDense8 requires at most 256 bins per feature, kDense16 at
/// most 65,536, including one for missing values if there are any.
BinnedMatrix BinRows(const data::RowView<std::uint32_t>& rows, const Cuts& cuts, Layout layout,
                     Threads& threads);

}  // namespace warren::histgbt
