#include "data/cache/cache_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>

namespace warren::data::internal {
namespace {

/// The maximum number of elements of an array: more than any memory holds, and so small that no sum of sizes
/// in bytes overflows.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;

constexpr PerArray<const char*> kNames = {"offsets",       "indices", "values", "labels",
                                          "label offsets", "weights", "qids",   "fields"};

PerArray<std::uint64_t> ElementBytes(std::uint32_t index_bytes) {
  PerArray<std::uint64_t> bytes{};
  bytes[kOffsets] = bytes[kLabelOffsets] = bytes[kQids] = sizeof(std::uint64_t);
  bytes[kValues] = bytes[kLabels] = bytes[kWeights] = sizeof(float);
  bytes[kIndices] = bytes[kFields] = index_bytes;
  return bytes;
}

template <typename T>
std::span<const T> As(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

std::uint64_t Checksum(const void* bytes, std::size_t size) {
  return XXH3_64bits(bytes, size);
}

std::uint64_t ChecksumOf(const CacheHeader& header) {
  return Checksum(&header, offsetof(CacheHeader, checksum));
}

std::uint64_t ChecksumOf(const CacheFooter& footer) {
  return Checksum(&footer, offsetof(CacheFooter, checksum));
}

std::string FaultOf(const CachePageEntry& page, std::uint32_t index_bytes) {
  const PerArray<std::uint64_t>& counts = page.counts;
  for (std::size_t i = 0; i < kCacheArrays; ++i) {
    if (counts[i] > kMostElements) {
      return fmt::format("{} {}, expected at most {}", counts[i], kNames[i], kMostElements);
    }
  }
  if (counts[kOffsets] < 2) return fmt::format("{} offsets, expected 2 or more", counts[kOffsets]);
  const std::uint64_t rows = page.rows();
  const std::uint64_t entries = page.entries();
  const bool has_label_offsets = counts[kLabelOffsets] != 0;
  const PerArray<std::uint64_t> expected = {
      rows + 1, entries, entries, has_label_offsets ? counts[kLabels] : rows, rows + 1, rows, rows, entries};
  for (const CacheArray array : {kValues, kLabels, kLabelOffsets, kWeights, kQids, kFields}) {
    const bool may_lack = array != kValues && array != kLabels;
    if (counts[array] == expected[array] || (may_lack && counts[array] == 0)) continue;
    return fmt::format("{} {} in {} rows of {} entries, expected {}{}", counts[array], kNames[array], rows,
                       entries, expected[array], may_lack ? " or none" : "");
  }
  const std::uint64_t most = index_bytes == 4 ? std::numeric_limits<std::uint32_t>::max()
                                              : std::numeric_limits<std::uint64_t>::max();
  if (page.columns > most) return fmt::format("{} columns, expected at most {}", page.columns, most);
  if (page.least_index > most)
    return fmt::format("a smallest index of {}, expected at most {}", page.least_index, most);
  return {};
}

PageLayout LayoutOf(const PerArray<std::uint64_t>& counts, std::uint32_t index_bytes) {
  const PerArray<std::uint64_t> element_bytes = ElementBytes(index_bytes);
  PageLayout layout;
  for (std::size_t i = 0; i < kCacheArrays; ++i) {
    layout.begin[i] = layout.page_bytes;
    layout.bytes[i] = counts[i] * element_bytes[i];
    layout.page_bytes += AlignUp(layout.bytes[i]);
  }
  return layout;
}

PageCheck::PageCheck(const CachePageEntry& page, std::uint32_t index_bytes)
    : page_(page),
      index_bytes_(index_bytes),
      layout_(LayoutOf(page.counts, index_bytes)),
      state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void PageCheck::Add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  const std::uint64_t end = at_ + bytes.size();
  for (const CacheArray array : {kOffsets, kIndices, kLabelOffsets}) {
    const std::uint64_t array_end = layout_.begin[array] + layout_.bytes[array];
    const std::uint64_t from = std::max(at_, layout_.begin[array]);
    const std::uint64_t to = std::min(end, array_end);
    if (from < to) {
      LookAt(array, bytes.subspan(from - at_, to - from), from == layout_.begin[array], to == array_end);
    }
  }
  at_ = end;
}

std::uint64_t PageCheck::checksum() const {
  return XXH3_64bits_digest(state_.get());
}

void PageCheck::LookAt(CacheArray array, std::span<const std::byte> elements, bool first, bool last) {
  if (!fault_.empty()) return;
  if (array == kIndices && index_bytes_ == 4) return LookAtIndices(As<std::uint32_t>(elements));
  if (array == kIndices) return LookAtIndices(As<std::uint64_t>(elements));
  const std::uint64_t end = page_.counts[array == kOffsets ? kIndices : kLabels];
  LookAtOffsets(kNames[array], As<std::uint64_t>(elements), first, last, end);
}

void PageCheck::LookAtOffsets(const char* name, std::span<const std::uint64_t> offsets, bool first, bool last,
                              std::uint64_t end) {
  if (first && offsets.front() != 0) {
    fault_ = fmt::format("the {} begin with {}, expected 0", name, offsets.front());
    return;
  }
  // No early exit, so that the compiler vectorizes the loop.
  bool falls = !first && offsets.front() < previous_;
  for (std::size_t i = 1; i < offsets.size(); ++i) falls |= offsets[i] < offsets[i - 1];
  previous_ = offsets.back();
  if (falls) fault_ = fmt::format("the {} decrease, expected them to rise from 0 to {}", name, end);
  if (!falls && last && offsets.back() != end) {
    fault_ = fmt::format("the {} end with {}, expected {}", name, offsets.back(), end);
  }
}

template <typename Index>
void PageCheck::LookAtIndices(std::span<const Index> indices) {
  Index most = 0;
  for (const Index index : indices) most = std::max(most, index);
  if (most >= page_.columns)
    fault_ = fmt::format("an index of {}, expected one below the {} columns", most, page_.columns);
}

}  // namespace warren::data::internal
