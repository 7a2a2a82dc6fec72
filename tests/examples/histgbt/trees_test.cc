// Trees: compared with a plain search over all rows, and bit-identical for any layout, order of rows and
// number of threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "examples/histgbt/backend.h"
#include "examples/histgbt/grower.h"
#include "examples/histgbt/tree.h"
#include "tests/examples/histgbt/rows.h"

namespace warren::histgbt {
namespace {

using TreesTest = InAJobOfOne;

struct Setting {
  Objective objective = Objective::kLogistic;
  int num_class = 1;
  TreeParameters tree;
  std::size_t max_bin = 16;
  int threads = 1;
  std::vector<float> weights;
};

struct Result {
  std::vector<Tree> trees;
  std::vector<float> margins;
  Cuts cuts;
  BinnedMatrix matrix;
};

Result Train(const Block& block, Layout layout, const Setting& setting, int rounds) {
  Threads threads(setting.threads);
  Result result;
  result.cuts = MakeCuts(block.View(), setting.max_bin, threads);
  result.matrix = BinRows(block.View(), result.cuts, layout, threads);
  const auto backend = MakeCpuBackend(
      {&result.cuts, &result.matrix, block.labels, setting.weights, setting.objective, setting.num_class},
      threads);
  const std::vector<float> zero(block.rows() * static_cast<std::size_t>(setting.num_class));
  backend->SetMargins(zero);
  for (int round = 0; round < rounds; ++round) {
    backend->BeginRound();
    for (int k = 0; k < setting.num_class; ++k)
      result.trees.push_back(GrowTree(*backend, result.cuts, k, setting.tree));
  }
  result.margins = backend->Margins();
  return result;
}

void ExpectSame(const std::vector<Tree>& one, const std::vector<Tree>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t t = 0; t < one.size(); ++t) {
    ASSERT_EQ(one[t].nodes.size(), other[t].nodes.size());
    for (std::size_t i = 0; i < one[t].nodes.size(); ++i) {
      const Node& a = one[t].nodes[i];
      const Node& b = other[t].nodes[i];
      EXPECT_EQ(a.left, b.left);
      EXPECT_EQ(a.feature, b.feature);
      EXPECT_EQ(a.end_bin, b.end_bin);
      EXPECT_EQ(a.threshold, b.threshold);
      EXPECT_EQ(a.default_left, b.default_left);
      EXPECT_EQ(a.weight, b.weight);
      EXPECT_EQ(a.gain, b.gain);
      EXPECT_EQ(a.hessian, b.hessian);
    }
  }
}

/// Checks the first tree of a training with Objective::kLogistic by trying every possible split of each
/// node's rows. Gradients are not rounded, and are added in double precision.
class PlainGrower {
 public:
  PlainGrower(const Block& block, const Result& result, const Setting& setting)
      : block_(block), result_(result), setting_(setting) {}

  /// Checks that each node has the right sum of Hessians, weight and gain (that of the best split), up to
  /// rounding.
  void Check(const Tree& tree) {
    std::vector<std::vector<std::size_t>> rows(tree.nodes.size());
    for (std::size_t row = 0; row < block_.rows(); ++row) rows[0].push_back(row);
    std::vector<int> depth(tree.nodes.size());
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const Node& node = tree.nodes[i];
      const auto [gradient, hessian] = Sum(rows[i]);
      EXPECT_NEAR(node.hessian, hessian, 1e-2 * std::max(1.0, hessian));
      EXPECT_NEAR(node.weight, -setting_.tree.eta * gradient / (hessian + setting_.tree.split.lambda), 2e-4);
      const double best = depth[i] < setting_.tree.max_depth ? BestGain(rows[i]) : 0;
      EXPECT_NEAR(node.gain, best, 1e-3 * std::max(1.0, best))
          << "node " << i << " with " << rows[i].size() << " rows";
      if (node.is_leaf()) continue;
      for (const std::size_t row : rows[i]) {
        const bool left = GoesLeft(row, node.feature, node.end_bin, node.default_left != 0);
        rows[static_cast<std::size_t>(left ? node.left : node.right)].push_back(row);
      }
      depth[static_cast<std::size_t>(node.left)] = depth[static_cast<std::size_t>(node.right)] = depth[i] + 1;
    }
  }

 private:
  bool GoesLeft(std::size_t row, std::size_t feature, std::uint32_t end_bin, bool default_left) const {
    const std::uint32_t own = result_.matrix.Bin(row, feature, result_.cuts);
    return own == result_.cuts.Bins(feature) ? default_left : own < end_bin;
  }

  std::pair<double, double> Sum(const std::vector<std::size_t>& rows) const {
    double gradient = 0;
    double hessian = 0;
    for (const std::size_t row : rows) {
      const GradientPair pair = LogisticGradient(0, block_.labels[row]);
      const double weight = setting_.weights.empty() ? 1 : setting_.weights[row];
      gradient += pair.gradient * weight;
      hessian += pair.hessian * weight;
    }
    return {gradient, hessian};
  }

