#include "examples/histgbt/cpu/gradients.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>

// GCC with glibc compiles these functions for processors with and without AVX2. The choice is made at program
// start, which is too early for sanitizers.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HISTGBT_FOR_EACH_ISA __attribute__((target_clones("avx2", "default"), flatten))
#else
#define HISTGBT_FOR_EACH_ISA
#endif

namespace warren::histgbt {
namespace {

/// The bits of infinity. Non-negative floats are ordered like their bits, with NaNs above infinity.
constexpr std::uint32_t kNotFinite = 0x7f800000;

template <typename Gradient>
[[gnu::always_inline]] inline void ForEachRow(const RowsToFit& rows, float* __restrict gradients,
                                              float* __restrict hessians, Gradient&& gradient) {
  for (std::size_t i = 0; i < rows.size; ++i) {
    const GradientPair pair = gradient(rows.scores[i], rows.labels[i]);
    gradients[i] = pair.gradient;
    hessians[i] = pair.hessian;
  }
}

HISTGBT_FOR_EACH_ISA void Squared(const RowsToFit& rows, float* gradients, float* hessians) {
  ForEachRow(rows, gradients, hessians, SquaredGradient);
}
HISTGBT_FOR_EACH_ISA void Logistic(const RowsToFit& rows, float* gradients, float* hessians) {
  ForEachRow(rows, gradients, hessians, LogisticGradient);
}
HISTGBT_FOR_EACH_ISA void OfOneClass(const RowsToFit& rows, float* gradients, float* hessians) {
  ForEachRow(rows, gradients, hessians, [own = rows.class_label](float probability, float label) {
    return SoftmaxGradient(probability, label == own);
  });
}

HISTGBT_FOR_EACH_ISA void Multiply(float* __restrict values, const float* __restrict by, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) values[i] *= by[i];
}

/// Returns the bits of the greatest |value|.
HISTGBT_FOR_EACH_ISA std::uint32_t GreatestBits(const float* values, std::size_t size) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < size; ++i)
    most = std::max(most, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffU);
  return most;
}

HISTGBT_FOR_EACH_ISA Packed PackSome(const float* __restrict gradients, const float* __restrict hessians,
                                     std::size_t size, float by_gradient, float by_hessian,
                                     Packed* __restrict packed) {
  Packed sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    packed[i] = Pack({gradients[i], hessians[i]}, by_gradient, by_hessian);
    sum += packed[i];
  }
  return sum;
}

}  // namespace

Greatest ComputeGradients(Objective objective, const RowsToFit& rows, float* gradients, float* hessians) {
  switch (objective) {
    case Objective::kSquared:
      Squared(rows, gradients, hessians);
      break;
    case Objective::kLogistic:
      Logistic(rows, gradients, hessians);
      break;
    case Objective::kSoftmax:
      OfOneClass(rows, gradients, hessians);
      break;
  }
  if (rows.weights != nullptr) {
    Multiply(gradients, rows.weights, rows.size);
    Multiply(hessians, rows.weights, rows.size);
  }
  const std::uint32_t gradient = GreatestBits(gradients, rows.size);
  const std::uint32_t hessian = GreatestBits(hessians, rows.size);
  if (gradient >= kNotFinite || hessian >= kNotFinite) {
    throw std::runtime_error("a gradient is not finite: labels, weights or eta are too large");
  }
  return {std::bit_cast<float>(gradient), std::bit_cast<float>(hessian)};
}

GradientSum PackGradients(const float* gradients, const float* hessians, std::size_t size, const Scale& scale,
                          Packed* packed) {
  GradientSum sum;
  for (std::size_t begin = 0; begin < size; begin += kPackedRows) {
    const std::size_t some = std::min<std::size_t>(kPackedRows, size - begin);
    sum += Unpack(PackSome(gradients + begin, hessians + begin, some, static_cast<float>(1 / scale.gradient),
                           static_cast<float>(1 / scale.hessian), packed + begin));
  }
  return sum;
}

}  // namespace warren::histgbt
