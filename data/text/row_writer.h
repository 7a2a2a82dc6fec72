// Appends rows to a block, and can discard a row that turns out to be bad. Internal to data/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "data/row_block.h"

namespace warren::data::internal {

/// Call Begin, then add the parts of the row, then call End. Calling Begin instead discards everything added
/// since the last End.
template <typename Index>
class RowWriter {
 public:
  explicit RowWriter(RowBlock<Index>& block) : block_(block) {
    if (block_.offsets.empty()) block_.offsets.push_back(0);
  }

  void Begin() {
    rows_ = block_.rows();
    block_.indices.resize(block_.offsets.back());
    block_.values.resize(block_.offsets.back());
    if (!block_.fields.empty()) block_.fields.resize(block_.offsets.back());
    block_.labels.resize(block_.label_offsets.empty() ? rows_ : block_.label_offsets.back());
    if (block_.weights.size() > rows_) block_.weights.resize(rows_);
    if (block_.qids.size() > rows_) block_.qids.resize(rows_);
    columns_ = block_.columns;
    least_index_ = block_.least_index;
  }
  void AddLabel(float label) { block_.labels.push_back(label); }
  void SetWeight(float weight) {
    block_.weights.resize(rows_, 1.0F);
    block_.weights.push_back(weight);
  }
  /// True for the first row of the block, and if earlier rows have query ids.
  bool MayHaveQid() const { return rows_ == 0 || !block_.qids.empty(); }
  bool MustHaveQid() const { return rows_ > 0 && !block_.qids.empty(); }
  void SetQid(std::uint64_t qid) { block_.qids.push_back(qid); }
  void AddEntry(Index index, float value) {
    block_.indices.push_back(index);
    block_.values.push_back(value);
    columns_ = std::max<std::uint64_t>(columns_, std::uint64_t{index} + 1);
    least_index_ = std::min(least_index_, index);
  }
  void AddEntry(Index field, Index index, float value) {
    block_.fields.push_back(field);
    AddEntry(index, value);
  }
  void End() {
    const std::size_t labels_before = block_.label_offsets.empty() ? rows_ : block_.label_offsets.back();
    const std::size_t labels = block_.labels.size() - labels_before;
    if (block_.label_offsets.empty() && labels != 1) {
      block_.label_offsets.resize(rows_ + 1);
      for (std::size_t i = 0; i <= rows_; ++i) block_.label_offsets[i] = i;
    }
    if (!block_.label_offsets.empty()) block_.label_offsets.push_back(block_.labels.size());
    if (!block_.weights.empty()) block_.weights.resize(rows_ + 1, 1.0F);
    block_.offsets.push_back(block_.indices.size());
    block_.columns = columns_;
    block_.least_index = least_index_;
  }

 private:
  RowBlock<Index>& block_;
  std::size_t rows_ = 0;
  std::uint64_t columns_ = 0;
  Index least_index_ = 0;
};

}  // namespace warren::data::internal
