// Grows trees on a GPU. The host works level by level and keeps each node's range of rows; the rows, their
// gradients and the histograms stay on the device. For each level, the host receives two small copies: the
// number of rows that went left in each node, and the best splits.
//
// The histograms of a level are built in a few groups of nodes: while one group's histograms are summed over
// all workers on a separate stream, the next group's are built.
#include <cuda_runtime_api.h>
#include <rabit/device.h>
#include <rabit/rabit.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "examples/histgbt/backend.h"
#include "examples/histgbt/cuda/device_array.h"
#include "examples/histgbt/cuda/kernels.h"

namespace warren::histgbt {
namespace {

/// The maximum number of blocks of a kernel whose threads loop over rows or bins.
constexpr unsigned kRowBlocks = 1024;
constexpr std::uint32_t kLeafPiece = 16384;
/// Maximum number of rows per block of the histogram kernel: as many as its words can sum without overflow.
constexpr std::uint32_t kHistogramPiece = kPackedRows;
/// Maximum number of groups per level: one group is summed over the workers while the next is built. Used
/// with several workers only, and only with at least kLeastGroupBytes per group, since even a small
/// collective takes time.
constexpr std::size_t kGroups = 4;
constexpr std::size_t kLeastGroupBytes = std::size_t{1} << 20;

unsigned BlocksFor(std::size_t items) {
  return static_cast<unsigned>(std::clamp<std::size_t>((items + kThreads - 1) / kThreads, 1, kRowBlocks));
}

struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

class Stream {
 public:
  Stream() { CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { CheckCuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  void Record(cudaStream_t stream) { CheckCuda(cudaEventRecord(event_, stream), "recording an event"); }
  /// Makes work submitted to the stream from now on wait for the recorded work.
  void Hold(cudaStream_t stream) const {
    CheckCuda(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const TrainingRows& rows) : data_(rows), num_rows_(rows.labels.size()) {
    if (num_rows_ > std::numeric_limits<std::uint32_t>::max())
      throw std::runtime_error("a worker can have at most 2^32 - 1 rows: start more workers");
    UploadMatrix(*rows.matrix, *rows.cuts);
    labels_.Upload(rows.labels, stream_);
    weights_.Upload(rows.weights, stream_);
    for (auto* const array : {&rows_, &other_rows_}) array->resize(num_rows_);
    for (auto* const array : {&packed_, &other_packed_}) array->resize(num_rows_);
    gradients_.resize(num_rows_);
    hessians_.resize(num_rows_);
    greatest_.resize(1);
    sum_.resize(1);
    group_features_ = FeaturesOfAGroup();
  }
  ~CudaBackend() override { cudaDeviceSynchronize(); }

  void SetMargins(std::span<const float> margins) override { margins_.Upload(margins, stream_); }
  std::vector<float> Margins() override { return margins_.Download(stream_); }

  void BeginRound() override {
    if (data_.objective != Objective::kSoftmax) return;
    probabilities_.resize(margins_.size());
    Launch(SoftmaxKernel{margins_.data(), probabilities_.data(), NumRows(),
                         static_cast<std::uint32_t>(data_.num_class)},
           BlocksFor(num_rows_), stream_);
  }

  Greatest ComputeGradients(int class_index) override {
    class_ = static_cast<std::size_t>(class_index);
    greatest_.Zero(stream_);
    const bool softmax = data_.objective == Objective::kSoftmax;
    Launch(GradientKernel{data_.objective, NumRows(), static_cast<std::uint32_t>(class_index), ClassMargins(),
                          softmax ? probabilities_.data() + class_ * num_rows_ : nullptr, labels_.data(),
                          data_.weights.empty() ? nullptr : weights_.data(), gradients_.data(),
                          hessians_.data(), greatest_.data()},
           BlocksFor(num_rows_), stream_);
    const DeviceGreatest most = greatest_.Download(stream_).front();
    if (most.not_finite != 0)
      throw std::runtime_error("a gradient is not finite: labels, weights or eta are too large");
    return {std::bit_cast<float>(most.gradient), std::bit_cast<float>(most.hessian)};
  }

  GradientSum BeginTree(const Scale& scale) override {
    scale_ = scale;
    histograms_.clear();
    level_ = 0;
    ranges_.assign(1, {0, NumRows()});
    sum_.Zero(stream_);
    Launch(PackKernel{gradients_.data(), hessians_.data(), static_cast<float>(1 / scale.gradient),
                      static_cast<float>(1 / scale.hessian), NumRows(), rows_.data(), packed_.data(),
                      sum_.data()},
           BlocksFor(num_rows_), stream_);
    return sum_.Download(stream_).front();
  }

  void BuildHistograms(std::span<const NodeToBuild> nodes) override {
    const std::size_t bins = TotalBins();
    if (blocks_.size() == level_) blocks_.emplace_back();
    DeviceArray<GradientSum>& block = blocks_[level_++];
    block.resize(nodes.size() * bins);
    block.Zero(stream_);
    for (std::size_t i = 0; i < nodes.size(); ++i) Histogram(nodes[i].node) = block.data() + i * bins;
    const bool together = rabit::GetWorldSize() > 1 && bins > 0;
    const std::size_t groups =
        together ? std::clamp<std::size_t>(nodes.size() * bins * sizeof(GradientSum) / kLeastGroupBytes, 1,
                                           std::min(kGroups, nodes.size()))
                 : 1;
    // All groups are submitted before the first collective, which may wait on the host for other workers.
    const auto begin_of = [&](std::size_t group) { return nodes.size() * group / groups; };
    std::deque<Event> built(groups);
    pieces_.resize(std::max(pieces_.size(), groups));
    for (std::size_t group = 0; group < groups; ++group) {
      BuildOwn(nodes.subspan(begin_of(group), begin_of(group + 1) - begin_of(group)),
               block.data() + begin_of(group) * bins, pieces_[group]);
      if (together) built[group].Record(stream_);
    }
    for (std::size_t group = 0; together && group < groups; ++group) {
      built[group].Hold(sums_stream_);
      GradientSum* const first = block.data() + begin_of(group) * bins;
      const std::size_t count = (begin_of(group + 1) - begin_of(group)) * bins * 2;
      rabit::device::Allreduce(reinterpret_cast<std::int64_t*>(first), count, RABIT_DEVICE_SUM, sums_stream_);
    }
    if (together) {
      summed_.Record(sums_stream_);
      summed_.Hold(stream_);
    }
    SubtractFromParents(nodes);
  }

  std::vector<Split> FindSplits(std::span<const std::int32_t> nodes, std::span<const GradientSum> sums,
                                const SplitParameters& parameters) override {
    const std::uint32_t features = matrix_.features;
    if (features == 0) return std::vector<Split>(nodes.size());
    std::vector<DeviceNode> asking;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      asking.push_back({Histogram(nodes[i]), {sums[i], Gain(sums[i], scale_, parameters.lambda)}});
    asking_.Upload(asking, stream_);
    found_.resize(nodes.size() * features);
    best_.resize(nodes.size());
    Launch(AskKernel{first_bins_.data(), features, asking_.data(), scale_, parameters, found_.data()},
           static_cast<unsigned>(found_.size()), stream_);
    Launch(ChooseKernel{found_.data(), features, best_.data()}, static_cast<unsigned>(nodes.size()), stream_);
    return best_.Download(stream_);
  }

  void Partition(std::span<const NodeSplit> splits) override {
    UploadSplits(splits, {});
    const unsigned blocks = UploadPieces(
        splits.size(), [&](std::size_t i) { return RangeOf(splits[i].node); },
        PartitionKernel::kRowsPerBlock);
    counts_.resize(splits.size());
    counts_.Zero(stream_);
    Launch(PartitionKernel{matrix_, row_pieces_.data(), splits_.data(), counts_.data(), rows_.data(),
                           packed_.data(), other_rows_.data(), other_packed_.data()},
           blocks, stream_);
    const std::vector<DeviceCounts> counts = counts_.Download(stream_);
    for (std::size_t i = 0; i < splits.size(); ++i) {
      const Range range = RangeOf(splits[i].node);
      const std::uint32_t middle = range.begin + counts[i].lefts;
      RangeOf(splits[i].left) = {range.begin, middle};
      RangeOf(splits[i].right) = {middle, range.end};
    }
    rows_.swap(other_rows_);
    packed_.swap(other_packed_);
  }

  void AddSplitLeaves(std::span<const NodeSplit> splits, std::span<const LeafValue> leaves) override {
    UploadSplits(splits, leaves);
    const unsigned blocks = UploadPieces(
        splits.size(), [&](std::size_t i) { return RangeOf(splits[i].node); }, kLeafPiece);
    Launch(SplitLeafKernel{matrix_, row_pieces_.data(), splits_.data(), rows_.data(), ClassMargins()}, blocks,
           stream_);
  }

  void AddLeaves(std::span<const LeafValue> leaves) override {
    std::vector<float> weights;
    for (const LeafValue& leaf : leaves) weights.push_back(leaf.weight);
    leaf_weights_.Upload(weights, stream_);
    const unsigned blocks = UploadPieces(
        leaves.size(), [&](std::size_t i) { return RangeOf(leaves[i].node); }, kLeafPiece);
    Launch(LeafKernel{row_pieces_.data(), leaf_weights_.data(), rows_.data(), ClassMargins()}, blocks,
           stream_);
  }

 private:
  std::uint32_t NumRows() const { return static_cast<std::uint32_t>(num_rows_); }
  std::size_t TotalBins() const { return data_.cuts->TotalBins(); }
  float* ClassMargins() const { return margins_.data() + class_ * num_rows_; }

  Range& RangeOf(std::int32_t node) {
    const auto index = static_cast<std::size_t>(node);
    if (ranges_.size() <= index) ranges_.resize(index + 1);
    return ranges_[index];
  }

  GradientSum*& Histogram(std::int32_t node) {
    const auto index = static_cast<std::size_t>(node);
    if (histograms_.size() <= index) histograms_.resize(index + 1, nullptr);
    return histograms_[index];
  }

  void UploadMatrix(const BinnedMatrix& matrix, const Cuts& cuts) {
    dense8_.Upload(matrix.dense8, stream_);
    dense16_.Upload(matrix.dense16, stream_);
    row_offsets_.Upload(matrix.row_offsets, stream_);
    entries_.Upload(matrix.entries, stream_);
    std::vector<std::uint32_t> first_bins;
    for (std::size_t f = 0; f <= cuts.features(); ++f) first_bins.push_back(cuts.FirstBin(f));
    first_bins_.Upload(first_bins, stream_);
    matrix_ = {matrix.layout,       static_cast<std::uint32_t>(cuts.features()),
               dense8_.data(),      dense16_.data(),
               row_offsets_.data(), entries_.data(),
               first_bins_.data()};
  }

  /// Returns the number of features per group. A group's histogram fits into half of the shared memory, and
  /// the groups have about the same size.
  std::uint32_t FeaturesOfAGroup() const {
    int device = 0;
    int bytes = 0;
    CheckCuda(cudaGetDevice(&device), "getting the current GPU");
    CheckCuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
              "getting the GPU's properties");
    // Half, so that a multiprocessor can run two blocks: one adds while the other clears or writes.
    const std::uint32_t most = std::max<std::uint32_t>(
        1, static_cast<std::uint32_t>(bytes) / 2 / SharedHistogramKernel::kBytesPerFeature);
    const std::uint32_t features =
        std::max<std::uint32_t>(1, static_cast<std::uint32_t>(data_.cuts->features()));
    const std::uint32_t groups = (features + most - 1) / most;
    return (features + groups - 1) / groups;
  }

  template <typename RangeAt>
  static std::vector<DevicePiece> PiecesOf(std::size_t nodes, const RangeAt& range_at, std::uint32_t most) {
    std::vector<DevicePiece> pieces;
    for (std::size_t i = 0; i < nodes; ++i) {
      const Range range = range_at(i);
      for (std::uint32_t begin = range.begin; begin < range.end;) {
        const std::uint32_t size = std::min(most, range.end - begin);
        pieces.push_back({static_cast<std::uint32_t>(i), begin, begin + size});
        begin += size;
      }
    }
    return pieces;
  }

  template <typename RangeAt>
  unsigned UploadPieces(std::size_t nodes, const RangeAt& range_at, std::uint32_t most) {
    const std::vector<DevicePiece> pieces = PiecesOf(nodes, range_at, most);
    row_pieces_.Upload(pieces, stream_);
    return static_cast<unsigned>(pieces.size());
  }

  void UploadSplits(std::span<const NodeSplit> splits, std::span<const LeafValue> leaves) {
    std::vector<DeviceSplit> uploaded;
    for (std::size_t i = 0; i < splits.size(); ++i) {
      const NodeSplit& split = splits[i];
      const Range range = RangeOf(split.node);
      uploaded.push_back({split.feature, split.end_bin, split.default_left ? 1U : 0U, range.begin, range.end,
                          leaves.empty() ? 0 : leaves[2 * i].weight,
                          leaves.empty() ? 0 : leaves[2 * i + 1].weight});
    }
    splits_.Upload(uploaded, stream_);
  }

  void BuildOwn(std::span<const NodeToBuild> nodes, GradientSum* sums, DeviceArray<DevicePiece>& uploaded) {
    const std::vector<DevicePiece> pieces = PiecesOf(
        nodes.size(), [&](std::size_t i) { return RangeOf(nodes[i].node); }, kHistogramPiece);
    uploaded.Upload(pieces, stream_);
    const auto blocks = static_cast<unsigned>(pieces.size());
    if (matrix_.layout == Layout::kDense8 && matrix_.features > 0) {
      const std::uint32_t groups = (matrix_.features + group_features_ - 1) / group_features_;
      Launch(SharedHistogramKernel{matrix_, group_features_, groups, rows_.data(), packed_.data(),
                                   uploaded.data(), sums},
             blocks * groups, stream_);
    } else if (matrix_.features > 0) {
      Launch(GlobalHistogramKernel{matrix_, rows_.data(), packed_.data(), uploaded.data(), sums}, blocks,
             stream_);
    }
  }

  void SubtractFromParents(std::span<const NodeToBuild> nodes) {
    std::vector<DeviceSubtraction> subtractions;
    for (const NodeToBuild& build : nodes) {
      if (build.sibling < 0) continue;
      Histogram(build.sibling) = std::exchange(Histogram(build.parent), nullptr);
      subtractions.push_back({Histogram(build.sibling), Histogram(build.node)});
    }
    if (subtractions.empty() || TotalBins() == 0) return;
    subtractions_.Upload(subtractions, stream_);
    Launch(SubtractKernel{subtractions_.data(), static_cast<std::uint32_t>(subtractions.size()),
                          static_cast<std::uint32_t>(TotalBins())},
           BlocksFor(subtractions.size() * TotalBins()), stream_);
  }

  TrainingRows data_;
  std::size_t num_rows_;
  std::uint32_t group_features_ = 1;
  Stream stream_;       ///< all work except the collectives
  Stream sums_stream_;  ///< the collectives
  Event summed_;

  // The data set:
  DeviceArray<std::uint8_t> dense8_;
  DeviceArray<std::uint16_t> dense16_;
  DeviceArray<std::uint64_t> row_offsets_;
  DeviceArray<std::uint32_t> entries_;
  DeviceArray<std::uint32_t> first_bins_;
  DeviceMatrix matrix_{};
  DeviceArray<float> labels_;
  DeviceArray<float> weights_;
  DeviceArray<float> margins_;
  DeviceArray<float> probabilities_;

  // State of the current tree:
  std::size_t class_ = 0;
  Scale scale_;
  DeviceArray<float> gradients_;
  DeviceArray<float> hessians_;
  DeviceArray<DeviceGreatest> greatest_;
  DeviceArray<GradientSum> sum_;
  DeviceArray<std::uint32_t> rows_;
  DeviceArray<Packed> packed_;
  DeviceArray<std::uint32_t> other_rows_;
  DeviceArray<Packed> other_packed_;
  std::vector<Range> ranges_;                    ///< the rows of each node
  std::size_t level_ = 0;                        ///< number of levels with histograms
  std::deque<DeviceArray<GradientSum>> blocks_;  ///< each level's histograms; reused by the next tree
  std::vector<GradientSum*> histograms_;         ///< each node's histogram on the device, or null

  // State of the current level:
  std::deque<DeviceArray<DevicePiece>> pieces_;  ///< for each group of nodes, the pieces of their rows
  DeviceArray<DeviceSubtraction> subtractions_;
  DeviceArray<DeviceNode> asking_;
  DeviceArray<Split> found_;
  DeviceArray<Split> best_;
  DeviceArray<DevicePiece> row_pieces_;
  DeviceArray<DeviceSplit> splits_;
  DeviceArray<DeviceCounts> counts_;
  DeviceArray<float> leaf_weights_;
};

}  // namespace

void SelectGpu() {
  rabit::device::Select();
}

std::unique_ptr<Backend> MakeCudaBackend(const TrainingRows& rows) {
  return std::make_unique<CudaBackend>(rows);
}

}  // namespace warren::histgbt
