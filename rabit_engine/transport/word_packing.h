// A lossless code for arrays of 8-byte words, many of which are zero or end in zero bytes. Histograms of
// gradient boosting are such arrays: bins without rows are zero, and sums of a few floats, or counts, in
// doubles have zeros in their low bytes. A word is packed and unpacked in 2 to 4 ns
// (bench/results/packing.md).
//
// The words are coded in blocks of 64. A block consists of
//
// - 8 bytes: a bit for each word that is not zero, the first word in the lowest bit;
// - half a byte for each of those words: the number of its bytes without the low zero bytes, minus one. Two
//   words share a byte, the first one in its low half;
// - 1 to 8 bytes for each of those words: its bytes without the low zero bytes, the lowest byte first.
//
// An incomplete word at the end follows as it is.
#pragma once

#include <cstddef>
#include <span>

namespace warren {

/// The bytes that must be writable for PackWords(data): the longest code, and what the last store may write
/// behind it.
std::size_t PackingCapacity(std::size_t bytes);

/// The number of bytes behind the code that UnpackWords may read. Their values do not change its result.
inline constexpr std::size_t kUnpackSlack = 64 * 8 + 64 / 2;

/// Writes the code of `data` to `code` and returns its length.
std::size_t PackWords(std::span<const std::byte> data, std::byte* code);

/// Writes the data with this code to `data`. kUnpackSlack bytes after the code must be readable. Returns
/// false if the code is not one of data of this length; `data` then has any content.
bool UnpackWords(std::span<const std::byte> code, std::span<std::byte> data);

/// Estimates the length of the code as a share of the length of `data`, from a sample of
/// its words.
double EstimatePackedShare(std::span<const std::byte> data);

}  // namespace warren
