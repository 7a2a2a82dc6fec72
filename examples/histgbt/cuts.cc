#include "examples/histgbt/cuts.h"

#include <rabit/rabit.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "examples/histgbt/value_index.h"

namespace warren::histgbt {
namespace {

/// The number of sampled values per bin. They are the candidates for cuts, so their number limits the
/// distance between a cut and its quantile.
constexpr std::size_t kCandidatesPerBin = 8;

/// Counts the values of all workers from each candidate up to the next; a collective call. The counts of all
/// features are concatenated.
std::vector<std::uint64_t> CountBetween(const data::RowView<std::uint32_t>& rows,
                                        const std::vector<std::vector<float>>& candidates,
                                        const std::vector<std::size_t>& offsets, Threads& threads) {
  ValueIndex index;
  for (const std::vector<float>& own : candidates) index.Add(own);
  std::vector<std::vector<std::uint64_t>> parts(static_cast<std::size_t>(threads.count()));
  threads.ForRanges(rows.rows(), 1024, [&](std::size_t begin, std::size_t end, int thread) {
    std::vector<std::uint64_t>& counts = parts[static_cast<std::size_t>(thread)];
    counts.resize(offsets.back());
    for (std::uint64_t e = rows.offsets[begin]; e < rows.offsets[end]; ++e) {
      float value = rows.values[e];
      if (!Usable(value)) continue;
      const std::uint32_t feature = rows.indices[e];
      // No value is below the first candidate.
      ++counts[offsets[feature] + index.CountUpTo(feature, value) - 1];
    }
  });
  std::vector<std::uint64_t> sum(offsets.back());
  for (const std::vector<std::uint64_t>& part : parts) {
    for (std::size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
  }
  rabit::Allreduce<rabit::op::Sum>(sum.data(), sum.size());
  return sum;
}

}  // namespace

std::vector<std::uint32_t> ChooseCuts(std::span<const std::uint64_t> counts, std::size_t most_bins) {
  std::vector<std::uint32_t> cuts;
  std::uint64_t left = 0;  // values not yet in a bin
  for (const std::uint64_t count : counts) left += count;
  std::size_t bins = most_bins;
  std::uint64_t in_bin = 0;
  for (std::size_t j = 0; j + 1 < counts.size() && bins > 1; ++j) {
    in_bin += counts[j];
    const bool enough_for_all = counts.size() - j <= bins;  // each remaining candidate can get its own bin
    const std::uint64_t fair = (left + bins - 1) / bins;
    // Bins are never empty. A heavy value does not share a bin with the few values before it, which would
    // then be indistinguishable from it.
    const bool next_is_heavy = counts[j + 1] >= fair;
    const bool next_is_too_much = in_bin + counts[j + 1] > 2 * fair - std::min(in_bin, fair);
    const bool is_full = in_bin >= fair || next_is_heavy || next_is_too_much || enough_for_all;
    if (in_bin == 0 || !is_full) continue;
    cuts.push_back(static_cast<std::uint32_t>(j + 1));
    left -= in_bin;
    in_bin = 0;
    --bins;
  }
  return cuts;
}

Cuts MakeCuts(const data::RowView<std::uint32_t>& rows, std::size_t max_bin, Threads& threads) {
  SketchOptions options;
  options.sample_size = kCandidatesPerBin * max_bin;
  options.most_distinct = max_bin;
  std::vector<FeatureSketch> sketches = SketchRows(rows, options, threads);
  MergeSketches(sketches, options);
  std::uint64_t total_rows = rows.rows();
  rabit::Allreduce<rabit::op::Sum>(&total_rows, 1);

  std::vector<std::vector<float>> candidates;
  std::vector<std::size_t> offsets = {0};
  Cuts cuts;
  for (const FeatureSketch& sketch : sketches) {
    candidates.push_back(sketch.Candidates());
    offsets.push_back(offsets.back() + candidates.back().size());
    cuts.has_missing.push_back(sketch.count() < total_rows ? 1 : 0);
  }
  sketches.clear();
  const std::vector<std::uint64_t> counts = CountBetween(rows, candidates, offsets, threads);
  for (std::size_t feature = 0; feature < candidates.size(); ++feature) {
    const std::span<const std::uint64_t> own(counts.data() + offsets[feature], candidates[feature].size());
    for (const std::uint32_t at :
         ChooseCuts(own, std::max<std::size_t>(2, max_bin - cuts.has_missing[feature]))) {
      cuts.values.push_back(candidates[feature][at]);
    }
    if (cuts.values.size() + candidates.size() > std::numeric_limits<std::uint32_t>::max()) {
      throw std::runtime_error("all features together have more than 2^32 bins: use a smaller max_bin");
    }
    cuts.offsets.push_back(static_cast<std::uint32_t>(cuts.values.size()));
  }
  return cuts;
}

}  // namespace warren::histgbt
