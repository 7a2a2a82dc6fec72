// The kernels of the CUDA backend, in the order in which a tree needs them. All sums are of whole numbers and
// all choices use a total order, so the result does not depend on the order of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "examples/histgbt/arithmetic.h"
#include "examples/histgbt/binned_matrix.h"
#include "examples/histgbt/cuda/launch.h"
#include "examples/histgbt/objective.h"
#include "examples/histgbt/split.h"

namespace warren::histgbt {

/// BinnedMatrix and Cuts in device memory.
struct DeviceMatrix {
  Layout layout;
  std::uint32_t features;
  const std::uint8_t* dense8;
  const std::uint16_t* dense16;
  const std::uint64_t* row_offsets;
  const std::uint32_t* entries;
  const std::uint32_t* first_bins;  ///< each feature's first bin, then the total number of bins

  HISTGBT_HD std::uint32_t Bins(std::uint32_t feature) const {
    return first_bins[feature + 1] - first_bins[feature];
  }
  HISTGBT_HD std::uint32_t TotalBins() const { return first_bins[features]; }

  /// Like BinnedMatrix::Bin.
  HISTGBT_HD std::uint32_t Bin(std::size_t row, std::uint32_t feature) const {
    if (layout == Layout::kDense8) return dense8[row * features + feature];
    if (layout == Layout::kDense16) return dense16[row * features + feature];
    const std::uint32_t least = first_bins[feature];
    std::uint64_t begin = row_offsets[row];
    std::uint64_t end = row_offsets[row + 1];
    const std::uint64_t last = end;
    while (begin < end) {
      const std::uint64_t middle = begin + (end - begin) / 2;
      if (entries[middle] < least) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    const bool there = begin < last && entries[begin] < first_bins[feature + 1];
    return there ? entries[begin] - least : Bins(feature);
  }
};

/// Some rows of a node: the work of one block. `place` is the node's index in the list being processed.
struct DevicePiece {
  std::uint32_t place;
  std::uint32_t begin;
  std::uint32_t end;
};

// --- gradients ---------------------------------------------------------------------------------------------

/// Computes the probabilities of all classes from their margins.
struct SoftmaxKernel {
  const float* margins;  ///< class after class
  float* probabilities;
  std::uint32_t rows;
  std::uint32_t classes;

  HISTGBT_HD int Phases() const { return 1; }
  HISTGBT_HD std::size_t SharedBytes() const { return 0; }
  HISTGBT_HD void Run(int /*phase*/, const Thread& thread, void* /*shared*/) const {
    for (std::size_t row = thread.global(); row < rows; row += thread.all())
      Softmax(margins + row, probabilities + row, classes, rows);
  }
};

/// The greatest |gradient| and Hessian of all rows, as the bits of non-negative floats.
struct DeviceGreatest {
  std::uint32_t gradient;
  std::uint32_t hessian;
  std::uint32_t not_finite;  ///< 1 if any gradient is not finite
};

struct GradientKernel {
  Objective objective;
  std::uint32_t rows;
  std::uint32_t class_index;
  const float* margins;        ///< margins of this class
  const float* probabilities;  ///< for kSoftmax: probabilities of this class
  const float* labels;
  const float* weights;  ///< null: all are 1
  float* gradients;
  float* hessians;
  DeviceGreatest* greatest;

  HISTGBT_HD int Phases() const { return 2; }
  HISTGBT_HD std::size_t SharedBytes() const { return kThreads * sizeof(DeviceGreatest); }
  HISTGBT_HD void Run(int phase, const Thread& thread, void* shared) const {
    auto* const parts = static_cast<DeviceGreatest*>(shared);
    if (phase == 0) {
      parts[thread.index] = OfSome(thread);
    } else if (thread.index == 0) {
      DeviceGreatest most = parts[0];
      for (unsigned i = 1; i < kThreads; ++i) {
        most.gradient = most.gradient < parts[i].gradient ? parts[i].gradient : most.gradient;
        most.hessian = most.hessian < parts[i].hessian ? parts[i].hessian : most.hessian;
        most.not_finite |= parts[i].not_finite;
      }
      AtomicMax(&greatest->gradient, most.gradient);
      AtomicMax(&greatest->hessian, most.hessian);
      AtomicMax(&greatest->not_finite, most.not_finite);
    }
  }