  double BestGain(const std::vector<std::size_t>& rows) const {
    const double lambda = setting_.tree.split.lambda;
    const auto gain_of = [&](const std::pair<double, double>& sum) {
      return sum.first * sum.first / (sum.second + lambda);
    };
    const double own = gain_of(Sum(rows));
    double best = 0;
    for (std::size_t f = 0; f < result_.cuts.features(); ++f) {
      for (std::uint32_t bin = 0; bin <= result_.cuts.Bins(f); ++bin) {
        for (const bool default_left : {false, true}) {
          std::vector<std::size_t> sides[2];
          for (const std::size_t row : rows)
            sides[GoesLeft(row, f, bin, default_left) ? 0 : 1].push_back(row);
          const auto left = Sum(sides[0]);
          const auto right = Sum(sides[1]);
          if (std::min(left.second, right.second) < setting_.tree.split.min_child_weight) continue;
          const double gain = gain_of(left) + gain_of(right) - own;
          if (gain > 1e-6 && gain >= setting_.tree.split.gamma) best = std::max(best, gain);
        }
      }
    }
    return best;
  }

  const Block& block_;
  const Result& result_;
  const Setting& setting_;
};

TEST_F(TreesTest, EachQuestionIsTheBestThereIs) {
  for (const double density : {1.0, 0.7}) {
    for (const double gamma : {0.0, 2.0}) {
      Setting setting;
      setting.tree.max_depth = 4;
      setting.tree.split = {1.0, gamma, 3.0};
      const Block block = RandomRows({400, 4, density, 0}, 11);
      const Result result = Train(block, Layout::kDense8, setting, 1);
      EXPECT_GT(result.trees[0].nodes.size(), 5U);
      PlainGrower(block, result, setting).Check(result.trees[0]);
    }
  }
}

TEST_F(TreesTest, WeightsCountAsSoManyRows) {
  Setting setting;
  setting.tree.max_depth = 3;
  const Block block = RandomRows({300, 4, 0.9, 0}, 12);
  for (std::size_t row = 0; row < block.rows(); ++row) setting.weights.push_back(static_cast<float>(row % 5));
  const Result result = Train(block, Layout::kDense8, setting, 1);
  EXPECT_GT(result.trees[0].nodes.size(), 5U);
  PlainGrower(block, result, setting).Check(result.trees[0]);
}

TEST_F(TreesTest, LayoutThreadsAndOrderOfRowsChangeNoBit) {
  for (const auto& [objective, classes] :
       {std::pair{Objective::kLogistic, 1}, {Objective::kSquared, 1}, {Objective::kSoftmax, 3}}) {
    for (const double density : {1.0, 0.6}) {
      Block block = RandomRows({30000, 6, density, 0}, 13);
      for (std::size_t row = 0; row < block.rows(); ++row) {
        if (classes == 3)
          block.labels[row] =
              static_cast<float>((static_cast<int>(block.labels[row]) + static_cast<int>(row % 7 == 0)) % 3);
      }
      Setting setting;
      setting.objective = objective;
      setting.num_class = classes;
      setting.max_bin = 64;
      const Result result = Train(block, Layout::kDense8, setting, 3);
      EXPECT_GT(result.trees.back().nodes.size(), 20U);
      ExpectSame(Train(block, Layout::kDense16, setting, 3).trees, result.trees);
      ExpectSame(Train(block, Layout::kSparse, setting, 3).trees, result.trees);
      setting.threads = 3;
      const Result threaded = Train(block, Layout::kDense8, setting, 3);
      ExpectSame(threaded.trees, result.trees);
      EXPECT_EQ(threaded.margins, result.margins);
      ExpectSame(Train(Backwards(block), Layout::kDense8, setting, 3).trees, result.trees);
    }
  }
}

TEST_F(TreesTest, TheMarginsAreThoseThatTheTreesPredict) {
  for (const Layout layout : {Layout::kDense8, Layout::kSparse}) {
    Setting setting;
    setting.objective = Objective::kSoftmax;
    setting.num_class = 2;
    const Block block = RandomRows({5000, 5, 0.8, 0}, 14);
    const Result result = Train(block, layout, setting, 4);
    Threads threads(2);
    std::vector<float> margins(2 * block.rows());
    for (std::size_t t = 0; t < result.trees.size(); ++t) {
      AddPredictions(result.trees[t], result.matrix, result.cuts, margins.data() + t % 2 * block.rows(),
                     threads);
    }
    EXPECT_EQ(margins, result.margins);
  }
}

