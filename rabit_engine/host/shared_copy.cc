#include "rabit_engine/host/shared_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rabit_engine/host/host_segment.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#endif

namespace warren {

#if defined(__x86_64__)
namespace {

/// A copy that fits the store buffer gains nothing from the string copy.
constexpr std::size_t kLeastBytes = std::size_t{2} << 10;

/// Whether the processor has "enhanced rep movsb", without which the string copy is slow.
bool HasStringCopy() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kErms = 1U << 9;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kErms) != 0;
}

}  // namespace

void CopyToShared(void* to, const void* from, std::size_t bytes) {
  static const bool has_string_copy = HasStringCopy();
  if (bytes < kLeastBytes || !has_string_copy) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  // The string copy overwrites whole lines only if it starts at the beginning of one.
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % kCacheLine;
  std::memcpy(to, from, head);
  to = static_cast<std::byte*>(to) + head;
  from = static_cast<const std::byte*>(from) + head;
  bytes -= head;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

void CopyPastCaches(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const std::size_t head =
      std::min<std::size_t>(bytes, -reinterpret_cast<std::uintptr_t>(target) % kCacheLine);
  std::memcpy(target, source, head);
  std::size_t done = head;
  for (; done + kCacheLine <= bytes; done += kCacheLine) {
    const auto* in = reinterpret_cast<const __m128i*>(source + done);
    auto* out = reinterpret_cast<__m128i*>(target + done);
    // Fills a whole line, which is then written without being read first.
    const __m128i words[] = {_mm_loadu_si128(in), _mm_loadu_si128(in + 1), _mm_loadu_si128(in + 2),
                             _mm_loadu_si128(in + 3)};
    for (int i = 0; i < 4; ++i) _mm_stream_si128(out + i, words[i]);
  }
  std::memcpy(target + done, source + done, bytes - done);
  _mm_sfence();
}
#else
void CopyToShared(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void CopyPastCaches(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
#endif

}  // namespace warren