 private:
  HISTGBT_HD DeviceGreatest OfSome(const Thread& thread) const {
    DeviceGreatest most{0, 0, 0};
    for (std::size_t row = thread.global(); row < rows; row += thread.all()) {
      GradientPair pair{};
      if (objective == Objective::kSquared) {
        pair = SquaredGradient(margins[row], labels[row]);
      } else if (objective == Objective::kLogistic) {
        pair = LogisticGradient(margins[row], labels[row]);
      } else {
        pair = SoftmaxGradient(probabilities[row], static_cast<std::uint32_t>(labels[row]) == class_index);
      }
      const float weight = weights == nullptr ? 1.0F : weights[row];
      gradients[row] = pair.gradient * weight;
      hessians[row] = pair.hessian * weight;
      constexpr std::uint32_t kInfinity = 0x7f800000;
      const std::uint32_t gradient = BitsOf(gradients[row]) & 0x7fffffffU;
      const std::uint32_t hessian = BitsOf(hessians[row]) & 0x7fffffffU;
      if (gradient >= kInfinity) most.not_finite = 1;
      most.gradient = most.gradient < gradient ? gradient : most.gradient;
      most.hessian = most.hessian < hessian ? hessian : most.hessian;
    }
    return most;
  }
};

/// Converts gradients to whole numbers, in row order, and adds them up.
struct PackKernel {
  const float* gradients;
  const float* hessians;
  float by_gradient;
  float by_hessian;
  std::uint32_t num_rows;
  std::uint32_t* rows;
  Packed* packed;
  GradientSum* sum;

  HISTGBT_HD int Phases() const { return 2; }
  HISTGBT_HD std::size_t SharedBytes() const { return kThreads * sizeof(GradientSum); }
  HISTGBT_HD void Run(int phase, const Thread& thread, void* shared) const {
    auto* const parts = static_cast<GradientSum*>(shared);
    if (phase == 0) {
      GradientSum own;
      for (std::size_t row = thread.global(); row < num_rows; row += thread.all()) {
        rows[row] = static_cast<std::uint32_t>(row);
        packed[row] = Pack({gradients[row], hessians[row]}, by_gradient, by_hessian);
        own += Unpack(packed[row]);
      }
      parts[thread.index] = own;
    } else if (thread.index == 0) {
      GradientSum all = parts[0];
      for (unsigned i = 1; i < kThreads; ++i) all += parts[i];
      AtomicAdd(sum, all);
    }
  }
};

// --- histograms --------------------------------------------------------------------------------------------

/// Number of lanes of a warp that work on one row: if possible, one for each feature, since lanes that add to
/// different features cannot meet in a bin. The remaining lanes work on other rows.
HISTGBT_HD inline unsigned LanesFor(std::uint32_t features) {
  unsigned lanes = 1;
  while (lanes < 32 && lanes < features) lanes *= 2;
  return lanes;
}

/// Builds histograms of one-byte bins. A block sums at most kPackedRows rows, for some of the features, in
/// shared memory, with gradients and Hessians as separate 32-bit words, and then adds them to the node's
/// sums. (Shared memory has native additions of 32-bit words; 64-bit ones need a compare-and-swap loop.)
struct SharedHistogramKernel {
  static constexpr std::uint32_t kStride = 256;
  static constexpr std::uint32_t kRowsAtOnce = 4;
  static constexpr std::uint32_t kBytesPerFeature = kStride * (sizeof(std::int32_t) + sizeof(std::uint32_t));

  DeviceMatrix matrix;
  std::uint32_t group_features;  ///< features per group; the last group may have fewer
  std::uint32_t groups;          ///< groups of features; each piece takes one block per group
  const std::uint32_t* rows;
  const Packed* packed;
  const DevicePiece* pieces;
  GradientSum* sums;  ///< one histogram per listed node

