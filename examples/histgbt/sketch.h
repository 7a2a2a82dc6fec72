// What the workers agree on about each feature before bins are made: a sketch of its values that depends on
// the rows alone, not on their order or who has them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "data/row_block.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// A value of one feature as everything here has it: none when it is missing (NaN), infinite ones as the
/// greatest finite, no negative zero.
inline bool Usable(float& value) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!(value <= kMost)) {
    if (std::isnan(value)) return false;
    value = kMost;
  }
  value = (value < -kMost ? -kMost : value) + 0.0F;
  return true;
}

/// Of a feature: how many values there are, the least, all distinct ones while they are few, and a sample.
///
/// The sample is that of the `sample_size` rows whose hash is least (a bottom-k sample, Cohen and Kaplan,
/// 2007), the hash being one of all that is in the row. So two sketches merge into what one over all rows
/// would be.
class FeatureSketch {
 public:
  void Add(std::uint64_t row_hash, float value, std::size_t sample_size, std::size_t most_distinct) {
    ++count_;
    if (value < least_) least_ = value;
    if (row_hash <= threshold_) AddToSample(row_hash, value, sample_size);
    if (!too_many_) AddToDistinct(value, most_distinct);
  }
  void Merge(const FeatureSketch& other, std::size_t sample_size, std::size_t most_distinct);
  /// Brings it into the one form that equal sketches have.
  void Settle(std::size_t sample_size);

  std::uint64_t count() const { return count_; }
  /// After Settle: how many rows are in the sample.
  std::size_t sample_rows() const { return sample_.size(); }
  /// After Settle: values from which bins may begin, ascending, each once, the least of all first; empty when
  /// there are no values. All distinct ones where they are few.
  std::vector<float> Candidates() const;

  /// Bytes to send to other workers; of a settled sketch.
  std::size_t EncodedBytes() const;
  void Encode(std::vector<char>& bytes) const;
  /// Moves `at` behind the sketch.
  static FeatureSketch Decode(const char*& at);

 private:
  struct Sampled {
    std::uint64_t hash;
    float value;
    bool operator==(const Sampled&) const = default;
  };

  void AddToSample(std::uint64_t hash, float value, std::size_t sample_size);
  void AddToDistinct(float value, std::size_t most_distinct);

  std::uint64_t count_ = 0;
  float least_ = std::numeric_limits<float>::max();
  std::uint64_t threshold_ = std::numeric_limits<std::uint64_t>::max();  ///< of hashes that can still matter
  std::vector<Sampled> sample_;  ///< twice the size at most; repeats are possible until it is settled
  std::vector<float> distinct_;  ///< ascending
  bool too_many_ = false;        ///< distinct ones; then none are kept
};

struct SketchOptions {
  std::size_t sample_size = 2048;
  std::size_t most_distinct = 256;
};

/// One for each column of the block.
std::vector<FeatureSketch> SketchRows(const data::RowView<std::uint32_t>& rows, const SketchOptions& options,
                                      Threads& threads);

/// Replaces the sketches by those of all workers' rows together. A collective call.
void MergeSketches(std::vector<FeatureSketch>& sketches, const SketchOptions& options);

}  // namespace warren::histgbt
