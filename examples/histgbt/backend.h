// The operations on rows that tree growing needs. They run on CPUs (cpu/) or on a GPU (cuda/), and both
// compute the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "examples/histgbt/arithmetic.h"
#include "examples/histgbt/binned_matrix.h"
#include "examples/histgbt/cuts.h"
#include "examples/histgbt/objective.h"
#include "examples/histgbt/split.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// The training data of this worker: binned rows and their labels.
struct TrainingRows {
  const Cuts* cuts = nullptr;
  const BinnedMatrix* matrix = nullptr;
  std::span<const float> labels;
  std::span<const float> weights;  ///< empty: all are 1
  Objective objective = Objective::kSquared;
  int num_class = 1;  ///< trees per round; 1 except for kSoftmax
};

/// The greatest |gradient| and Hessian of some rows.
struct Greatest {
  float gradient = 0;
  float hessian = 0;
};

/// A node whose histogram is built from its rows. Its sibling's histogram is the parent's minus this one.
struct NodeToBuild {
  std::int32_t node = 0;
  std::int32_t sibling = -1;  ///< -1 for the root, which has no sibling
  std::int32_t parent = -1;
};

/// The split of a node's rows between its children.
struct NodeSplit {
  std::int32_t node = 0;
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::uint32_t feature = 0;
  std::uint32_t end_bin = 0;  ///< rows in lower bins go left
  bool default_left = false;
};

struct LeafValue {
  std::int32_t node = 0;
  float weight = 0;
};

/// Functions marked as collective must be called by all workers, in the same order and with the same
/// arguments. Nodes are identified by their number in the tree being grown. Not thread-safe. Functions throw
/// std::runtime_error on failure.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Replaces the margins, which are stored class by class, with a copy of `margins`.
  virtual void SetMargins(std::span<const float> margins) = 0;
  virtual std::vector<float> Margins() = 0;

  /// Starts a round: the gradients of all its trees are computed from the margins at this point.
  virtual void BeginRound() = 0;
  /// Computes the gradients for one class. Returns the greatest values over this worker's rows.
  virtual Greatest ComputeGradients(int class_index) = 0;
  /// Converts the gradients to whole numbers and puts all rows in node 0. Returns the sum over this worker's
  /// rows.
  virtual GradientSum BeginTree(const Scale& scale) = 0;
  /// Builds the histograms of these nodes over the rows of all workers, and their siblings' histograms by
  /// subtraction. Collective. The parents' histograms no longer exist afterwards.
  virtual void BuildHistograms(std::span<const NodeToBuild> nodes) = 0;
  /// Returns the best split of each node, with gain 0 if it has none. The nodes must have histograms; `sums`
  /// has one entry per node.
  virtual std::vector<Split> FindSplits(std::span<const std::int32_t> nodes,
                                        std::span<const GradientSum> sums,
                                        const SplitParameters& parameters) = 0;
  /// Moves the rows of each split node to its children.
  virtual void Partition(std::span<const NodeSplit> splits) = 0;
  /// Replaces Partition if the children are leaves: adds their values to the rows' margins without moving the
  /// rows. `leaves` has two entries for each split, the left child's first.
  virtual void AddSplitLeaves(std::span<const NodeSplit> splits, std::span<const LeafValue> leaves) = 0;
  /// Adds each leaf's value to the margins of its rows.
  virtual void AddLeaves(std::span<const LeafValue> leaves) = 0;
};

/// `threads` and the data that `rows` points to must outlive the backend.
std::unique_ptr<Backend> MakeCpuBackend(const TrainingRows& rows, Threads& threads);

/// Selects this worker's GPU by its local rank. Throws std::runtime_error if there is no GPU or histgbt was
/// built without CUDA.
void SelectGpu();
/// Uses the selected GPU. The data that `rows` points to must outlive the backend.
std::unique_ptr<Backend> MakeCudaBackend(const TrainingRows& rows);

}  // namespace warren::histgbt
