// Grows trees on CPUs: threads share the rows of a level.
//
// The rows of a node are adjacent in `rows_`, in data order, and their gradients are at the same positions of
// `packed_`; each level moves them to a second pair of arrays. A histogram is built from pieces of rows. A
// node's first piece is added directly to the histogram; every other piece is added up separately first.
#include <rabit/rabit.h>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "data/array.h"
#include "examples/histgbt/backend.h"
#include "examples/histgbt/cpu/columns.h"
#include "examples/histgbt/cpu/gradients.h"
#include "examples/histgbt/cpu/histogram.h"

namespace warren::histgbt {
namespace {

/// Nodes with up to this number of rows are not divided into pieces: adding up a piece separately costs as
/// much as a few thousand rows.
constexpr std::size_t kLeastPiece = 8192;
constexpr std::size_t kPiecesPerThread = 3;
constexpr std::size_t kLeastRange = 4096;
constexpr std::uint32_t kNoBin = std::numeric_limits<std::uint32_t>::max();

struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Some rows of a node. `place` is the node's index in the list being processed.
struct Piece {
  std::size_t place = 0;
  Range range;
  std::size_t lefts = 0;
  GradientSum* sum = nullptr;
};

/// The bins of one feature of a sparse matrix.
struct SparseColumn {
  const BinnedMatrix& matrix;
  const Cuts& cuts;
  std::size_t feature;
  std::uint32_t operator[](std::size_t row) const { return matrix.Bin(row, feature, cuts); }
};

class CpuBackend : public Backend {
 public:
  CpuBackend(const TrainingRows& rows, Threads& threads)
      : data_(rows),
        cuts_(*rows.cuts),
        matrix_(*rows.matrix),
        columns_(matrix_, threads),
        threads_(threads),
        num_rows_(rows.labels.size()) {
    if (num_rows_ > std::numeric_limits<std::uint32_t>::max()) {
      throw std::runtime_error("a worker can have at most 2^32 - 1 rows: start more workers");
    }
    for (int thread = 0; thread < threads.count(); ++thread) builders_.emplace_back(matrix_, cuts_);
    for (auto* const array : {&rows_, &other_rows_}) array->resize(num_rows_);
    for (auto* const array : {&packed_, &other_packed_}) array->resize(num_rows_);
    gradients_.resize(num_rows_);
    hessians_.resize(num_rows_);
    goes_left_.resize(num_rows_);
  }

  void SetMargins(std::span<const float> margins) override {
    margins_.clear();
    margins_.append(margins);
  }
  std::vector<float> Margins() override { return {margins_.begin(), margins_.end()}; }

  void BeginRound() override {
    if (data_.objective != Objective::kSoftmax) return;
    probabilities_.resize(margins_.size());
    threads_.ForRanges(num_rows_, kLeastRange, [&](std::size_t begin, std::size_t end, int /*thread*/) {
      for (std::size_t row = begin; row < end; ++row) {
        Softmax(margins_.data() + row, probabilities_.data() + row, static_cast<std::size_t>(data_.num_class),
                num_rows_);
      }
    });
  }

  Greatest ComputeGradients(int class_index) override {
    class_ = static_cast<std::size_t>(class_index);
    std::vector<Greatest> parts(static_cast<std::size_t>(threads_.count()));
    const float* const scores = (data_.objective == Objective::kSoftmax ? probabilities_ : margins_).data();
    const float* const weights = data_.weights.empty() ? nullptr : data_.weights.data();
    threads_.ForRanges(num_rows_, kLeastRange, [&](std::size_t begin, std::size_t end, int thread) {
      const RowsToFit rows{scores + class_ * num_rows_ + begin, data_.labels.data() + begin,
                           weights == nullptr ? nullptr : weights + begin, end - begin,
                           static_cast<float>(class_)};
      const Greatest here = histgbt::ComputeGradients(data_.objective, rows, gradients_.data() + begin,
                                                      hessians_.data() + begin);
      Greatest& most = parts[static_cast<std::size_t>(thread)];
      most = {std::max(most.gradient, here.gradient), std::max(most.hessian, here.hessian)};
    });
    Greatest most;
    for (const Greatest& part : parts) {
      most = {std::max(most.gradient, part.gradient), std::max(most.hessian, part.hessian)};
    }
    return most;
  }