  HISTGBT_HD int Phases() const { return 3; }
  HISTGBT_HD std::size_t SharedBytes() const {
    return static_cast<std::size_t>(group_features) * kBytesPerFeature;
  }
  HISTGBT_HD void Run(int phase, const Thread& thread, void* shared) const {
    const std::uint32_t first = thread.block % groups * group_features;
    const std::uint32_t rest = matrix.features - first;
    const std::uint32_t features = rest < group_features ? rest : group_features;
    auto* const gradients = static_cast<std::int32_t*>(shared);
    auto* const hessians = reinterpret_cast<std::uint32_t*>(gradients + features * kStride);
    if (phase == 0) {
      for (std::uint32_t i = thread.index; i < features * kStride; i += kThreads) {
        gradients[i] = 0;
        hessians[i] = 0;
      }
    } else if (phase == 1) {
      Add(thread, first, features, gradients, hessians);
    } else {
      GradientSum* const to =
          sums + static_cast<std::size_t>(pieces[thread.block / groups].place) * matrix.TotalBins();
      for (std::uint32_t i = thread.index; i < features * kStride; i += kThreads) {
        const std::uint32_t feature = first + i / kStride;
        const std::uint32_t bin = i % kStride;
        if (bin >= matrix.Bins(feature)) continue;  // missing values
        AtomicAdd(to + matrix.first_bins[feature] + bin, GradientSum{gradients[i], hessians[i]});
      }
    }
  }

 private:
  HISTGBT_HD void Add(const Thread& thread, std::uint32_t first, std::uint32_t features,
                      std::int32_t* gradients, std::uint32_t* hessians) const {
    const DevicePiece piece = pieces[thread.block / groups];
    const unsigned lanes = LanesFor(features);
    const unsigned lane = thread.index % lanes;
    const std::uint32_t step = kThreads / lanes;
    for (std::uint32_t at = piece.begin + thread.index / lanes; at < piece.end; at += step * kRowsAtOnce) {
      // Several rows are loaded before the first is added. Rows past the end add nothing.
      const std::uint8_t* bins[kRowsAtOnce];  // NOLINT(modernize-avoid-c-arrays): registers
      GradientSum own[kRowsAtOnce];           // NOLINT(modernize-avoid-c-arrays)
      for (std::uint32_t k = 0; k < kRowsAtOnce; ++k) {
        const bool there = at + k * step < piece.end;
        const std::uint32_t row = rows[there ? at + k * step : at];
        bins[k] = matrix.dense8 + static_cast<std::size_t>(row) * matrix.features + first;
        own[k] = there ? Unpack(packed[at + k * step]) : GradientSum();
      }
      for (std::uint32_t f = lane; f < features; f += lanes) {
        std::uint32_t slots[kRowsAtOnce];  // NOLINT(modernize-avoid-c-arrays)
        for (std::uint32_t k = 0; k < kRowsAtOnce; ++k) slots[k] = f * kStride + bins[k][f];
        for (std::uint32_t k = 0; k < kRowsAtOnce; ++k) {
          AtomicAdd(gradients + slots[k], static_cast<std::int32_t>(own[k].gradient));
          AtomicAdd(hessians + slots[k], static_cast<std::uint32_t>(own[k].hessian));
        }
      }
    }
  }
};

/// Builds histograms of other layouts, adding directly to the nodes' sums.
struct GlobalHistogramKernel {
  DeviceMatrix matrix;
  const std::uint32_t* rows;
  const Packed* packed;
  const DevicePiece* pieces;
  GradientSum* sums;

  HISTGBT_HD int Phases() const { return 1; }
  HISTGBT_HD std::size_t SharedBytes() const { return 0; }
  HISTGBT_HD void Run(int /*phase*/, const Thread& thread, void* /*shared*/) const {
    const DevicePiece piece = pieces[thread.block];
    GradientSum* const to = sums + static_cast<std::size_t>(piece.place) * matrix.TotalBins();
    const unsigned lanes = LanesFor(matrix.features);
    const unsigned lane = thread.index % lanes;
    for (std::uint32_t at = piece.begin + thread.index / lanes; at < piece.end; at += kThreads / lanes) {
      const GradientSum own = Unpack(packed[at]);
      const std::size_t row = rows[at];
      if (matrix.layout == Layout::kSparse) {
        for (std::uint64_t e = matrix.row_offsets[row] + lane; e < matrix.row_offsets[row + 1]; e += lanes) {
          AtomicAdd(to + matrix.entries[e], own);
        }
      } else {
        for (std::uint32_t f = lane; f < matrix.features; f += lanes) {
          const std::uint32_t bin = matrix.Bin(row, f);
          if (bin < matrix.Bins(f)) AtomicAdd(to + matrix.first_bins[f] + bin, own);
        }
      }
    }
  }
};

/// Two histograms: `from` is a parent's and becomes a child's when `less`, the sibling's, is subtracted.
struct DeviceSubtraction {
  GradientSum* from;
  const GradientSum* less;
};

struct SubtractKernel {
  const DeviceSubtraction* subtractions;
  std::uint32_t count;
  std::uint32_t bins;

