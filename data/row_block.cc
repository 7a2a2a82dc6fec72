#include "data/row_block.h"

#include <algorithm>

#include "data/error.h"

namespace warren::data {
namespace {

/// Sets `offsets` to the label offsets of `rows` rows with one label each.
void FillLabelOffsets(Array<std::uint64_t>& offsets, std::size_t rows) {
  offsets.resize(rows + 1);
  for (std::size_t i = 0; i <= rows; ++i) offsets[i] = i;
}

void AppendShifted(Array<std::uint64_t>& to, std::span<const std::uint64_t> offsets, std::uint64_t shift) {
  const std::size_t begin = to.size();
  to.resize(begin + offsets.size() - 1);
  for (std::size_t i = 1; i < offsets.size(); ++i) to[begin + i - 1] = offsets[i] + shift;
}

}  // namespace

template <typename Index>
RowView<Index> RowView<Index>::Part(std::size_t begin, std::size_t end) const {
  const auto rows_of = [=](auto array) { return array.empty() ? array : array.subspan(begin, end - begin); };
  const auto offsets_of = [=](auto array) {
    return array.empty() ? array : array.subspan(begin, end - begin + 1);
  };
  // This view may itself be a part: its arrays then begin with its first row, but its offsets not with 0.
  const auto some_of = [](auto array, std::span<const std::uint64_t> all,
                          std::span<const std::uint64_t> places) {
    return array.empty() ? array
                         : array.subspan(places.front() - all.front(), places.back() - places.front());
  };
  RowView part = *this;
  part.offsets = offsets_of(offsets);
  part.label_offsets = offsets_of(label_offsets);
  part.weights = rows_of(weights);
  part.qids = rows_of(qids);
  part.indices = some_of(indices, offsets, part.offsets);
  part.values = some_of(values, offsets, part.offsets);
  part.fields = some_of(fields, offsets, part.offsets);
  part.labels = label_offsets.empty() ? rows_of(labels) : some_of(labels, label_offsets, part.label_offsets);
  return part;
}

template <typename Index>
void RowBlock<Index>::Truncate(std::size_t rows) {
  if (rows == 0) return Clear();
  offsets.resize(rows + 1);
  indices.resize(offsets.back());
  values.resize(offsets.back());
  if (!fields.empty()) fields.resize(offsets.back());
  if (!label_offsets.empty()) label_offsets.resize(rows + 1);
  labels.resize(label_offsets.empty() ? rows : label_offsets.back());
  if (!weights.empty()) weights.resize(rows);
  if (!qids.empty()) qids.resize(rows);
}

template <typename Index>
void RowBlock<Index>::Clear() {
  offsets.clear();
  indices.clear();
  values.clear();
  labels.clear();
  label_offsets.clear();
  weights.clear();
  qids.clear();
  fields.clear();
  columns = 0;
  least_index = Index(-1);
}

template <typename Index>
void RowBlock<Index>::Append(const RowView<Index>& other) {
  if (other.rows() == 0) return;
  if (empty()) offsets.resize(1, 0);
  if (rows() > 0 && qids.empty() != other.qids.empty()) {
    throw DataError("some rows have a qid and others have none; expected a qid in every row or in none");
  }
  const std::size_t own_rows = rows();
  const std::uint64_t own_entries = entries();
  AppendShifted(offsets, other.offsets, own_entries - other.offsets.front());
  indices.append(other.indices);
  values.append(other.values);
  qids.append(other.qids);
  if (!label_offsets.empty() || !other.label_offsets.empty()) {
    if (label_offsets.empty()) FillLabelOffsets(label_offsets, own_rows);
    Array<std::uint64_t> filled;
    if (other.label_offsets.empty()) FillLabelOffsets(filled, other.rows());
    const std::span<const std::uint64_t> theirs = other.label_offsets.empty() ? filled : other.label_offsets;
    AppendShifted(label_offsets, theirs, labels.size() - theirs.front());
  }
  labels.append(other.labels);
  if (!weights.empty() || !other.weights.empty()) {
    weights.resize(own_rows, 1.0F);
    weights.append(other.weights);
    weights.resize(own_rows + other.rows(), 1.0F);
  }
  if (!fields.empty() || !other.fields.empty()) {
    fields.resize(own_entries, Index(0));
    fields.append(other.fields);
    fields.resize(entries(), Index(0));
  }
  columns = std::max(columns, other.columns);
  least_index = std::min(least_index, other.least_index);
}

template struct RowView<std::uint32_t>;
template struct RowView<std::uint64_t>;
template struct RowBlock<std::uint32_t>;
template struct RowBlock<std::uint64_t>;

}  // namespace warren::data
