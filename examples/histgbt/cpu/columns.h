// The bins stored feature by feature, since a split reads one feature of many rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/array.h"
#include "examples/histgbt/binned_matrix.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// A transposed copy of a matrix with a dense layout; empty for a sparse matrix.
class Columns {
 public:
  Columns(const BinnedMatrix& matrix, Threads& threads);

  /// The bins of all rows; only for a matrix of this layout.
  const std::uint8_t* Dense8(std::size_t feature) const { return dense8_.data() + feature * rows_; }
  const std::uint16_t* Dense16(std::size_t feature) const { return dense16_.data() + feature * rows_; }

 private:
  std::size_t rows_;
  data::Array<std::uint8_t> dense8_;
  data::Array<std::uint16_t> dense16_;
};

}  // namespace warren::histgbt
