// Splits vectors into chunks, which limit the data in flight, and into one slice per member. Boundaries are
// computed in elements, so no element is ever split.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace warren::collective {

/// Elements [begin, end) of a vector. An element is one byte in collectives that do not reduce.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
};

/// The number of elements in a chunk of at most `chunk_bytes`; one if an element is larger.
inline std::size_t ElementsPerChunk(std::size_t chunk_bytes, std::size_t element_bytes) {
  return std::max<std::size_t>(1, chunk_bytes / element_bytes);
}

/// The number of chunks of `count` elements. At least one, which is empty if `count` is 0, so that members
/// that disagree about the count still exchange messages and detect it.
inline std::size_t NumChunks(std::size_t count, std::size_t per_chunk) {
  return count == 0 ? 1 : (count - 1) / per_chunk + 1;
}

/// Chunk `index` of a range; empty if the range ends before this chunk.
inline Range Chunk(Range whole, std::size_t per_chunk, std::size_t index) {
  const std::size_t begin = whole.begin + std::min(whole.size(), index * per_chunk);
  return {begin, begin + std::min(whole.end - begin, per_chunk)};
}

inline Range Slice(std::span<const std::size_t> offsets, int member) {
  return {offsets[member], offsets[member + 1]};
}

/// The length of the longest slice.
inline std::size_t LongestSlice(std::span<const std::size_t> offsets) {
  std::size_t longest = 0;
  for (std::size_t i = 1; i < offsets.size(); ++i) longest = std::max(longest, offsets[i] - offsets[i - 1]);
  return longest;
}

/// Offsets of `members` slices whose lengths differ by at most one element.
inline std::vector<std::size_t> EvenOffsets(std::size_t count, int members) {
  const std::size_t each = count / members;
  const std::size_t longer = count % members;
  std::vector<std::size_t> offsets(members + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * each + std::min(i, longer);
  return offsets;
}

/// Converts offsets in elements to offsets in bytes.
inline std::vector<std::size_t> InBytes(std::span<const std::size_t> offsets, std::size_t element_bytes) {
  std::vector<std::size_t> bytes(offsets.begin(), offsets.end());
  for (std::size_t& offset : bytes) offset *= element_bytes;
  return bytes;
}

}  // namespace warren::collective
