#include "data/array.h"

#include <sys/mman.h>

namespace warren::data::internal {
namespace {

// Arrays of at least this size are mapped instead of allocated with malloc, so that growing them copies
// nothing.
constexpr std::size_t kMappedBytes = std::size_t{4} << 20;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

std::size_t MappedSize(std::size_t bytes) {
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

/// Maps memory that begins at a huge page boundary; otherwise the system could not use huge pages for the
/// beginning and end of the mapping.
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
  // The mapping grows in place if the addresses after it are free; otherwise its pages move to an aligned
  // address.
  const std::size_t old_size = MappedSize(old_bytes);
  const std::size_t new_size = MappedSize(new_bytes);
  if (mremap(old, old_size, new_size, 0) != MAP_FAILED) {
    madvise(old, new_size, MADV_HUGEPAGE);
    return old;
  }
  // One call moves and grows the mapping. Pages moved into a part of a larger mapping would remain a separate
  // mapping, so the next mremap would span two mappings; Linux before 6.17 rejects that, after it has
  // unmapped `memory`.
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
