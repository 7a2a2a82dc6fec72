#include "examples/histgbt/grower.h"

#include <rabit/rabit.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace warren::histgbt {
namespace {

/// Returns the least power of two such that `greatest` divided by it is below 2^bits.
double ScaleFor(float greatest, int bits) {
  int exponent = 0;
  std::frexp(greatest, &exponent);
  // Smaller gradients leave nothing to learn, and the reciprocal must be a finite float.
  constexpr int kLeastExponent = -100;
  return std::ldexp(1.0, std::max(exponent, kLeastExponent) - bits);
}

/// Clamps a value for the model file, since JSON has no infinity.
float AsFiniteFloat(double value) {
  return static_cast<float>(std::min<double>(value, std::numeric_limits<float>::max()));
}

/// Returns the scale for the rows of all workers; a collective call.
Scale AgreeOnScale(const Greatest& own) {
  std::array<float, 2> greatest = {own.gradient, own.hessian};
  rabit::Allreduce<rabit::op::Max>(greatest.data(), greatest.size());
  return {ScaleFor(greatest[0], kGradientBits), ScaleFor(greatest[1], kHessianBits)};
}

GradientSum SumOfAll(GradientSum own) {
  std::array<std::int64_t, 2> sum = {own.gradient, own.hessian};
  rabit::Allreduce<rabit::op::Sum>(sum.data(), sum.size());
  return {sum[0], sum[1]};
}

class Grower {
 public:
  Grower(Backend& backend, const Cuts& cuts, const TreeParameters& parameters)
      : backend_(backend), cuts_(cuts), parameters_(parameters) {}

  Tree Grow(int class_index) {
    scale_ = AgreeOnScale(backend_.ComputeGradients(class_index));
    AddNode(-1, SumOfAll(backend_.BeginTree(scale_)));
    std::vector<std::int32_t> level;
    if (CanSplit(0)) {
      level = {0};
      const NodeToBuild root;
      backend_.BuildHistograms({&root, 1});
    } else {
      AddLeaves({0});
    }
    for (int depth = 1; !level.empty(); ++depth) level = SplitLevel(level, depth == parameters_.max_depth);
    return std::move(tree_);
  }

 private:
  std::int32_t AddNode(std::int32_t parent, const GradientSum& sum) {
    Node node;
    node.parent = parent;
    node.weight = static_cast<float>(parameters_.eta * LeafWeight(sum, scale_, parameters_.split.lambda));
    if (!std::isfinite(node.weight)) {  // on all workers, or on none
      throw std::runtime_error("the value of a leaf is too large for a float: labels or eta are too large");
    }
    node.hessian = AsFiniteFloat(Hessian(sum));
    tree_.nodes.push_back(node);
    sums_.push_back(sum);
    return static_cast<std::int32_t>(tree_.nodes.size() - 1);
  }

  double Hessian(const GradientSum& sum) const { return static_cast<double>(sum.hessian) * scale_.hessian; }

  /// Whether both children could reach min_child_weight.
  bool CanSplit(std::int32_t node) const {
    return Hessian(sums_[static_cast<std::size_t>(node)]) >= 2 * parameters_.split.min_child_weight;
  }

  void AddLeaves(const std::vector<std::int32_t>& nodes) {
    std::vector<LeafValue> leaves;
    leaves.reserve(nodes.size());
    for (const std::int32_t node : nodes)
      leaves.push_back({node, tree_.nodes[static_cast<std::size_t>(node)].weight});
    backend_.AddLeaves(leaves);
  }

  /// Splits the nodes of a level. Returns the next level: the nodes that have histograms and can be split.
  std::vector<std::int32_t> SplitLevel(const std::vector<std::int32_t>& level, bool is_last) {
    std::vector<GradientSum> sums;
    sums.reserve(level.size());
    for (const std::int32_t node : level) sums.push_back(sums_[static_cast<std::size_t>(node)]);
    const std::vector<Split> found = backend_.FindSplits(level, sums, parameters_.split);
    std::vector<NodeSplit> splits;
    std::vector<std::int32_t> leaves;
    for (std::size_t i = 0; i < level.size(); ++i) {
      if (found[i].gain > 0) {
        splits.push_back(Apply(level[i], found[i]));
      } else {
        leaves.push_back(level[i]);
      }
    }
    if (!leaves.empty()) AddLeaves(leaves);
    if (splits.empty()) return {};
    if (is_last) {
      AddSplitLeaves(splits);
      return {};
    }
    backend_.Partition(splits);
    return PrepareNext(splits);
  }

  NodeSplit Apply(std::int32_t index, const Split& split) {
    const std::int32_t left = AddNode(index, split.left);
    const std::int32_t right = AddNode(index, split.right);
    Node& node = tree_.nodes[static_cast<std::size_t>(index)];
    node.left = left;
    node.right = right;
    node.feature = split.feature;
    node.end_bin = split.end_bin;
    node.default_left = split.default_left;
    node.gain = AsFiniteFloat(split.gain);
    // With end_bin 0, no value goes left: no value is below the lowest float.
    node.threshold =
        split.end_bin > 0 ? cuts_.Of(split.feature)[split.end_bin - 1] : std::numeric_limits<float>::lowest();
    return {index, left, right, split.feature, split.end_bin, split.default_left != 0};
  }

  void AddSplitLeaves(const std::vector<NodeSplit>& splits) {
    std::vector<LeafValue> leaves;
    for (const NodeSplit& split : splits) {
      for (const std::int32_t node : {split.left, split.right}) {
        leaves.push_back({node, tree_.nodes[static_cast<std::size_t>(node)].weight});
      }
    }
    backend_.AddSplitLeaves(splits, leaves);
  }

  /// Starts the next level: builds the histograms of the nodes that can be split, and returns these nodes;
  /// the others become leaves. Of two children, only the histogram of the one with the smaller Hessian is
  /// built from rows; the other is the parent's histogram minus the sibling's.
  std::vector<std::int32_t> PrepareNext(const std::vector<NodeSplit>& splits) {
    std::vector<std::int32_t> next;
    std::vector<std::int32_t> leaves;
    std::vector<NodeToBuild> build;
    for (const NodeSplit& split : splits) {
      bool any = false;
      for (const std::int32_t node : {split.left, split.right}) {
        (CanSplit(node) ? next : leaves).push_back(node);
        any = any || CanSplit(node);
      }
      if (!any) continue;
      const bool left_is_smaller = sums_[static_cast<std::size_t>(split.left)].hessian <=
                                   sums_[static_cast<std::size_t>(split.right)].hessian;
      build.push_back({left_is_smaller ? split.left : split.right, left_is_smaller ? split.right : split.left,
                       split.node});
    }
    if (!leaves.empty()) AddLeaves(leaves);
    if (!build.empty()) backend_.BuildHistograms(build);
    return next;
  }

  Backend& backend_;
  const Cuts& cuts_;
  const TreeParameters& parameters_;
  Scale scale_;
  Tree tree_;
  std::vector<GradientSum> sums_;  ///< one for each node
};

}  // namespace

Tree GrowTree(Backend& backend, const Cuts& cuts, int class_index, const TreeParameters& parameters) {
  return Grower(backend, cuts, parameters).Grow(class_index);
}

}  // namespace warren::histgbt
