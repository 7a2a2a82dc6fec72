// The arithmetic that determines the trees, shared by CPU and GPU. Every operation is a single IEEE operation
// (no fused multiply-add: -ffp-contract=off, -fmad=false), so all machines compute the same bits.
//
// Gradients are whole numbers. Each tree has a scale for gradients and one for Hessians, powers of two
// derived from the greatest values of all workers; each row's gradient is rounded once to a multiple of its
// scale. Sums of whole numbers are exact, so neither the order of rows nor their division among threads,
// blocks or workers changes a bit. The price: with m the greatest |gradient| of a tree, a row's gradient is
// off by at most m * 2^-19, hence a sum over n rows by at most n * m * 2^-19; for Hessians, the factor is
// 2^-20.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define HISTGBT_HD __host__ __device__
#else
#define HISTGBT_HD
#endif

namespace warren::histgbt {

/// Bits of a scaled gradient, not counting its sign, and of a scaled Hessian, which is never negative.
inline constexpr int kGradientBits = 19;
inline constexpr int kHessianBits = 20;

/// A row's scaled gradient (upper 32 bits) and Hessian (lower 32 bits). Up to kPackedRows of them can be
/// added as words without the Hessians overflowing into the gradients.
using Packed = std::int64_t;
inline constexpr int kPackedRows = 4096;
static_assert((std::int64_t{1} << kGradientBits) * kPackedRows <= std::int64_t{1} << 31);
static_assert((std::int64_t{1} << kHessianBits) * kPackedRows <= std::int64_t{1} << 32);

/// A sum over rows, in units of the tree's scales.
struct GradientSum {
  std::int64_t gradient = 0;
  std::int64_t hessian = 0;

  HISTGBT_HD GradientSum& operator+=(const GradientSum& other) {
    gradient += other.gradient;
    hessian += other.hessian;
    return *this;
  }
  HISTGBT_HD GradientSum& operator-=(const GradientSum& other) {
    gradient -= other.gradient;
    hessian -= other.hessian;
    return *this;
  }
  HISTGBT_HD friend GradientSum operator-(GradientSum one, const GradientSum& other) { return one -= other; }
  HISTGBT_HD friend GradientSum operator+(GradientSum one, const GradientSum& other) { return one += other; }
  bool operator==(const GradientSum&) const = default;
};

/// The factors that turn a scaled gradient and Hessian back into real numbers; powers of two.
struct Scale {
  double gradient = 1;
  double hessian = 1;
};

HISTGBT_HD inline float AsFloat(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

/// Rounds to the nearest whole number, ties to even, for |x| < 2^22.
HISTGBT_HD inline float NearestInteger(float x) {
  constexpr float kShift = 12582912.0F;  // 1.5 * 2^23: adding it removes the fraction
  return (x + kShift) - kShift;
}

/// e^x within 2 units in the last place: 2^n * e^r with |r| <= ln(2) / 2, and the Taylor series for e^r. x is
/// clamped to [-87, 88].
HISTGBT_HD inline float Exp(float x) {
  x = x < -87.0F ? -87.0F : x > 88.0F ? 88.0F : x;
  const float n = NearestInteger(x * 1.44269504F);
  // ln(2) is split into two parts; the first has so few bits that its product with n is exact.
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float sum = 1.0F / 5040;
  sum = sum * r + 1.0F / 720;
  sum = sum * r + 1.0F / 120;
  sum = sum * r + 1.0F / 24;
  sum = sum * r + 1.0F / 6;
  sum = sum * r + 0.5F;
  sum = sum * r + 1.0F;
  sum = sum * r + 1.0F;
  return sum * AsFloat(static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23);
}

HISTGBT_HD inline float Sigmoid(float x) {
  return 1.0F / (1.0F + Exp(-x));
}

/// Softmax of one row's margins; element k * stride belongs to class k.
HISTGBT_HD inline void Softmax(const float* margins, float* probabilities, std::size_t classes,
                               std::size_t stride) {
  float greatest = margins[0];
  for (std::size_t k = 1; k < classes; ++k) {
    const float margin = margins[k * stride];
    greatest = greatest < margin ? margin : greatest;
  }
  float sum = 0;
  for (std::size_t k = 0; k < classes; ++k) {
    const float e = Exp(margins[k * stride] - greatest);
    probabilities[k * stride] = e;
    sum += e;
  }
  for (std::size_t k = 0; k < classes; ++k) probabilities[k * stride] /= sum;
}

struct GradientPair {
  float gradient;
  float hessian;
};

// The same gradients as XGBoost's, including the lower bound on Hessians.
HISTGBT_HD inline GradientPair SquaredGradient(float margin, float label) {
  return {margin - label, 1.0F};
}
HISTGBT_HD inline GradientPair LogisticGradient(float margin, float label) {
  const float p = Sigmoid(margin);
  const float hessian = p * (1.0F - p);
  return {p - label, hessian > 1e-16F ? hessian : 1e-16F};
}
/// Gradient and Hessian for a class with probability `p`. `is_label`: whether the row belongs to this class.
HISTGBT_HD inline GradientPair SoftmaxGradient(float p, bool is_label) {
  const float hessian = 2.0F * p * (1.0F - p);
  return {is_label ? p - 1.0F : p, hessian > 1e-16F ? hessian : 1e-16F};
}

/// Returns `value` in units of its scale, rounded and clamped to [-most, most].
/// `multiplier` is 1 / Scale::gradient or 1 / Scale::hessian.
HISTGBT_HD inline std::int32_t Scaled(float value, float multiplier, std::int32_t most) {
  const auto scaled = static_cast<std::int32_t>(NearestInteger(value * multiplier));
  return scaled > most ? most : scaled < -most ? -most : scaled;
}

HISTGBT_HD inline Packed Pack(const GradientPair& pair, float gradient_multiplier, float hessian_multiplier) {
  const std::int64_t gradient = Scaled(pair.gradient, gradient_multiplier, (1 << kGradientBits) - 1);
  const std::int64_t hessian = Scaled(pair.hessian, hessian_multiplier, (1 << kHessianBits) - 1);
  return gradient * (std::int64_t{1} << 32) + hessian;
}

/// Splits a sum of up to kPackedRows words into the sums of gradients and Hessians.
HISTGBT_HD inline GradientSum Unpack(Packed packed) {
  const auto hessian = static_cast<std::int64_t>(static_cast<std::uint32_t>(packed));
  return {(packed - hessian) / (std::int64_t{1} << 32), hessian};
}

/// Twice the loss reduction of a leaf with these rows: Chen and Guestrin, XGBoost (2016), equation 6.
HISTGBT_HD inline double Gain(const GradientSum& sum, const Scale& scale, double lambda) {
  const double gradient = static_cast<double>(sum.gradient) * scale.gradient;
  const double hessian = static_cast<double>(sum.hessian) * scale.hessian;
  const double denominator = hessian + lambda;
  return denominator > 0 ? gradient * gradient / denominator : 0;
}

/// The optimal value of a leaf before the learning rate (equation 5).
HISTGBT_HD inline double LeafWeight(const GradientSum& sum, const Scale& scale, double lambda) {
  const double gradient = static_cast<double>(sum.gradient) * scale.gradient;
  const double hessian = static_cast<double>(sum.hessian) * scale.hessian;
  const double denominator = hessian + lambda;
  return denominator > 0 ? -gradient / denominator : 0;
}

}  // namespace warren::histgbt
