// Sketches of each feature's values, on which the workers agree before bins are made. They depend on the rows
// only, not on their order or their division among workers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "data/row_block.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// Normalizes a feature's value; returns false if it is missing (NaN). Infinities become the greatest finite
/// value of their sign, and negative zero becomes zero.
inline bool Usable(float& value) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!(value <= kMost)) {
    if (std::isnan(value)) return false;
    value = kMost;
  }
  value = (value < -kMost ? -kMost : value) + 0.0F;
  return true;
}

/// A sketch of one feature: the number of values, the least value, all distinct values if there are few, and
/// a sample.
///
/// The sample has the values of the `sample_size` rows with the smallest hashes (a bottom-k sample, Cohen and
/// Kaplan, 2007). The hash covers a row's entries and its label; rows in which these are equal count as one.
/// Merging two sketches therefore gives the sketch of all their rows.
class FeatureSketch {
 public:
  void Add(std::uint64_t row_hash, float value, std::size_t sample_size, std::size_t most_distinct) {
    ++count_;
    if (value < least_) least_ = value;
    if (row_hash <= threshold_) AddToSample(row_hash, value, sample_size);
    if (!too_many_) AddToDistinct(value, most_distinct);
  }
  void Merge(const FeatureSketch& other, std::size_t sample_size, std::size_t most_distinct);
  /// Brings the sketch into a canonical form, which depends only on the rows added.
  void Settle(std::size_t sample_size);

  std::uint64_t count() const { return count_; }
  /// Number of different rows in the sample; valid after Settle.
  std::size_t sample_rows() const { return sample_.size(); }
  /// Returns the values at which bins may begin, ascending and distinct, with the least of all values first;
  /// empty if there are no values. If there are few distinct values, returns all of them. Valid after Settle.
  std::vector<float> Candidates() const;

  /// Serialization for other workers; valid after Settle.
  std::size_t EncodedBytes() const { return EncodedBytes(sample_.size(), distinct_.size()); }
  static std::size_t EncodedBytes(std::size_t sampled_rows, std::size_t distinct_values);
  void Encode(std::vector<char>& bytes) const;
  /// Returns the sketch encoded at `at`, and moves `at` past it. Throws std::runtime_error if it does not end
  /// before `end`.
  static FeatureSketch Decode(const char*& at, const char* end);

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
  /// Rows with greater hashes can no longer be in the sample.
  std::uint64_t threshold_ = std::numeric_limits<std::uint64_t>::max();
  /// At most twice the sample size; may contain duplicates until Settle.
  std::vector<Sampled> sample_;
  std::vector<float> distinct_;  ///< ascending
  bool too_many_ = false;        ///< too many distinct values; distinct_ is then empty
};

struct SketchOptions {
  std::size_t sample_size = 2048;
  std::size_t most_distinct = 256;
};

/// Returns one sketch for each column of the block.
std::vector<FeatureSketch> SketchRows(const data::RowView<std::uint32_t>& rows, const SketchOptions& options,
                                      Threads& threads);

/// Replaces each sketch with the sketch of all workers' rows. A collective call.
void MergeSketches(std::vector<FeatureSketch>& sketches, const SketchOptions& options);

}  // namespace warren::histgbt