  HISTGBT_HD int Phases() const { return 1; }
  HISTGBT_HD std::size_t SharedBytes() const { return 0; }
  HISTGBT_HD void Run(int /*phase*/, const Thread& thread, void* /*shared*/) const {
    for (std::size_t at = thread.global(); at < static_cast<std::size_t>(count) * bins; at += thread.all()) {
      const DeviceSubtraction& one = subtractions[at / bins];
      one.from[at % bins] -= one.less[at % bins];
    }
  }
};

// --- splits ------------------------------------------------------------------------------------------------

/// A node to split.
struct DeviceNode {
  const GradientSum* histogram;
  SplitNode asks;
};

/// Reduces the splits found by a block's threads to the best one, in kSteps phases; it ends up in splits[0].
struct BestOfBlock {
  static constexpr int kSteps = 8;
  static_assert(kThreads == 1U << kSteps);
  HISTGBT_HD static void Step(int step, const Thread& thread, Split* splits) {
    const unsigned half = kThreads >> (step + 1);
    if (thread.index >= half) return;
    const Split& other = splits[thread.index + half];
    if (other.gain > 0 && other.IsBetterThan(splits[thread.index])) splits[thread.index] = other;
  }
};

/// Finds the best split of one node on one feature, in one block. Each thread considers some adjacent bins; a
/// scan (Hillis and Steele, 1986) computes the sum of all bins before them.
struct AskKernel {
  static constexpr int kScanSteps = 8;

  const std::uint32_t* first_bins;
  std::uint32_t features;
  const DeviceNode* nodes;
  Scale scale;
  SplitParameters parameters;
  Split* found;  ///< for each node, one split per feature

  HISTGBT_HD int Phases() const { return 1 + kScanSteps + 1 + BestOfBlock::kSteps + 1; }
  HISTGBT_HD std::size_t SharedBytes() const { return kThreads * (2 * sizeof(GradientSum) + sizeof(Split)); }
  HISTGBT_HD void Run(int phase, const Thread& thread, void* shared) const {
    const std::uint32_t node = thread.block / features;
    const std::uint32_t feature = thread.block % features;
    auto* const sums = static_cast<GradientSum*>(shared);
    auto* const other_sums = sums + kThreads;
    auto* const splits = reinterpret_cast<Split*>(other_sums + kThreads);
    const GradientSum* const own = nodes[node].histogram + first_bins[feature];
    const std::uint32_t bins = first_bins[feature + 1] - first_bins[feature];
    const std::uint32_t each = (bins + kThreads - 1) / kThreads;
    const std::uint32_t begin = thread.index * each < bins ? thread.index * each : bins;
    const std::uint32_t end = begin + each < bins ? begin + each : bins;
    if (phase == 0) {
      GradientSum sum;
      for (std::uint32_t bin = begin; bin < end; ++bin) sum += own[bin];
      sums[thread.index] = sum;
    } else if (phase <= kScanSteps) {
      // The steps alternate between the two arrays; after an even number of them, the result is in the first.
      const unsigned distance = 1U << (phase - 1);
      const GradientSum* const from = phase % 2 == 1 ? sums : other_sums;
      GradientSum* const to = phase % 2 == 1 ? other_sums : sums;
      GradientSum sum = from[thread.index];
      if (thread.index >= distance) sum += from[thread.index - distance];
      to[thread.index] = sum;
    } else if (phase == kScanSteps + 1) {
      const SplitNode& asks = nodes[node].asks;
      const GradientSum missing = asks.sum - sums[kThreads - 1];
      GradientSum up_to = thread.index == 0 ? GradientSum() : sums[thread.index - 1];
      Split best;
      for (std::uint32_t bin = begin; bin < end; ++bin) {
        up_to += own[bin];
        ConsiderBin(asks, up_to, missing, feature, bin, bin + 1 == bins, scale, parameters, best);
      }
      splits[thread.index] = best;
    } else if (phase < Phases() - 1) {
      BestOfBlock::Step(phase - kScanSteps - 2, thread, splits);
    } else if (thread.index == 0) {
      found[thread.block] = splits[0];
    }
  }
  static_assert(kScanSteps % 2 == 0 && kThreads == 1U << kScanSteps);
};

/// Chooses the best split of one node over all features, in one block.
struct ChooseKernel {
  const Split* found;  ///< result of AskKernel
  std::uint32_t features;
  Split* best;  ///< one for each node

