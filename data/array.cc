#include "data/array.h"

#include <sys/mman.h>

namespace warren::data::internal {
namespace {

// From here on memory is mapped instead of allocated: growing it costs no copy.
constexpr std::size_t kMappedBytes = std::size_t{4} << 20;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

std::size_t MappedSize(std::size_t bytes) {
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

/// Begins at a multiple of the huge page's size, or the system would not use one at the ends.
void* Map(std::size_t bytes) {
  const std::size_t size = MappedSize(bytes);
  void* region = mmap(nullptr, size + kHugePageBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<char*>(region);
  const std::size_t head =
      (kHugePageBytes - reinterpret_cast<std::size_t>(begin) % kHugePageBytes) % kHugePageBytes;
  if (head > 0) munmap(begin, head);
  munmap(begin + head + size, kHugePageBytes - head);
  madvise(begin + head, size, MADV_HUGEPAGE);
  return begin + head;
}

}  // namespace

void* Reallocate(void* old, std::size_t old_bytes, std::size_t new_bytes) {
  if (new_bytes < kMappedBytes) {
    void* memory = std::realloc(old, new_bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  if (old_bytes < kMappedBytes) {
    void* memory = Map(new_bytes);
    if (old_bytes > 0) std::memcpy(memory, old, old_bytes);
    std::free(old);
    return memory;
  }
  // Where there is room behind it, it grows in place. Else pages are moved to a place with the right
  // beginning.
  const std::size_t old_size = MappedSize(old_bytes);
  const std::size_t new_size = MappedSize(new_bytes);
  if (mremap(old, old_size, new_size, 0) != MAP_FAILED) {
    madvise(old, new_size, MADV_HUGEPAGE);
    return old;
  }
  // Moved and grown in one call: what is moved into a part of a larger mapping stays a mapping of its own,
  // and the next call would be for two of them, which systems before Linux 6.17 refuse, with `memory`
  // unmapped.
  void* memory = Map(new_bytes);
  if (mremap(old, old_size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED, memory) == MAP_FAILED)
    throw std::bad_alloc();
  return memory;
}

void Free(void* memory, std::size_t bytes) noexcept {
  if (bytes < kMappedBytes) {
    std::free(memory);
  } else {
    munmap(memory, MappedSize(bytes));
  }
}

}  // namespace warren::data::internal
