#include "examples/histgbt/cpu/histogram.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace warren::histgbt {
namespace {

/// The rows of a node are scattered in memory, so each is prefetched this many rows before it is added.
constexpr std::size_t kAhead = 16;
constexpr std::size_t kLineBytes = 64;

/// Adds a row's gradient to its bin of each feature; each feature has `stride` sums.
template <typename Bin>
void AddRow(const Bin* __restrict row, std::size_t features, Packed gradient, Packed* __restrict sums,
            std::size_t stride) {
  for (std::size_t f = 0; f < features; ++f, sums += stride) sums[row[f]] += gradient;
}

/// AddRow for one-byte bins, which are read eight at a time.
void AddRow(const std::uint8_t* __restrict row, std::size_t features, Packed gradient,
            Packed* __restrict sums, std::size_t /*stride*/) {
  constexpr std::size_t kStride = 256;
  constexpr bool kByWords = std::endian::native == std::endian::little;
  std::size_t f = 0;
  for (; kByWords && f + 8 <= features; f += 8, sums += 8 * kStride) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, row + f, sizeof eight);
    sums[eight & 255] += gradient;
    sums[kStride + (eight >> 8 & 255)] += gradient;
    sums[2 * kStride + (eight >> 16 & 255)] += gradient;
    sums[3 * kStride + (eight >> 24 & 255)] += gradient;
    sums[4 * kStride + (eight >> 32 & 255)] += gradient;
    sums[5 * kStride + (eight >> 40 & 255)] += gradient;
    sums[6 * kStride + (eight >> 48 & 255)] += gradient;
    sums[7 * kStride + (eight >> 56)] += gradient;
  }
  for (; f < features; ++f, sums += kStride) sums[row[f]] += gradient;
}

}  // namespace

HistogramBuilder::HistogramBuilder(const BinnedMatrix& matrix, const Cuts& cuts)
    : matrix_(matrix), cuts_(cuts) {
  if (matrix.layout == Layout::kSparse) return;
  stride_ = 256;
  for (std::size_t f = 0; f < cuts.features(); ++f)
    stride_ = std::max<std::size_t>(stride_, cuts.Bins(f) + 1);
  if (matrix.layout == Layout::kDense8) stride_ = 256;
  packed_.resize(stride_ * cuts.features(), 0);
}

void HistogramBuilder::Add(const RowsOfNode& rows, GradientSum* histogram) {
  switch (matrix_.layout) {
    case Layout::kDense8:
      return AddDense(matrix_.dense8.data(), rows, histogram);
    case Layout::kDense16:
      return AddDense(matrix_.dense16.data(), rows, histogram);
    case Layout::kSparse:
      return AddSparse(rows, histogram);
  }
}

/// Adds packed words, so that one addition adds both gradient and Hessian, and flushes the sums before they
/// can overflow.
template <typename Bin>
void HistogramBuilder::AddDense(const Bin* bins, const RowsOfNode& rows, GradientSum* histogram) {
  for (std::size_t begin = 0; begin < rows.size; begin += kPackedRows) {
    const std::size_t size = std::min<std::size_t>(kPackedRows, rows.size - begin);
    AddPacked(bins, {rows.rows + begin, rows.gradients + begin, size});
    Flush(histogram);
  }
}

template <typename Bin>
void HistogramBuilder::AddPacked(const Bin* bins, const RowsOfNode& rows) {
  const std::size_t features = matrix_.features;
  const std::size_t stride = stride_;
  const std::size_t row_bytes = features * sizeof(Bin);
  for (std::size_t i = 0; i < rows.size; ++i) {
    const std::size_t next = rows.rows[std::min(i + kAhead, rows.size - 1)];
    const char* const ahead = reinterpret_cast<const char*>(bins + next * features);
    for (std::size_t byte = 0; byte < row_bytes; byte += kLineBytes) __builtin_prefetch(ahead + byte);
    __builtin_prefetch(ahead + row_bytes - 1);
    AddRow(bins + rows.rows[i] * features, features, rows.gradients[i], packed_.data(), stride);
  }
}

void HistogramBuilder::Flush(GradientSum* histogram) {
  for (std::size_t f = 0; f < matrix_.features; ++f) {
    Packed* const from = packed_.data() + f * stride_;
    GradientSum* const to = histogram + cuts_.FirstBin(f);
    const std::uint32_t bins = cuts_.Bins(f);
    for (std::uint32_t bin = 0; bin < bins; ++bin) to[bin] += Unpack(from[bin]);
    std::fill(from, from + std::min<std::size_t>(bins + 1, stride_), 0);
  }
}

void HistogramBuilder::AddSparse(const RowsOfNode& rows, GradientSum* histogram) const {
  const std::uint64_t* const offsets = matrix_.row_offsets.data();
  const std::uint32_t* const entries = matrix_.entries.data();
  for (std::size_t i = 0; i < rows.size; ++i) {
    __builtin_prefetch(entries + offsets[rows.rows[std::min(i + kAhead, rows.size - 1)]]);
    const GradientSum gradient = Unpack(rows.gradients[i]);
    const std::size_t row = rows.rows[i];
    for (std::uint64_t e = offsets[row]; e < offsets[row + 1]; ++e) histogram[entries[e]] += gradient;
  }
}

}  // namespace warren::histgbt
