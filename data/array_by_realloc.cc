// Reallocate and Free for systems other than Linux: the C library's realloc grows memory, and copies it if
// necessary.
#include <cstdlib>
#include <new>

#include "data/array.h"

namespace warren::data::internal {

void* Reallocate(void* old, std::size_t /*old_bytes*/, std::size_t new_bytes) {
  void* memory = std::realloc(old, new_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void Free(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

}  // namespace warren::data::internal
