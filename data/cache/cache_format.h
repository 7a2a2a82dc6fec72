// The bytes of a cache file, as docs/reference/data-cache.md shows them, and what makes a page sound. Inside
// of data/ only.
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
/// Reads differently on a machine with the other byte order.
inline constexpr std::uint32_t kByteOrderMark = 0x01020304;

/// The arrays of a page, in the order of the file.
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
  std::uint64_t identity_checksum = 0;  ///< of the identity and the zeros behind it
  std::array<std::uint64_t, 2> zeros{};
  std::uint64_t checksum = 0;  ///< of the 56 bytes before
};
static_assert(sizeof(CacheHeader) == kCacheAlignment);

/// One of the table.
struct CachePageEntry {
  std::uint64_t offset = 0;  ///< in bytes from the beginning of the file
  std::uint64_t bytes = 0;
  std::uint64_t columns = 0;
  std::uint64_t least_index = 0;
  PerArray<std::uint64_t> counts{};  ///< of the elements of each array
  std::uint64_t checksum = 0;        ///< of the page, all of its bytes

  std::uint64_t rows() const { return counts[kOffsets] - 1; }
  std::uint64_t entries() const { return counts[kIndices]; }
};
static_assert(sizeof(CachePageEntry) == 104);

struct CacheFooter {
  std::uint64_t table_offset = 0;
  std::uint64_t pages = 0;
  std::uint64_t table_checksum = 0;
  std::uint64_t checksum = 0;  ///< of the 24 bytes before
  std::array<char, 8> magic = kCacheEndMagic;
};
static_assert(sizeof(CacheFooter) == 40);

/// Where the arrays of a page are, in bytes from its beginning.
struct PageLayout {
  PerArray<std::uint64_t> begin{};
  PerArray<std::uint64_t> bytes{};
  std::uint64_t page_bytes = 0;
};

inline constexpr std::uint64_t AlignUp(std::uint64_t bytes) {
  return (bytes + kCacheAlignment - 1) / kCacheAlignment * kCacheAlignment;
}

/// XXH3, 64 bits, without a seed.
std::uint64_t Checksum(const void* bytes, std::size_t size);
std::uint64_t ChecksumOf(const CacheHeader& header);
std::uint64_t ChecksumOf(const CacheFooter& footer);

/// Why no page is like this, by its sizes; empty when one may be.
std::string FaultOf(const CachePageEntry& page, std::uint32_t index_bytes);

/// For sizes without a fault; nothing overflows then.
PageLayout LayoutOf(const PerArray<std::uint64_t>& counts, std::uint32_t index_bytes);

/// Looks at the bytes of a page as they go by, from the first to the last: offsets must rise from 0 to the
/// number of what they point into, and indices stay below the number of columns, so that no row reaches
/// outside. Takes the checksum on the way.
class PageCheck {
 public:
  PageCheck(const CachePageEntry& page, std::uint32_t index_bytes);

  /// The next ones; they end with an element of an array, not inside of one.
  void Add(std::span<const std::byte> bytes);
  /// What was wrong first; empty when nothing was.
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
  std::uint64_t at_ = 0;        ///< bytes that went by
  std::uint64_t previous_ = 0;  ///< the offset before
  std::string fault_;
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace warren::data::internal
