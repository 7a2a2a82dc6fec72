// The format of a cache file, described in docs/reference/data-cache.md, and the validation of pages.
// Internal to data/.
#pragma once

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace warren::data::internal {

/// Pages, and the arrays in them, begin at multiples of this many bytes.
inline constexpr std::uint64_t kCacheAlignment = 64;
inline constexpr std::array<char, 8> kCacheMagic = {'w', 'a', 'r', 'r', 'e', 'n', 'R', 'B'};
inline constexpr std::array<char, 8> kCacheEndMagic = {'B', 'R', 'n', 'e', 'r', 'r', 'a', 'w'};
inline constexpr std::uint32_t kCacheVersion = 1;
/// Has a different value when read on a machine with the opposite byte order.
inline constexpr std::uint32_t kByteOrderMark = 0x01020304;

/// The arrays of a page, in file order.
enum CacheArray : std::uint8_t {
  kOffsets,
  kIndices,
  kValues,
  kLabels,
  kLabelOffsets,
  kWeights,
  kQids,
  kFields,
  kCacheArrays
};

template <typename T>
using PerArray = std::array<T, kCacheArrays>;

struct CacheHeader {
  std::array<char, 8> magic = kCacheMagic;
  std::uint32_t version = kCacheVersion;
  std::uint32_t byte_order = kByteOrderMark;
  std::uint32_t index_bytes = 0;
  std::uint32_t zero = 0;
  std::uint64_t identity_bytes = 0;
  std::uint64_t identity_checksum = 0;  ///< covers the identity and the zeros after it
  std::array<std::uint64_t, 2> zeros{};
  std::uint64_t checksum = 0;  ///< covers the preceding 56 bytes
};
static_assert(sizeof(CacheHeader) == kCacheAlignment);

/// An entry of the table of pages.
struct CachePageEntry {
  std::uint64_t offset = 0;  ///< in bytes from the beginning of the file
  std::uint64_t bytes = 0;
  std::uint64_t columns = 0;
  std::uint64_t least_index = 0;
  PerArray<std::uint64_t> counts{};  ///< number of elements of each array
  std::uint64_t checksum = 0;        ///< covers all bytes of the page

  std::uint64_t rows() const { return counts[kOffsets] - 1; }
  std::uint64_t entries() const { return counts[kIndices]; }
};
static_assert(sizeof(CachePageEntry) == 104);

struct CacheFooter {
  std::uint64_t table_offset = 0;
  std::uint64_t pages = 0;
  std::uint64_t table_checksum = 0;
  std::uint64_t checksum = 0;  ///< covers the preceding 24 bytes
  std::array<char, 8> magic = kCacheEndMagic;
};
static_assert(sizeof(CacheFooter) == 40);

/// The offsets of a page's arrays from the beginning of the page, and their sizes, all in bytes.
struct PageLayout {
  PerArray<std::uint64_t> begin{};
  PerArray<std::uint64_t> bytes{};
  std::uint64_t page_bytes = 0;
};

inline constexpr std::uint64_t AlignUp(std::uint64_t bytes) {
  return (bytes + kCacheAlignment - 1) / kCacheAlignment * kCacheAlignment;
}

/// Returns the 64-bit XXH3 hash without a seed.
std::uint64_t Checksum(const void* bytes, std::size_t size);
std::uint64_t ChecksumOf(const CacheHeader& header);
std::uint64_t ChecksumOf(const CacheFooter& footer);

/// Returns a description of the entry's first invalid size, number of columns or least index; empty if all
/// are valid.
std::string FaultOf(const CachePageEntry& page, std::uint32_t index_bytes);

/// The sizes must be valid (FaultOf); otherwise the sums could overflow.
PageLayout LayoutOf(const PerArray<std::uint64_t>& counts, std::uint32_t index_bytes);

/// Checks a page from its first byte to its last: offsets must begin at 0, never decrease, and end at the
/// size of the array they point into, and indices must be less than the number of columns, so that rows refer
/// only to data of the page. Also computes the checksum.
class PageCheck {
 public:
  PageCheck(const CachePageEntry& page, std::uint32_t index_bytes);

  /// Checks the next bytes, which must not end inside an element.
  void Add(std::span<const std::byte> bytes);
  /// The first fault found; empty if the bytes so far are valid.
  const std::string& fault() const { return fault_; }
  std::uint64_t checksum() const;

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };

  void LookAt(CacheArray array, std::span<const std::byte> elements, bool first, bool last);
  void LookAtOffsets(const char* name, std::span<const std::uint64_t> offsets, bool first, bool last,
                     std::uint64_t end);
  template <typename Index>
  void LookAtIndices(std::span<const Index> indices);

  const CachePageEntry page_;
  const std::uint32_t index_bytes_;
  const PageLayout layout_;
  std::uint64_t at_ = 0;        ///< number of bytes checked
  std::uint64_t previous_ = 0;  ///< the previous offset
  std::string fault_;
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace warren::data::internal
