// Builds histograms, which are sums of gradients by bin. This takes most of the training time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/array.h"
#include "examples/histgbt/arithmetic.h"
#include "examples/histgbt/binned_matrix.h"
#include "examples/histgbt/cuts.h"

namespace warren::histgbt {

/// Some rows and their gradients, in the same order.
struct RowsOfNode {
  const std::uint32_t* rows = nullptr;
  const Packed* gradients = nullptr;
  std::size_t size = 0;
};

/// Adds rows to histograms. A builder has a buffer, so each thread needs its own builder.
class HistogramBuilder {
 public:
  /// Both arguments must outlive the builder.
  HistogramBuilder(const BinnedMatrix& matrix, const Cuts& cuts);

  /// Adds the rows' gradients to `histogram`, which has Cuts::TotalBins sums. Missing values are not added.
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
  std::size_t stride_ = 0;      ///< words per feature in packed_, enough for all bins and missing values
  data::Array<Packed> packed_;  ///< sums of up to kPackedRows rows; zero between calls
};

}  // namespace warren::histgbt
