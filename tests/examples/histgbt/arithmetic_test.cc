#include "examples/histgbt/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace warren::histgbt {
namespace {

TEST(Arithmetic, ExpIsWithinTwoUnitsInTheLastPlace) {
  double worst = 0;
  for (float x = -87; x < 88; x += 0.00137F) {
    const double exact = std::exp(static_cast<double>(x));
    const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
    worst = std::max(worst, std::abs(Exp(x) - exact) / unit);
  }
  EXPECT_LE(worst, 2.0);
}

TEST(Arithmetic, ExpStaysFiniteBeyondItsRange) {
  EXPECT_EQ(Exp(1000), Exp(88));
  EXPECT_EQ(Exp(-1000), Exp(-87));
  EXPECT_TRUE(std::isfinite(Exp(88)));
  EXPECT_GT(Exp(-87), 0.0F);
  EXPECT_EQ(Exp(0), 1.0F);
}

TEST(Arithmetic, NearestIntegerIsThatOfTheProcessor) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1.5e6F, 1.5e6F);
  for (int i = 0; i < 100000; ++i) {
    const float x = uniform(random);
    EXPECT_EQ(NearestInteger(x), std::nearbyint(x)) << x;
  }
  EXPECT_EQ(NearestInteger(0.5F), 0.0F);
  EXPECT_EQ(NearestInteger(1.5F), 2.0F);
  EXPECT_EQ(NearestInteger(-2.5F), -2.0F);
}

TEST(Arithmetic, AFullBlockOfTheGreatestGradientsCanBeUnpacked) {
  for (const float sign : {1.0F, -1.0F}) {
    const Packed one = Pack({sign * 1e30F * 1e-30F, 1.0F}, 1 << kGradientBits, 1 << kHessianBits);
    Packed sum = 0;
    for (int i = 0; i < kPackedRows; ++i) sum += one;
    const std::int64_t gradient = (1 << kGradientBits) - 1;
    const std::int64_t hessian = (1 << kHessianBits) - 1;
    EXPECT_EQ(Unpack(sum),
              (GradientSum{static_cast<std::int64_t>(sign) * gradient * kPackedRows, hessian * kPackedRows}));
  }
}

TEST(Arithmetic, PackedSumsAreThoseOfTheirParts) {
  std::mt19937 random(2);
  std::uniform_int_distribution<std::int32_t> gradients(-(1 << kGradientBits), 1 << kGradientBits);
  std::uniform_int_distribution<std::int32_t> hessians(0, 1 << kHessianBits);
  Packed packed = 0;
  GradientSum exact;
  for (int i = 0; i < kPackedRows; ++i) {
    const GradientPair pair{static_cast<float>(gradients(random)), static_cast<float>(hessians(random))};
    const Packed one = Pack(pair, 1, 1);
    packed += one;
    exact += Unpack(one);
    EXPECT_EQ(Unpack(packed), exact);
  }
}

TEST(Arithmetic, ARowIsOffByNoMoreThanPromised) {
  std::mt19937 random(3);
  for (const float greatest : {1.0F, 0.75F, 0.5001F}) {
    std::uniform_real_distribution<float> uniform(-greatest, greatest);
    const float gradients = 1 << kGradientBits;  // the scale for gradients up to 1
    const float hessians = 1 << kHessianBits;
    for (int i = 0; i < 100000; ++i) {
      const GradientPair pair{i == 0 ? greatest : uniform(random),
                              std::abs(i == 1 ? greatest : uniform(random))};
      const GradientSum sum = Unpack(Pack(pair, gradients, hessians));
      EXPECT_LE(std::abs(static_cast<double>(sum.gradient) / gradients - pair.gradient),
                greatest * std::ldexp(1.0, -19));
      EXPECT_LE(std::abs(static_cast<double>(sum.hessian) / hessians - pair.hessian),
                greatest * std::ldexp(1.0, -20));
    }
  }
}

}  // namespace
}  // namespace warren::histgbt
