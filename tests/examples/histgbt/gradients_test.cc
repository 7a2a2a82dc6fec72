// Gradients computed for many rows at a time are bit-identical to those of arithmetic.h for each row.
#include "examples/histgbt/cpu/gradients.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace warren::histgbt {
namespace {

struct Rows {
  explicit Rows(std::size_t size, bool probabilities) {
    std::mt19937 random(size);
    std::normal_distribution<float> margin(0, 30);
    std::uniform_real_distribution<float> part(0, 1);
    for (std::size_t i = 0; i < size; ++i) {
      scores.push_back(probabilities ? part(random) : margin(random));
      labels.push_back(static_cast<float>(random() % 2));
      weights.push_back(part(random) * 3);
    }
  }
  RowsToFit View(bool weighted) const {
    return {scores.data(), labels.data(), weighted ? weights.data() : nullptr, scores.size(), 1.0F};
  }
  std::vector<float> scores;
  std::vector<float> labels;
  std::vector<float> weights;
};

GradientPair OneByOne(Objective objective, float score, float label) {
  if (objective == Objective::kSquared) return SquaredGradient(score, label);
  if (objective == Objective::kLogistic) return LogisticGradient(score, label);
  return SoftmaxGradient(score, label == 1.0F);
}

TEST(Gradients, AreThoseOfEachRow) {
  for (const Objective objective : {Objective::kSquared, Objective::kLogistic, Objective::kSoftmax}) {
    for (const std::size_t size : {0, 1, 7, 8, 9, 1000, 10001}) {
      for (const bool weighted : {false, true}) {
        const Rows rows(size, objective == Objective::kSoftmax);
        std::vector<float> gradients(size);
        std::vector<float> hessians(size);
        const Greatest greatest =
            ComputeGradients(objective, rows.View(weighted), gradients.data(), hessians.data());
        const Scale scale{greatest.gradient > 0 ? 0x1p-12 : 1, 0x1p-14};
        std::vector<Packed> packed(size);
        const GradientSum sum = PackGradients(gradients.data(), hessians.data(), size, scale, packed.data());
        Greatest expected_greatest;
        GradientSum expected_sum;
        for (std::size_t i = 0; i < size; ++i) {
          GradientPair pair = OneByOne(objective, rows.scores[i], rows.labels[i]);
          if (weighted) pair = {pair.gradient * rows.weights[i], pair.hessian * rows.weights[i]};
          ASSERT_EQ(gradients[i], pair.gradient) << i << " of " << size;
          ASSERT_EQ(hessians[i], pair.hessian) << i << " of " << size;
          expected_greatest.gradient = std::max(expected_greatest.gradient, std::fabs(pair.gradient));
          expected_greatest.hessian = std::max(expected_greatest.hessian, pair.hessian);
          ASSERT_EQ(packed[i], Pack(pair, 0x1p12F, 0x1p14F)) << i << " of " << size;
          expected_sum += Unpack(packed[i]);
        }
        EXPECT_EQ(greatest.gradient, expected_greatest.gradient);
        EXPECT_EQ(greatest.hessian, expected_greatest.hessian);
        EXPECT_EQ(sum, expected_sum);
      }
    }
  }
}

TEST(Gradients, ThatAreNotFiniteAreRefused) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    Rows rows(20, false);
    std::vector<float> gradients(20);
    std::vector<float> hessians(20);
    rows.scores[13] = bad;
    EXPECT_THROW(ComputeGradients(Objective::kSquared, rows.View(false), gradients.data(), hessians.data()),
                 std::runtime_error);
    rows.scores[13] = 1;
    rows.weights[13] = bad;
    EXPECT_THROW(ComputeGradients(Objective::kSquared, rows.View(true), gradients.data(), hessians.data()),
                 std::runtime_error);
  }
}

}  // namespace
}  // namespace warren::histgbt
