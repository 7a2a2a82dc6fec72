// Divides the bytes of the inputs among the parts, using only the sizes of the inputs. As with dmlc-core's
// InputSplit, parts are disjoint and together complete, and each can be computed independently of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/share.h"
#include "data/source/inputs.h"

namespace warren::data {

/// The rows of one input that begin at a byte from `begin` up to, but not including, `end`.
struct Range {
  std::size_t input = 0;  ///< index in the list of inputs
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< the input's size if it is not divisible; such an input is read completely

  bool operator==(const Range&) const = default;
};

/// Returns the ranges of one part, in input order. All inputs are concatenated and cut into equal parts,
/// exactly where dmlc-core cuts them, so that a worker gets the same rows as with XGBoost's own reader. An
/// input that is not divisible belongs to the part in which it begins, or to part 0 if its length is unknown.
/// Throws DataError if the share is invalid.
std::vector<Range> Cut(std::span<const Input> inputs, Share share);

/// Divides ranges into pieces, which are ranges themselves, of `piece_bytes` bytes (at least 1); the last
/// piece of a range may be shorter. Ranges of non-divisible inputs stay whole.
std::vector<Range> CutIntoPieces(std::span<const Input> inputs, std::span<const Range> ranges,
                                 std::uint64_t piece_bytes);

/// Shuffles the pieces into an order that depends only on `seed` and their number, the same on every machine.
void Shuffle(std::vector<Range>& pieces, std::uint64_t seed);

}  // namespace warren::data
