#include "data/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "data/error.h"
#include "data/source/inputs.h"

namespace warren::data {
namespace {

/// Indices into ShapeFinder's words. Words of several workers are combined by maximum; a minimum is stored as
/// kMost minus its value.
enum Word : std::uint8_t {
  kColumns,
  kBelowLeastIndex,  // 0 without entries
  kFieldZero,
  kWithQid,
  kWithoutQid,
  kWeights,
  kMostLabels,
  kBelowFewestLabels,  // 0 without rows
  kInputs,
  kBelowInputs,  // 0 if no inputs were added
};
static_assert(kBelowInputs + 1 == ShapeFinder::kWords);

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

}  // namespace

template <typename Index>
void ShapeFinder::Add(const RowView<Index>& rows) {
  const auto raise = [this](Word word, std::uint64_t value) { words_[word] = std::max(words_[word], value); };
  raise(kColumns, rows.columns);
  if (rows.entries() > 0) raise(kBelowLeastIndex, kMost - rows.least_index);
  if (std::find(rows.fields.begin(), rows.fields.end(), Index{0}) != rows.fields.end()) raise(kFieldZero, 1);
  if (rows.rows() == 0) return;
  raise(rows.qids.empty() ? kWithoutQid : kWithQid, 1);
  if (!rows.weights.empty()) raise(kWeights, 1);
  const auto add_labels = [&](std::uint64_t labels) {
    raise(kMostLabels, labels);
    raise(kBelowFewestLabels, kMost - labels);
  };
  if (rows.label_offsets.empty()) add_labels(1);
  for (std::size_t row = 1; row < rows.label_offsets.size(); ++row)
    add_labels(rows.label_offsets[row] - rows.label_offsets[row - 1]);
}

template void ShapeFinder::Add(const RowView<std::uint32_t>&);
template void ShapeFinder::Add(const RowView<std::uint64_t>&);

void ShapeFinder::AddInputs(std::uint64_t digest) {
  if (digest == 0) return;
  words_[kInputs] = digest;
  words_[kBelowInputs] = kMost - digest;
}

Shape ShapeFinder::Agree(Indexing indexing, const AllreduceMax& allreduce_max) const {
  std::array<std::uint64_t, kWords> all = words_;
  allreduce_max(all.data(), all.size());
  if (all[kBelowInputs] != 0 && all[kInputs] != kMost - all[kBelowInputs]) {
    throw DataError(
        "the workers have found different files, or files of different sizes, so rows would be read twice or not at all; all workers need the same files, and no program may write to them meanwhile");
  }
  if (all[kWithQid] != 0 && all[kWithoutQid] != 0) {
    throw DataError(
        "some workers read rows with a qid and others rows without one; expected a qid in every row or in none");
  }
  Shape shape;
  shape.counted_from_one = indexing == Indexing::kDetect && all[kFieldZero] == 0 &&
                           all[kBelowLeastIndex] != 0 && all[kBelowLeastIndex] != kMost;
  shape.columns = all[kColumns] - (shape.counted_from_one ? 1 : 0);
  shape.has_weights = all[kWeights] != 0;
  shape.has_queries = all[kWithQid] != 0;
  const bool has_rows = all[kBelowFewestLabels] != 0;
  if (has_rows)
    shape.labels_per_row = all[kMostLabels] == kMost - all[kBelowFewestLabels] ? all[kMostLabels] : 0;
  return shape;
}

template <typename Index>
Shape Agree(RowBlock<Index>& block, Indexing indexing, const AllreduceMax& allreduce_max,
            std::uint64_t inputs_digest) {
  ShapeFinder finder;
  finder.AddInputs(inputs_digest);
  finder.Add(block.View());
  const Shape shape = finder.Agree(indexing, allreduce_max);
  block.columns = shape.columns;
  if (shape.has_weights) block.weights.resize(block.rows(), 1.0F);
  if (!shape.counted_from_one) return shape;
  for (Index& index : block.indices) --index;
  for (Index& field : block.fields) --field;
  if (block.entries() > 0) --block.least_index;
  return shape;
}

template Shape Agree(RowBlock<std::uint32_t>&, Indexing, const AllreduceMax&, std::uint64_t);
template Shape Agree(RowBlock<std::uint64_t>&, Indexing, const AllreduceMax&, std::uint64_t);

ShapeFinder FindShape(const DataUri& uri, const ReaderOptions& options) {
  for (const Input& input : ListInputs(uri.paths, options.remote_files, uri.paths_are)) {
    if (input.divisible || input.size > 0) continue;
    throw DataError(fmt::format(
        "{}: is a stream, which can be read only once, and a part of it needs the columns of all the data; read it as a whole, or copy it into a file",
        input.path));
  }
  DataUri whole = uri;
  whole.options.share.reset();
  ShapeFinder finder;
  Reader<std::uint32_t> reader(whole, {}, options);
  if (!uri.options.share) finder.AddInputs(reader.inputs_digest());
  for (RowBlock<std::uint32_t> block; reader.Next(block);) finder.Add(block.View());
  return finder;
}

}  // namespace warren::data
