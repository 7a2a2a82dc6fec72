// The cuts that divide each feature's values into bins; identical on all workers and for any number of
// workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/row_block.h"
#include "examples/histgbt/sketch.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// Bin b of a feature holds the values v with cuts[b - 1] <= v < cuts[b], where `cuts` are the feature's
/// cuts; bin 0 holds all values below the first cut, the last bin all values from the last cut on.
struct Cuts {
  std::vector<std::uint32_t> offsets = {0};  ///< each feature's first position in `values`, then the end
  std::vector<float> values;                 ///< ascending within a feature
  std::vector<std::uint8_t> has_missing;  ///< one per feature: 1 if some row of any worker lacks the feature

  std::size_t features() const { return offsets.size() - 1; }
  std::span<const float> Of(std::size_t feature) const {
    return {values.data() + offsets[feature], values.data() + offsets[feature + 1]};
  }
  std::uint32_t Bins(std::size_t feature) const { return offsets[feature + 1] - offsets[feature] + 1; }
  /// The number of a feature's first bin when the bins of all features are numbered consecutively.
  std::uint32_t FirstBin(std::size_t feature) const {
    return offsets[feature] + static_cast<std::uint32_t>(feature);
  }
  std::uint32_t TotalBins() const { return FirstBin(features()); }
};

/// Chooses cuts among the candidates, so that there are at most `most_bins` bins with about equal numbers of
/// rows. counts[j] is the number of values v with candidates[j] <= v < candidates[j + 1]. Returns the indices
/// of the cuts in `candidates`.
std::vector<std::uint32_t> ChooseCuts(std::span<const std::uint64_t> counts, std::size_t most_bins);

/// Makes the cuts from the rows of all workers, ignoring weights; a collective call. A feature has at most
/// `max_bin` bins, which must be at least 2. If some rows lack the feature, the limit is one lower, to
/// reserve a bin for missing values, but never below 2.
Cuts MakeCuts(const data::RowView<std::uint32_t>& rows, std::size_t max_bin, Threads& threads);

}  // namespace warren::histgbt