  GradientSum BeginTree(const Scale& scale) override {
    scale_ = scale;
    histograms_.clear();
    blocks_.clear();
    ranges_.assign(1, {0, num_rows_});
    std::vector<GradientSum> parts(static_cast<std::size_t>(threads_.count()));
    threads_.ForRanges(num_rows_, kLeastRange, [&](std::size_t begin, std::size_t end, int thread) {
      std::iota(rows_.data() + begin, rows_.data() + end, static_cast<std::uint32_t>(begin));
      parts[static_cast<std::size_t>(thread)] += PackGradients(
          gradients_.data() + begin, hessians_.data() + begin, end - begin, scale, packed_.data() + begin);
    });
    GradientSum sum;
    for (const GradientSum& part : parts) sum += part;
    return sum;
  }

  void BuildHistograms(std::span<const NodeToBuild> nodes) override {
    const std::size_t bins = cuts_.TotalBins();
    data::Array<GradientSum>& block = blocks_.emplace_back();
    block.resize(nodes.size() * bins);
    BuildOwn(nodes, block.data());
    rabit::Allreduce<rabit::op::Sum>(reinterpret_cast<std::int64_t*>(block.data()), 2 * block.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) Histogram(nodes[i].node) = block.data() + i * bins;
    SubtractFromParents(nodes);
  }

  std::vector<Split> FindSplits(std::span<const std::int32_t> nodes, std::span<const GradientSum> sums,
                                const SplitParameters& parameters) override {
    const std::size_t features = cuts_.features();
    const std::size_t wanted = static_cast<std::size_t>(threads_.count()) * kPiecesPerThread;
    const std::size_t groups =
        std::clamp<std::size_t>(wanted / nodes.size(), 1, std::max<std::size_t>(features, 1));
    std::vector<Split> found(nodes.size() * groups);
    threads_.ForEach(found.size(), [&](std::size_t index, int /*thread*/) {
      const std::size_t at = index / groups;
      const std::size_t group = index % groups;
      const SplitNode node{sums[at], Gain(sums[at], scale_, parameters.lambda)};
      const GradientSum* const histogram = Histogram(nodes[at]);
      for (std::size_t f = features * group / groups; f < features * (group + 1) / groups; ++f) {
        SearchFeature(node, histogram, f, parameters, found[index]);
      }
    });
    std::vector<Split> best(nodes.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].gain > 0 && found[i].IsBetterThan(best[i / groups])) best[i / groups] = found[i];
    }
    return best;
  }

