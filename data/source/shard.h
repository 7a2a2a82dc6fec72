// Which bytes are whose. Pure: sizes in, ranges out. The contract is that of dmlc-core's InputSplit: parts
// are disjoint and together complete, and each can be told without the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/share.h"
#include "data/source/inputs.h"

namespace warren::data {

/// The rows of one input that begin at a byte from `begin` up to, not including, `end`.
struct Range {
  std::size_t input = 0;  ///< its place in the list
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< for an input that is not divisible: all of it, whatever this says

  bool operator==(const Range&) const = default;
};

/// The ranges of one part, in the order of the inputs. All inputs are laid end to end and cut into equal
/// parts, right where dmlc-core cuts them, so that a worker has the rows it had with XGBoost's own reader. An
/// input that cannot be divided goes to the part in which it begins. Streams of unknown length go to part 0.
/// Throws DataError for a share that is none.
std::vector<Range> Cut(std::span<const Input> inputs, Share share);

/// Divides ranges into pieces of about `piece_bytes` (at least 1), which are ranges themselves. What is not
/// divisible stays whole.
std::vector<Range> CutIntoPieces(std::span<const Input> inputs, std::span<const Range> ranges,
                                 std::uint64_t piece_bytes);

/// Brings them into an order that only `seed` and their number decide, the same on every machine.
void Shuffle(std::vector<Range>& pieces, std::uint64_t seed);

}  // namespace warren::data
