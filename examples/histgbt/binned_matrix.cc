#include "examples/histgbt/binned_matrix.h"

#include <algorithm>
#include <cstring>

#include "examples/histgbt/value_index.h"

namespace warren::histgbt {
namespace {

/// The least share of present values for a dense layout. With a dense layout, building histograms reads one
/// or two bytes for each possible value; with a sparse layout, it reads four bytes for each present value and
/// adds more slowly.
constexpr double kLeastDensity = 0.2;

ValueIndex IndexOf(const Cuts& cuts) {
  ValueIndex index;
  for (std::size_t f = 0; f < cuts.features(); ++f) index.Add(cuts.Of(f));
  return index;
}

template <typename Bin>
void FillDense(const data::RowView<std::uint32_t>& rows, const Cuts& cuts, data::Array<Bin>& bins,
               Threads& threads) {
  const std::size_t features = cuts.features();
  std::vector<Bin> missing(features);
  for (std::size_t f = 0; f < features; ++f) missing[f] = static_cast<Bin>(cuts.Bins(f));
  const ValueIndex index = IndexOf(cuts);
  bins.resize(rows.rows() * features);
  threads.ForRanges(rows.rows(), 256, [&](std::size_t begin, std::size_t end, int /*thread*/) {
    for (std::size_t row = begin; row < end; ++row) {
      Bin* const out = bins.data() + row * features;
      std::copy(missing.begin(), missing.end(), out);
      for (std::uint64_t e = rows.offsets[row]; e < rows.offsets[row + 1]; ++e) {
        float value = rows.values[e];
        const std::uint32_t feature = rows.indices[e];
        if (feature < features && Usable(value))
          out[feature] = static_cast<Bin>(index.CountUpTo(feature, value));
      }
    }
  });
}

/// Fills `entries` and `row_offsets`: first writes each row's entries at their offset in `rows`, then closes
/// the gaps.
void FillSparse(const data::RowView<std::uint32_t>& rows, const Cuts& cuts, BinnedMatrix& matrix,
                Threads& threads) {
  const std::uint64_t first = rows.rows() == 0 ? 0 : rows.offsets[0];
  matrix.entries.resize(rows.entries());
  matrix.row_offsets.resize(rows.rows() + 1);
  matrix.row_offsets[0] = 0;
  const ValueIndex index = IndexOf(cuts);
  threads.ForRanges(rows.rows(), 256, [&](std::size_t begin, std::size_t end, int /*thread*/) {
    std::vector<std::uint64_t> order;  // feature (upper 32 bits) and position in the row
    for (std::size_t row = begin; row < end; ++row) {
      order.clear();
      for (std::uint64_t e = rows.offsets[row]; e < rows.offsets[row + 1]; ++e) {
        if (rows.indices[e] < cuts.features()) {
          order.push_back(std::uint64_t{rows.indices[e]} << 32 | (e - rows.offsets[row]));
        }
      }
      std::sort(order.begin(), order.end());
      std::uint32_t* const out = matrix.entries.data() + (rows.offsets[row] - first);
      std::uint64_t size = 0;
      for (const std::uint64_t one : order) {
        const auto feature = static_cast<std::uint32_t>(one >> 32);
        float value = rows.values[rows.offsets[row] + static_cast<std::uint32_t>(one)];
        if (Usable(value)) out[size++] = cuts.FirstBin(feature) + index.CountUpTo(feature, value);
      }
      matrix.row_offsets[row + 1] = size;
    }
  });
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const std::uint64_t size = matrix.row_offsets[row + 1];
    const std::uint64_t to = matrix.row_offsets[row];
    const std::uint64_t from = rows.offsets[row] - first;
    if (to != from && size > 0) {
      std::memmove(matrix.entries.data() + to, matrix.entries.data() + from, size * sizeof(std::uint32_t));
    }
    matrix.row_offsets[row + 1] = to + size;
  }
  matrix.entries.resize(matrix.row_offsets[rows.rows()]);
}

/// Returns, for each feature, the number of rows that have a value.
std::vector<std::uint64_t> CountPresent(const data::RowView<std::uint32_t>& rows, std::size_t features,
                                        Threads& threads) {
  std::vector<std::vector<std::uint64_t>> parts(static_cast<std::size_t>(threads.count()));
  for (auto& part : parts) part.resize(features);
  threads.ForRanges(rows.rows(), 1024, [&](std::size_t begin, std::size_t end, int thread) {
    std::vector<std::uint64_t>& counts = parts[static_cast<std::size_t>(thread)];
    for (std::uint64_t e = rows.offsets[begin]; e < rows.offsets[end]; ++e) {
      float value = rows.values[e];
      if (rows.indices[e] < features && Usable(value)) ++counts[rows.indices[e]];
    }
  });
  for (std::size_t i = 1; i < parts.size(); ++i) {
    for (std::size_t f = 0; f < features; ++f) parts[0][f] += parts[i][f];
  }
  return parts[0];
}

Layout Choose(const data::RowView<std::uint32_t>& rows, const Cuts& cuts, Threads& threads) {
  const double cells = static_cast<double>(rows.rows()) * static_cast<double>(cuts.features());
  if (static_cast<double>(rows.entries()) < kLeastDensity * cells) return Layout::kSparse;
  std::uint32_t most = 0;
  for (std::size_t f = 0; f < cuts.features(); ++f) most = std::max(most, cuts.Bins(f));
  if (most == 256 || most == 65536) {  // no bin is left for missing values; check whether one is needed
    const std::vector<std::uint64_t> present = CountPresent(rows, cuts.features(), threads);
    for (std::size_t f = 0; f < cuts.features(); ++f) {
      most = std::max(most, cuts.Bins(f) + (present[f] < rows.rows() ? 1 : 0));
    }
  } else {
    ++most;
  }
  return most <= 256 ? Layout::kDense8 : most <= 65536 ? Layout::kDense16 : Layout::kSparse;
}

}  // namespace

std::uint32_t BinnedMatrix::Bin(std::size_t row, std::size_t feature, const Cuts& cuts) const {
  switch (layout) {
    case Layout::kDense8:
      return dense8[row * features + feature];
    case Layout::kDense16:
      return dense16[row * features + feature];
    case Layout::kSparse:
      break;
  }
  const std::uint32_t first = cuts.FirstBin(feature);
  const std::uint32_t* const end = entries.data() + row_offsets[row + 1];
  const std::uint32_t* const at = std::lower_bound(entries.data() + row_offsets[row], end, first);
  return at != end && *at - first < cuts.Bins(feature) ? *at - first : cuts.Bins(feature);
}

BinnedMatrix BinRows(const data::RowView<std::uint32_t>& rows, const Cuts& cuts, Threads& threads) {
  return BinRows(rows, cuts, Choose(rows, cuts, threads), threads);
}

BinnedMatrix BinRows(const data::RowView<std::uint32_t>& rows, const Cuts& cuts, Layout layout,
                     Threads& threads) {
  BinnedMatrix matrix;
  matrix.layout = layout;
  matrix.rows = rows.rows();
  matrix.features = cuts.features();
  switch (layout) {
    case Layout::kDense8:
      FillDense(rows, cuts, matrix.dense8, threads);
      break;
    case Layout::kDense16:
      FillDense(rows, cuts, matrix.dense16, threads);
      break;
    case Layout::kSparse:
      FillSparse(rows, cuts, matrix, threads);
      break;
  }
  return matrix;
}

}  // namespace warren::histgbt