  HISTGBT_HD int Phases() const { return 1 + BestOfBlock::kSteps + 1; }
  HISTGBT_HD std::size_t SharedBytes() const { return kThreads * sizeof(Split); }
  HISTGBT_HD void Run(int phase, const Thread& thread, void* shared) const {
    auto* const splits = static_cast<Split*>(shared);
    if (phase == 0) {
      Split own;
      const Split* const of_node = found + static_cast<std::size_t>(thread.block) * features;
      for (std::uint32_t f = thread.index; f < features; f += kThreads) {
        if (of_node[f].gain > 0 && of_node[f].IsBetterThan(own)) own = of_node[f];
      }
      splits[thread.index] = own;
    } else if (phase < Phases() - 1) {
      BestOfBlock::Step(phase - 1, thread, splits);
    } else if (thread.index == 0) {
      best[thread.block] = splits[0];
    }
  }
};

// --- rows --------------------------------------------------------------------------------------------------

/// A node's split, and the range of its rows.
struct DeviceSplit {
  std::uint32_t feature;
  std::uint32_t end_bin;
  std::uint32_t default_left;
  std::uint32_t begin;
  std::uint32_t end;
  float left_weight;  ///< the values of the children if they are leaves
  float right_weight;

  HISTGBT_HD bool GoesLeft(const DeviceMatrix& matrix, std::size_t row) const {
    const std::uint32_t bin = matrix.Bin(row, feature);
    return bin < end_bin || (default_left != 0 && bin == matrix.Bins(feature));
  }
};

/// The number of rows of a split node that have been assigned to each child.
struct DeviceCounts {
  std::uint32_t lefts;
  std::uint32_t rights;
};

/// Moves the rows of nodes to their children: the left child's rows to the beginning of the node's range, the
/// right child's to its end. Rows keep their order within a block; the order of blocks is arbitrary.
struct PartitionKernel {
  static constexpr std::uint32_t kRowsPerThread = 8;
  static constexpr std::uint32_t kRowsPerBlock = kRowsPerThread * kThreads;

  DeviceMatrix matrix;
  const DevicePiece* pieces;  ///< at most kRowsPerBlock rows each
  const DeviceSplit* splits;
  DeviceCounts* counts;
  const std::uint32_t* rows;
  const Packed* packed;
  std::uint32_t* other_rows;
  Packed* other_packed;

  struct Shared {
    /// Number of rows that go left, per thread; after Reserve, the total over all earlier threads.
    std::uint32_t lefts[kThreads];  // NOLINT(modernize-avoid-c-arrays)
    /// For each thread, one bit per row: 1 if the row goes left.
    std::uint8_t goes_left[kThreads];  // NOLINT(modernize-avoid-c-arrays)
    std::uint32_t left_at;
    std::uint32_t right_at;
  };

  HISTGBT_HD int Phases() const { return 3; }
  HISTGBT_HD std::size_t SharedBytes() const { return sizeof(Shared); }
  HISTGBT_HD void Run(int phase, const Thread& thread, void* memory) const {
    auto& shared = *static_cast<Shared*>(memory);
    const DevicePiece piece = pieces[thread.block];
    const DeviceSplit& split = splits[piece.place];
    const std::uint32_t begin = piece.begin + thread.index * kRowsPerThread;
    std::uint32_t count = begin < piece.end ? piece.end - begin : 0;
    count = count < kRowsPerThread ? count : kRowsPerThread;
    if (phase == 0) {
      unsigned bits = 0;
      std::uint32_t lefts = 0;
      for (std::uint32_t i = 0; i < count; ++i) {
        const unsigned left = split.GoesLeft(matrix, rows[begin + i]) ? 1 : 0;
        bits |= left << i;
        lefts += left;
      }
      shared.goes_left[thread.index] = static_cast<std::uint8_t>(bits);
      shared.lefts[thread.index] = lefts;
    } else if (phase == 1) {
      if (thread.index == 0) Reserve(piece, split, shared);
    } else {
      std::uint32_t left_at = shared.left_at + shared.lefts[thread.index];
      // The rows of the block's earlier threads, without those that go left.
      std::uint32_t right_at = shared.right_at + thread.index * kRowsPerThread - shared.lefts[thread.index];
      for (std::uint32_t i = 0; i < count; ++i) {
        const bool left = (shared.goes_left[thread.index] >> i & 1) != 0;
        const std::uint32_t to = left ? left_at++ : right_at++;
        other_rows[to] = rows[begin + i];
        other_packed[to] = packed[begin + i];
      }
    }
  }