/// Values lead to the same leaves as their bins. Predictions by XGBoost depend on this, because it compares
/// values with thresholds.
TEST_F(TreesTest, ValuesGoWhereTheirBinsGo) {
  Setting setting;
  setting.tree.max_depth = 8;
  setting.tree.split.min_child_weight = 0;
  Block block = RandomRows({4000, 5, 0.5, 0}, 17);
  for (std::size_t e = 0; e < block.values.size(); e += 50)
    block.values[e] = std::numeric_limits<float>::max();
  const Result result = Train(block, Layout::kSparse, setting, 2);
  bool any_asks_whether = false;
  for (const Tree& tree : result.trees) {
    for (std::size_t row = 0; row < block.rows(); ++row) {
      std::map<std::uint32_t, float> values;
      for (std::uint64_t e = block.offsets[row]; e < block.offsets[row + 1]; ++e)
        values[block.indices[e]] = block.values[e];
      const Node* node = tree.nodes.data();
      while (!node->is_leaf()) {
        any_asks_whether = any_asks_whether || node->end_bin == 0;
        const auto found = values.find(node->feature);
        const bool left = found == values.end() ? node->default_left != 0 : found->second < node->threshold;
        node = &tree.nodes[static_cast<std::size_t>(left ? node->left : node->right)];
      }
      ASSERT_EQ(node, &tree.LeafOf(result.matrix, row, result.cuts)) << row;
    }
  }
  EXPECT_TRUE(any_asks_whether);
}

TEST_F(TreesTest, WhatIsMissingGoesWhereItBelongs) {
  for (const float label_of_missing : {0.0F, 1.0F}) {
    Block block;
    for (int row = 0; row < 400; ++row) {
      const bool is_missing = row % 4 == 0;
      const float value = static_cast<float>(row % 16);
      if (is_missing)
        AddRow(block, label_of_missing, {{1, 0.5F}});
      else
        AddRow(block, value < 8 ? 0.0F : 1.0F, {{0, value}, {1, 0.5F}});
    }
    Setting setting;
    setting.tree.max_depth = 1;
    const Result result = Train(block, Layout::kDense8, setting, 1);
    const Node& root = result.trees[0].nodes[0];
    EXPECT_EQ(root.feature, 0U);
    EXPECT_EQ(root.default_left, label_of_missing == 0 ? 1 : 0);
  }
}

TEST_F(TreesTest, WhetherAFeatureIsThereCanBeTheQuestion) {
  Block block;
  for (int row = 0; row < 200; ++row) {
    if (row % 2 == 0)
      AddRow(block, 1, {{0, 3.0F}, {1, static_cast<float>(row % 3)}});
    else
      AddRow(block, 0, {{1, static_cast<float>(row % 3)}});
  }
  Setting setting;
  setting.tree.max_depth = 1;
  for (const Layout layout : {Layout::kDense8, Layout::kSparse}) {
    const Node root = Train(block, layout, setting, 1).trees[0].nodes[0];
    EXPECT_EQ(root.feature, 0U);
    EXPECT_EQ(root.threshold, std::numeric_limits<float>::lowest());
    EXPECT_EQ(root.end_bin, 0U);
    EXPECT_EQ(root.default_left, 1U);
  }
}

TEST_F(TreesTest, WithNothingToLearnThereIsOneLeaf) {
  Block block;
  for (int row = 0; row < 50; ++row) AddRow(block, 1, {{0, static_cast<float>(row)}});
  const Result result = Train(block, Layout::kDense8, {}, 1);
  ASSERT_EQ(result.trees[0].nodes.size(), 1U);
  EXPECT_GT(result.trees[0].nodes[0].weight, 0);
  for (const float margin : result.margins) EXPECT_EQ(margin, result.trees[0].nodes[0].weight);
}

TEST_F(TreesTest, NobodyDescendsDeeperThanAllowed) {
  for (const int most : {1, 2, 5}) {
    Setting setting;
    setting.tree.max_depth = most;
    setting.tree.split.min_child_weight = 0;
    const Tree tree = Train(RandomRows({2000, 5, 1, 0}, 15), Layout::kDense8, setting, 1).trees[0];
    std::vector<int> depth(tree.nodes.size());
    for (std::size_t i = 1; i < depth.size(); ++i)
      depth[i] = depth[static_cast<std::size_t>(tree.nodes[i].parent)] + 1;
    EXPECT_EQ(*std::max_element(depth.begin(), depth.end()), most);
  }
}

TEST_F(TreesTest, ALeafThatIsNotFiniteIsAnErrorAndAGainIsShownAsTheGreatest) {
  Block block = RandomRows({100, 2, 1, 0}, 16);
  for (std::size_t row = 0; row < block.rows(); ++row) block.labels[row] *= 1e25F;
  Setting setting;
  setting.objective = Objective::kSquared;
  EXPECT_EQ(Train(block, Layout::kDense8, setting, 1).trees[0].nodes[0].gain,
            std::numeric_limits<float>::max());
  setting.tree.eta = 1e30;
  EXPECT_THROW(Train(block, Layout::kDense8, setting, 1), std::runtime_error);
}

TEST_F(TreesTest, AGradientThatIsNotFiniteIsAnError) {
  Block block = RandomRows({100, 2, 1, 0}, 16);
  block.labels[7] = std::numeric_limits<float>::max();
  Setting setting;
  setting.objective = Objective::kSquared;
  setting.weights.assign(100, 10.0F);
  EXPECT_THROW(Train(block, Layout::kDense8, setting, 1), std::runtime_error);
}

}  // namespace
}  // namespace warren::histgbt
