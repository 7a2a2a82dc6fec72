// Where a feature's values are cut into bins, the same on all workers and for any number of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/row_block.h"
#include "examples/histgbt/sketch.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// Bin b of a feature holds the values v with values[b - 1] <= v < values[b], of its own cuts; bin 0 all
/// below the first cut, the last bin all from the last cut on.
struct Cuts {
  std::vector<std::uint32_t> offsets = {0};  ///< features + 1; where a feature's cuts begin in `values`
  std::vector<float> values;                 ///< ascending within a feature
  std::vector<std::uint8_t> has_missing;     ///< one a feature: some row of some worker lacks it

  std::size_t features() const { return offsets.size() - 1; }
  std::span<const float> Of(std::size_t feature) const {
    return {values.data() + offsets[feature], values.data() + offsets[feature + 1]};
  }
  std::uint32_t Bins(std::size_t feature) const { return offsets[feature + 1] - offsets[feature] + 1; }
  /// Where a feature's bins begin when all features' bins are laid end to end.
  std::uint32_t FirstBin(std::size_t feature) const {
    return offsets[feature] + static_cast<std::uint32_t>(feature);
  }
  std::uint32_t TotalBins() const { return FirstBin(features()); }
};

/// At most `most_bins` bins of about equal numbers of rows, whose cuts are among the candidates. counts[j]:
/// how many values v have candidates[j] <= v < candidates[j + 1]. Returns the places of the cuts in
/// `candidates`.
std::vector<std::uint32_t> ChooseCuts(std::span<const std::uint64_t> counts, std::size_t most_bins);

/// Of this worker's rows; a collective call. `max_bin` is at least 2; a feature that some rows lack has one
/// bin less, so that its missing values fit, too, but 2 at least. Weights do not count.
Cuts MakeCuts(const data::RowView<std::uint32_t>& rows, std::size_t max_bin, Threads& threads);

}  // namespace warren::histgbt
