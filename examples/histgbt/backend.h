// What growing a tree asks of the machine that holds the rows: one implementation for CPUs (cpu/), one for
// GPUs (cuda/). Both get the same bits.
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

/// What is learned from: the binned rows of this worker with their labels.
struct TrainingRows {
  const Cuts* cuts = nullptr;
  const BinnedMatrix* matrix = nullptr;
  std::span<const float> labels;
  std::span<const float> weights;  ///< empty: all are 1
  Objective objective = Objective::kSquared;
  int num_class = 1;  ///< so many trees a round; 1 but for kSoftmax
};

/// The greatest |gradient| and Hessian of some rows.
struct Greatest {
  float gradient = 0;
  float hessian = 0;
};

/// Of a node whose histogram is to be built from its rows, and its sibling's by subtraction from the
/// parent's.
struct NodeToBuild {
  std::int32_t node = 0;
  std::int32_t sibling = -1;  ///< -1: none, it is the root
  std::int32_t parent = -1;
};

/// What happens to a node's rows.
struct NodeSplit {
  std::int32_t node = 0;
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::uint32_t feature = 0;
  std::uint32_t end_bin = 0;  ///< bins below it: left
  bool default_left = false;
};

struct LeafValue {
  std::int32_t node = 0;
  float weight = 0;
};

/// Calls that say so are collective: all workers make them in the same order with the same arguments. A node
/// is known by its number in the tree that is being grown. Not thread safe. Errors are std::runtime_error.
class Backend {
 public:
  virtual ~Backend() = default;

  /// margins: class after class, each of all rows. The backend keeps them from now on.
  virtual void SetMargins(std::span<const float> margins) = 0;
  virtual std::vector<float> Margins() = 0;

  /// Looks at the margins: the gradients of all trees of a round are those of its beginning.
  virtual void BeginRound() = 0;
  /// Computes the gradients for one class; of this worker's rows.
  virtual Greatest ComputeGradients(int class_index) = 0;
  /// Makes whole numbers of them. Node 0 has all rows; their sum, of this worker's.
  virtual GradientSum BeginTree(const Scale& scale) = 0;
  /// Builds the histograms of these nodes over the rows of all workers, and has those of their siblings by
  /// subtraction. Collective. A parent's histogram is gone afterwards.
  virtual void BuildHistograms(std::span<const NodeToBuild> nodes) = 0;
  /// The best question for each of these, which have histograms. `sums` has one for each.
  virtual std::vector<Split> FindSplits(std::span<const std::int32_t> nodes,
                                        std::span<const GradientSum> sums,
                                        const SplitParameters& parameters) = 0;
  /// Gives the rows of each node to its children.
  virtual void Partition(std::span<const NodeSplit> splits) = 0;
  /// The same when the children are leaves: adds their values to the margins of the rows at once. `leaves`
  /// has two for each split, the left child's first.
  virtual void AddSplitLeaves(std::span<const NodeSplit> splits, std::span<const LeafValue> leaves) = 0;
  /// Adds each leaf's value to the margins of its rows.
  virtual void AddLeaves(std::span<const LeafValue> leaves) = 0;
};

/// `rows` and what it points to have to live as long.
std::unique_ptr<Backend> MakeCpuBackend(const TrainingRows& rows, Threads& threads);

/// Takes a GPU for this worker, by its place on its host. Throws std::runtime_error when there is none, or
/// when histgbt was built without CUDA.
void SelectGpu();
/// On the GPU that was selected. `rows` and what it points to have to live as long.
std::unique_ptr<Backend> MakeCudaBackend(const TrainingRows& rows);

}  // namespace warren::histgbt
