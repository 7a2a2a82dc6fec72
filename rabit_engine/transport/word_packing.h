// A lossless code for arrays of 8-byte words in which many words are zero or have zeros in their low bytes.
// Histograms of gradient boosting are such arrays: bins without rows are zero, and counts and sums of a few
// floats, stored as doubles, have zero low bytes. Packing and unpacking a word takes 1 to 4 ns in total
// (bench/results/packing.md).
//
// Words are coded in blocks of 64; the last block may be shorter. A block consists of
//
// - 8 bytes: a mask in which the bits of nonzero words are set; the lowest bit is the first word's;
// - half a byte for each nonzero word: the number of its bytes without the low zero bytes, minus one. Two
//   words share a byte, the first of them in the low half;
// - 1 to 8 bytes for each nonzero word: its bytes without the low zero bytes, the lowest byte first.
//
// If the length of the data is not a multiple of 8, the remaining bytes follow unchanged.
#pragma once

#include <cstddef>
#include <span>

namespace warren {

/// The size of the buffer that PackWords needs for `bytes` bytes of data: the maximum length of the code,
/// plus the bytes that the last store may write after it.
std::size_t PackingCapacity(std::size_t bytes);

/// The number of bytes after the code that UnpackWords may read. Their values do not affect its result.
inline constexpr std::size_t kUnpackSlack = 64 * 8 + 64 / 2;

/// Writes the code of `data` to `code` and returns its length.
std::size_t PackWords(std::span<const std::byte> data, std::byte* code);

/// Unpacks `code` into `data`. kUnpackSlack bytes after the code must be readable. Returns false if the
/// code does not decode to exactly this length; the contents of `data` are then unspecified.
bool UnpackWords(std::span<const std::byte> code, std::span<std::byte> data);

/// Estimates the length of the code from a sample of the words. Returns it as a share of the length of
/// `data`; the share may exceed 1.
double EstimatePackedShare(std::span<const std::byte> data);

}  // namespace warren