  void Partition(std::span<const NodeSplit> splits) override {
    std::vector<Piece> pieces =
        PiecesOf(splits.size(), [&](std::size_t i) { return RangeOf(splits[i].node); });
    threads_.ForEach(pieces.size(),
                     [&](std::size_t i, int /*thread*/) { DecideRows(splits[pieces[i].place], pieces[i]); });
    std::vector<std::size_t> left_at(pieces.size());
    std::vector<std::size_t> right_at(pieces.size());
    std::vector<std::size_t> lefts(splits.size());
    for (const Piece& piece : pieces) lefts[piece.place] += piece.lefts;
    std::size_t before = splits.size();
    std::size_t next_left = 0;
    std::size_t next_right = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::size_t place = pieces[i].place;
      if (place != before) {
        next_left = RangeOf(splits[place].node).begin;
        next_right = next_left + lefts[place];
        before = place;
      }
      left_at[i] = std::exchange(next_left, next_left + pieces[i].lefts);
      right_at[i] = std::exchange(
          next_right, next_right + (pieces[i].range.end - pieces[i].range.begin - pieces[i].lefts));
    }
    threads_.ForEach(pieces.size(), [&](std::size_t i, int /*thread*/) {
      MoveRows(pieces[i].range, left_at[i], right_at[i]);
    });
    for (std::size_t i = 0; i < splits.size(); ++i) {
      const Range range = RangeOf(splits[i].node);
      RangeOf(splits[i].left) = {range.begin, range.begin + lefts[i]};
      RangeOf(splits[i].right) = {range.begin + lefts[i], range.end};
    }
    rows_.swap(other_rows_);
    packed_.swap(other_packed_);
  }

  void AddSplitLeaves(std::span<const NodeSplit> splits, std::span<const LeafValue> leaves) override {
    std::vector<Piece> pieces =
        PiecesOf(splits.size(), [&](std::size_t i) { return RangeOf(splits[i].node); });
    float* const margins = margins_.data() + class_ * num_rows_;
    threads_.ForEach(pieces.size(), [&](std::size_t i, int /*thread*/) {
      Piece& piece = pieces[i];
      DecideRows(splits[piece.place], piece);
      const std::array<float, 2> weights = {leaves[2 * piece.place + 1].weight,
                                            leaves[2 * piece.place].weight};
      for (std::size_t at = piece.range.begin; at < piece.range.end; ++at)
        margins[rows_[at]] += weights[goes_left_[at]];
    });
  }

  void AddLeaves(std::span<const LeafValue> leaves) override {
    const std::vector<Piece> pieces =
        PiecesOf(leaves.size(), [&](std::size_t i) { return RangeOf(leaves[i].node); });
    float* const margins = margins_.data() + class_ * num_rows_;
    threads_.ForEach(pieces.size(), [&](std::size_t i, int /*thread*/) {
      const float weight = leaves[pieces[i].place].weight;
      for (std::size_t at = pieces[i].range.begin; at < pieces[i].range.end; ++at)
        margins[rows_[at]] += weight;
    });
  }

 private:
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

  /// Divides the rows of each node into equal pieces of limited size.
  template <typename RangeAt>
  std::vector<Piece> PiecesOf(std::size_t nodes, const RangeAt& range_at) {
    std::size_t all = 0;
    for (std::size_t i = 0; i < nodes; ++i) all += range_at(i).end - range_at(i).begin;
    const std::size_t most =
        std::max(kLeastPiece, all / (static_cast<std::size_t>(threads_.count()) * kPiecesPerThread) + 1);
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < nodes; ++i) {
      const Range range = range_at(i);
      const std::size_t count = (range.end - range.begin + most - 1) / most;
      for (std::size_t part = 0; part < count; ++part) {
        const std::size_t size = range.end - range.begin;
        pieces.push_back(
            {i, {range.begin + size * part / count, range.begin + size * (part + 1) / count}, 0, nullptr});
      }
    }
    return pieces;
  }

  /// Builds the nodes' histograms over this worker's rows, one after the other in `block`.
  void BuildOwn(std::span<const NodeToBuild> nodes, GradientSum* block) {
    const std::size_t bins = cuts_.TotalBins();
    std::vector<Piece> pieces = PiecesOf(nodes.size(), [&](std::size_t i) { return RangeOf(nodes[i].node); });
    // A node's first piece is summed directly into `block`; the sums of its other pieces are added
    // afterwards.
    const auto is_first = [&](std::size_t i) { return i == 0 || pieces[i - 1].place != pieces[i].place; };
    std::vector<bool> has_rows(nodes.size());
    std::vector<Piece*> added;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      has_rows[pieces[i].place] = true;
      if (!is_first(i)) added.push_back(&pieces[i]);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!has_rows[i]) std::fill_n(block + i * bins, bins, GradientSum());
    }
    scratch_.resize(added.size() * bins);
    for (Piece& piece : pieces) piece.sum = block + piece.place * bins;
    for (std::size_t i = 0; i < added.size(); ++i) added[i]->sum = scratch_.data() + i * bins;
    threads_.ForEach(pieces.size(), [&](std::size_t i, int thread) {
      const Piece& piece = pieces[i];
      std::fill_n(piece.sum, bins, GradientSum());
      builders_[static_cast<std::size_t>(thread)].Add(
          {rows_.data() + piece.range.begin, packed_.data() + piece.range.begin,
           piece.range.end - piece.range.begin},
          piece.sum);
    });
    if (added.empty()) return;
    threads_.ForRanges(bins, 1024, [&](std::size_t begin, std::size_t end, int /*thread*/) {
      for (const Piece* const piece : added) {
        GradientSum* const to = block + piece->place * bins;
        for (std::size_t bin = begin; bin < end; ++bin) to[bin] += piece->sum[bin];
      }
    });
  }

  void SubtractFromParents(std::span<const NodeToBuild> nodes) {
    for (const NodeToBuild& build : nodes) {
      if (build.sibling >= 0) Histogram(build.sibling) = std::exchange(Histogram(build.parent), nullptr);
    }
    const std::size_t bins = cuts_.TotalBins();
    threads_.ForRanges(nodes.size() * bins, kLeastRange,
                       [&](std::size_t begin, std::size_t end, int /*thread*/) {
                         for (std::size_t at = begin; at < end;) {
                           const NodeToBuild& build = nodes[at / bins];
                           const std::size_t first = at % bins;
                           const std::size_t last = std::min(bins, first + (end - at));
                           at += last - first;
                           if (build.sibling < 0) continue;
                           GradientSum* const to = histograms_[static_cast<std::size_t>(build.sibling)];
                           const GradientSum* const built = histograms_[static_cast<std::size_t>(build.node)];
                           for (std::size_t bin = first; bin < last; ++bin) to[bin] -= built[bin];
                         }
                       });
  }

  void SearchFeature(const SplitNode& node, const GradientSum* histogram, std::size_t feature,
                     const SplitParameters& parameters, Split& best) const {
    const GradientSum* const own = histogram + cuts_.FirstBin(feature);
    const std::uint32_t bins = cuts_.Bins(feature);
    GradientSum there;
    for (std::uint32_t bin = 0; bin < bins; ++bin) there += own[bin];
    const GradientSum missing = node.sum - there;
    GradientSum up_to;
    for (std::uint32_t bin = 0; bin < bins; ++bin) {
      up_to += own[bin];
      ConsiderBin(node, up_to, missing, static_cast<std::uint32_t>(feature), bin, bin + 1 == bins, scale_,
                  parameters, best);
    }
  }

  /// Marks in goes_left_ which rows of a piece go left, and counts them.
  void DecideRows(const NodeSplit& split, Piece& piece) {
    switch (matrix_.layout) {
      case Layout::kDense8:
        return DecideRows(split, piece, columns_.Dense8(split.feature));
      case Layout::kDense16:
        return DecideRows(split, piece, columns_.Dense16(split.feature));
      case Layout::kSparse:
        return DecideRows(split, piece, SparseColumn{matrix_, cuts_, split.feature});
    }
  }

  template <typename Column>
  void DecideRows(const NodeSplit& split, Piece& piece, const Column& column) {
    // The bin of missing values (Cuts::Bins) is never below end_bin, so it is compared separately.
    const std::uint32_t also_left = split.default_left ? cuts_.Bins(split.feature) : kNoBin;
    const std::uint32_t end_bin = split.end_bin;
    const std::uint32_t* const rows = rows_.data();
    std::uint8_t* const goes_left = goes_left_.data();
    std::size_t lefts = 0;
    for (std::size_t at = piece.range.begin; at < piece.range.end; ++at) {
      const std::uint32_t bin = column[rows[at]];
      const auto left =
          static_cast<std::uint8_t>(static_cast<int>(bin < end_bin) | static_cast<int>(bin == also_left));
      goes_left[at] = left;
      lefts += left;
    }
    piece.lefts = lefts;
  }

  /// Moves the rows to their children. The loop has no branches, because the side of a row is unpredictable.
  void MoveRows(const Range& range, std::size_t left_at, std::size_t right_at) {
    const std::uint8_t* const goes_left = goes_left_.data();
    const std::uint32_t* const rows = rows_.data();
    const Packed* const packed = packed_.data();
    std::uint32_t* const other_rows = other_rows_.data();
    Packed* const other_packed = other_packed_.data();
    for (std::size_t at = range.begin; at < range.end; ++at) {
      const std::size_t left = goes_left[at];
      const std::size_t to = right_at ^ ((left_at ^ right_at) & (0 - left));
      left_at += left;
      right_at += 1 - left;
      other_rows[to] = rows[at];
      other_packed[to] = packed[at];
    }
  }

  TrainingRows data_;
  const Cuts& cuts_;
  const BinnedMatrix& matrix_;
  Columns columns_;
  Threads& threads_;
  std::size_t num_rows_;
  std::vector<HistogramBuilder> builders_;

  data::Array<float> margins_;
  data::Array<float> probabilities_;
  // State of the current tree:
  std::size_t class_ = 0;
  Scale scale_;
  data::Array<float> gradients_;
  data::Array<float> hessians_;
  data::Array<std::uint32_t> rows_;
  data::Array<Packed> packed_;
  data::Array<std::uint32_t> other_rows_;
  data::Array<Packed> other_packed_;
  data::Array<std::uint8_t> goes_left_;
  std::vector<Range> ranges_;                    ///< the rows of each node
  std::deque<data::Array<GradientSum>> blocks_;  ///< the histograms of each level
  std::vector<GradientSum*> histograms_;         ///< each node's histogram, or null
  data::Array<GradientSum> scratch_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(const TrainingRows& rows, Threads& threads) {
  return std::make_unique<CpuBackend>(rows, threads);
}

}  // namespace warren::histgbt
