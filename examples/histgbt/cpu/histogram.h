// Sums of gradients by bin: where most of the time goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/array.h"
#include "examples/histgbt/arithmetic.h"
#include "examples/histgbt/binned_matrix.h"
#include "examples/histgbt/cuts.h"

namespace warren::histgbt {

/// Some rows with their gradients, in the same order.
struct RowsOfNode {
  const std::uint32_t* rows = nullptr;
  const Packed* gradients = nullptr;
  std::size_t size = 0;
};

/// Adds rows up. One for each thread: it has memory of its own.
class HistogramBuilder {
 public:
  /// Both have to live as long.
  HistogramBuilder(const BinnedMatrix& matrix, const Cuts& cuts);

  /// Adds the rows' gradients to `histogram`, which has Cuts::TotalBins sums; missing values are in none.
  void Add(const RowsOfNode& rows, GradientSum* histogram);

 private:
  template <typename Bin>
  void AddDense(const Bin* bins, const RowsOfNode& rows, GradientSum* histogram);
  template <typename Bin>
  void AddPacked(const Bin* bins, const RowsOfNode& rows);
  void AddSparse(const RowsOfNode& rows, GradientSum* histogram) const;
  void Flush(GradientSum* histogram);

  const BinnedMatrix& matrix_;
  const Cuts& cuts_;
  std::size_t stride_ = 0;      ///< words of a feature in packed_, its missing bin included
  data::Array<Packed> packed_;  ///< of up to kPackedRows rows; zero between calls
};

}  // namespace warren::histgbt
