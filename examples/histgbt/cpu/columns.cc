#include "examples/histgbt/cpu/columns.h"

#include <algorithm>

namespace warren::histgbt {
namespace {

/// The number of rows that are transposed together, so that the writes for each feature fill whole cache
/// lines.
constexpr std::size_t kRowsAtOnce = 256;

template <typename Bin>
void Transpose(const data::Array<Bin>& from, std::size_t rows, std::size_t features, data::Array<Bin>& to,
               Threads& threads) {
  to.resize(rows * features);
  threads.ForRanges(rows, kRowsAtOnce, [&](std::size_t begin, std::size_t end, int /*thread*/) {
    for (std::size_t first = begin; first < end; first += kRowsAtOnce) {
      const std::size_t last = std::min(end, first + kRowsAtOnce);
      for (std::size_t feature = 0; feature < features; ++feature) {
        const Bin* const in = from.data() + feature;
        Bin* const out = to.data() + feature * rows;
        for (std::size_t row = first; row < last; ++row) out[row] = in[row * features];
      }
    }
  });
}

}  // namespace

Columns::Columns(const BinnedMatrix& matrix, Threads& threads) : rows_(matrix.rows) {
  if (matrix.layout == Layout::kDense8)
    Transpose(matrix.dense8, matrix.rows, matrix.features, dense8_, threads);
  if (matrix.layout == Layout::kDense16)
    Transpose(matrix.dense16, matrix.rows, matrix.features, dense16_, threads);
}

}  // namespace warren::histgbt
