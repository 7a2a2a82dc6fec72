#include "examples/histgbt/metric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "tests/examples/histgbt/rows.h"

namespace warren::histgbt {
namespace {

class MetricTest : public InAJobOfOne {
 protected:
  double Of(std::string_view name, Objective objective = Objective::kLogistic, int num_class = 1) {
    return Evaluate(name, {labels, weights, margins, objective, num_class}, threads);
  }

  Threads threads{2};
  std::vector<float> labels;
  std::vector<float> weights;
  std::vector<float> margins;
};

TEST_F(MetricTest, AreThoseOfATextbook) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 2);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (const bool weighted : {false, true}) {
    labels.clear();
    weights.clear();
    margins.clear();
    for (int row = 0; row < 2500; ++row) {
      margins.push_back(normal(random));
      labels.push_back(uniform(random) < 1 / (1 + std::exp(-margins.back())) ? 1.0F : 0.0F);
      if (weighted) weights.push_back(uniform(random));
    }
    double logloss = 0;
    double error = 0;
    double squares = 0;
    double absolute = 0;
    double pairs = 0;
    double all_pairs = 0;
    double all = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const double weight = weighted ? weights[i] : 1;
      const double p = 1 / (1 + std::exp(-static_cast<double>(margins[i])));
      logloss -= weight * std::log(labels[i] > 0 ? p : 1 - p);
      error += weight * ((p > 0.5) != (labels[i] > 0) ? 1 : 0);
      squares += weight * (margins[i] - labels[i]) * (margins[i] - labels[i]);
      absolute += weight * std::abs(margins[i] - labels[i]);
      all += weight;
      for (std::size_t j = 0; j < labels.size(); ++j) {
        if (labels[i] <= labels[j]) continue;
        const double both = weight * (weighted ? weights[j] : 1);
        all_pairs += both;
        pairs += both * (margins[i] > margins[j] ? 1 : margins[i] == margins[j] ? 0.5 : 0);
      }
    }
    EXPECT_NEAR(Of("logloss"), logloss / all, 1e-6);
    EXPECT_NEAR(Of("error"), error / all, 1e-9);
    EXPECT_NEAR(Of("auc"), pairs / all_pairs, 1e-4);
    EXPECT_NEAR(Of("rmse", Objective::kSquared), std::sqrt(squares / all), 1e-9 * squares);
    EXPECT_NEAR(Of("mae", Objective::kSquared), absolute / all, 1e-9 * absolute);
  }
}

TEST_F(MetricTest, OfClasses) {
  labels = {0, 1, 2, 2};
  margins = {2, 0, 0, 1,   // class 0
             0, 3, 0, 0,   // class 1
             1, 1, 4, 0};  // class 2
  EXPECT_DOUBLE_EQ(Of("merror", Objective::kSoftmax, 3), 0.25);
  double expected = 0;
  for (std::size_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (std::size_t k = 0; k < 3; ++k) sum += std::exp(margins[4 * k + row]);
    expected -= std::log(std::exp(margins[4 * static_cast<std::size_t>(labels[row]) + row]) / sum) / 4;
  }
  EXPECT_NEAR(Of("mlogloss", Objective::kSoftmax, 3), expected, 1e-6);
}

TEST_F(MetricTest, TheAucIsExactInItsSimpleCases) {
  labels = {0, 0, 1, 1};
  margins = {-1, 0, 1, 2};
  EXPECT_EQ(Of("auc"), 1.0);
  margins = {1, 1, 1, 1};
  EXPECT_EQ(Of("auc"), 0.5);
  margins = {2, 1, 0, -1};
  EXPECT_EQ(Of("auc"), 0.0);
  margins = {-100, 100, -100, 100};
  EXPECT_EQ(Of("auc"), 0.5);
  labels = {1, 1, 1, 1};
  EXPECT_TRUE(std::isnan(Of("auc")));
}

TEST_F(MetricTest, TheOrderOfTheRowsChangesNoBit) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0, 1e3F);
  for (int row = 0; row < 10000; ++row) {
    labels.push_back(normal(random));
    margins.push_back(normal(random));
  }
  const double forwards = Of("rmse", Objective::kSquared);
  std::reverse(labels.begin(), labels.end());
  std::reverse(margins.begin(), margins.end());
  EXPECT_EQ(Of("rmse", Objective::kSquared), forwards);
}

TEST_F(MetricTest, HugeErrorsDoNotRunOver) {
  labels.assign(100000, 0);
  margins.assign(100000, 1e18F);
  EXPECT_NEAR(Of("rmse", Objective::kSquared), 1e18, 1e12);
}

TEST_F(MetricTest, ALossThatIsNoNumberIsNotLeftOut) {
  labels = {0, 1, 1};
  for (const float margin : {std::nanf(""), INFINITY}) {
    margins = {1, margin, 2};
    EXPECT_TRUE(std::isnan(Of("rmse", Objective::kSquared))) << margin;
  }
  margins = {1, std::nanf(""), 2};
  EXPECT_TRUE(std::isnan(Of("auc")));
}

TEST_F(MetricTest, AreRefusedWhereTheySayNothing) {
  EXPECT_THROW(CheckMetric("auc", Objective::kSquared), std::runtime_error);
  EXPECT_THROW(CheckMetric("merror", Objective::kLogistic), std::runtime_error);
  EXPECT_THROW(CheckMetric("rmse", Objective::kSoftmax), std::runtime_error);
  EXPECT_NO_THROW(CheckMetric("rmse", Objective::kLogistic));
}

}  // namespace
}  // namespace warren::histgbt
