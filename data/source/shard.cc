#include "data/source/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "data/error.h"

namespace warren::data {
namespace {

using Wide = unsigned __int128;

/// Returns the position in the concatenated inputs at which part `index` of `count` begins, as in dmlc-core.
std::uint64_t CutAt(std::uint64_t total, int index, int count) {
  const std::uint64_t step =
      total / static_cast<unsigned>(count) + (total % static_cast<unsigned>(count) > 0 ? 1 : 0);
  return static_cast<std::uint64_t>(std::min<Wide>(Wide{step} * static_cast<unsigned>(index), total));
}

/// Converts a cut to a position in the file that begins at `begin`. As in dmlc-core, a row that begins
/// exactly at the cut belongs to the part before the cut.
std::uint64_t PlaceOf(std::uint64_t cut, std::uint64_t begin, std::uint64_t size) {
  if (cut <= begin) return 0;
  return cut - begin >= size ? size : cut - begin + 1;
}

}  // namespace

std::vector<Range> Cut(std::span<const Input> inputs, Share share) {
  if (share.index < 0 || share.index >= share.count) {
    throw DataError(fmt::format("part {} of {} cannot be read: expected 1 part or more, counted from 0",
                                share.index, share.count));
  }
  std::uint64_t total = 0;
  for (const Input& input : inputs) total += input.size;
  const std::uint64_t from = CutAt(total, share.index, share.count);
  const std::uint64_t to = CutAt(total, share.index + 1, share.count);
  std::vector<Range> ranges;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < inputs.size(); begin += inputs[i++].size) {
    const std::uint64_t size = inputs[i].size;
    if (inputs[i].divisible) {
      const std::uint64_t first = PlaceOf(from, begin, size);
      const std::uint64_t last = PlaceOf(to, begin, size);
      if (first < last) ranges.push_back({i, first, last});
    } else if (size == 0 ? share.index == 0 : from <= begin && begin < to) {
      ranges.push_back({i, 0, size});
    }
  }
  return ranges;
}

std::vector<Range> CutIntoPieces(std::span<const Input> inputs, std::span<const Range> ranges,
                                 std::uint64_t piece_bytes) {
  std::vector<Range> pieces;
  for (const Range& range : ranges) {
    if (!inputs[range.input].divisible) {
      pieces.push_back(range);
      continue;
    }
    for (std::uint64_t begin = range.begin; begin < range.end;) {
      const std::uint64_t end = range.end - begin <= piece_bytes ? range.end : begin + piece_bytes;
      pieces.push_back({range.input, begin, end});
      begin = end;
    }
  }
  return pieces;
}

// The order of std::shuffle depends on the library, so this is a Fisher-Yates shuffle with a generator that
// the standard defines.
void Shuffle(std::vector<Range>& pieces, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = pieces.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(static_cast<Wide>(random()) * i >> 64);
    std::swap(pieces[i - 1], pieces[other]);
  }
}

}  // namespace warren::data