 private:
  HISTGBT_HD void Reserve(const DevicePiece& piece, const DeviceSplit& split, Shared& shared) const {
    std::uint32_t lefts = 0;
    for (std::uint32_t& of_thread : shared.lefts) {
      const std::uint32_t own = of_thread;
      of_thread = lefts;
      lefts += own;
    }
    const std::uint32_t rights = piece.end - piece.begin - lefts;
    shared.left_at = split.begin + AtomicReserve(&counts[piece.place].lefts, lefts);
    shared.right_at = split.end - AtomicReserve(&counts[piece.place].rights, rights) - rights;
  }
};

/// Adds the value of each leaf to the margins of its rows.
struct LeafKernel {
  const DevicePiece* pieces;
  const float* weights;  ///< one per leaf in the list
  const std::uint32_t* rows;
  float* margins;

  HISTGBT_HD int Phases() const { return 1; }
  HISTGBT_HD std::size_t SharedBytes() const { return 0; }
  HISTGBT_HD void Run(int /*phase*/, const Thread& thread, void* /*shared*/) const {
    const DevicePiece piece = pieces[thread.block];
    for (std::uint32_t at = piece.begin + thread.index; at < piece.end; at += kThreads) {
      margins[rows[at]] += weights[piece.place];
    }
  }
};

/// Like LeafKernel, for nodes whose children are leaves.
struct SplitLeafKernel {
  DeviceMatrix matrix;
  const DevicePiece* pieces;
  const DeviceSplit* splits;
  const std::uint32_t* rows;
  float* margins;

  HISTGBT_HD int Phases() const { return 1; }
  HISTGBT_HD std::size_t SharedBytes() const { return 0; }
  HISTGBT_HD void Run(int /*phase*/, const Thread& thread, void* /*shared*/) const {
    const DevicePiece piece = pieces[thread.block];
    const DeviceSplit& split = splits[piece.place];
    for (std::uint32_t at = piece.begin + thread.index; at < piece.end; at += kThreads) {
      const std::uint32_t row = rows[at];
      margins[row] += split.GoesLeft(matrix, row) ? split.left_weight : split.right_weight;
    }
  }
};

}  // namespace warren::histgbt

/// `template void Launch(const Kernel&, unsigned, cudaStream_t);` for each kernel above. A file that defines
/// Launch ends with it, inside the namespace.
#define HISTGBT_INSTANTIATE_LAUNCH_OF(kernel) template void Launch(const kernel&, unsigned, cudaStream_t);
#define HISTGBT_INSTANTIATE_LAUNCH                     \
  HISTGBT_INSTANTIATE_LAUNCH_OF(SoftmaxKernel)         \
  HISTGBT_INSTANTIATE_LAUNCH_OF(GradientKernel)        \
  HISTGBT_INSTANTIATE_LAUNCH_OF(PackKernel)            \
  HISTGBT_INSTANTIATE_LAUNCH_OF(SharedHistogramKernel) \
  HISTGBT_INSTANTIATE_LAUNCH_OF(GlobalHistogramKernel) \
  HISTGBT_INSTANTIATE_LAUNCH_OF(SubtractKernel)        \
  HISTGBT_INSTANTIATE_LAUNCH_OF(AskKernel)             \
  HISTGBT_INSTANTIATE_LAUNCH_OF(ChooseKernel)          \
  HISTGBT_INSTANTIATE_LAUNCH_OF(PartitionKernel)       \
  HISTGBT_INSTANTIATE_LAUNCH_OF(LeafKernel)            \
  HISTGBT_INSTANTIATE_LAUNCH_OF(SplitLeafKernel)
