#include "rabit_engine/host/shared_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rabit_engine/host/host_segment.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace warren {

#if defined(__x86_64__)
namespace {

/// Copies the bytes before the first cache line boundary in `to`, at most `bytes`; returns their number.
std::size_t CopyHead(void* to, const void* from, std::size_t bytes) {
  const std::size_t head = std::min<std::size_t>(bytes, -reinterpret_cast<std::uintptr_t>(to) % kCacheLine);
  std::memcpy(to, from, head);
  return head;
}

/// Whether the processor has "enhanced rep movsb", without which the string copy is slow.
bool HasStringCopy() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kErms = 1U << 9;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kErms) != 0;
}

/// Copies `bytes` to `to`, which must be the beginning of a cache line.
__attribute__((target("avx"))) void CopyLines(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t done = 0;
  for (; done + kCacheLine <= bytes; done += kCacheLine) {
    const auto* in = reinterpret_cast<const __m256i*>(from + done);
    auto* out = reinterpret_cast<__m256i*>(to + done);
    const __m256i low = _mm256_loadu_si256(in);
    const __m256i high = _mm256_loadu_si256(in + 1);
    _mm256_store_si256(out, low);
    _mm256_store_si256(out + 1, high);
  }
  std::memcpy(to + done, from + done, bytes - done);
}

/// Shorter copies use std::memcpy, which is as fast for them.
constexpr std::size_t kLeastBytes = std::size_t{1} << 10;

}  // namespace

void CopyToShared(void* to, const void* from, std::size_t bytes, Reader reader) {
  static const bool has_avx = __builtin_cpu_supports("avx") != 0;
  static const bool has_string_copy = HasStringCopy();
  const bool has_quick_copy = reader == Reader::kCrowded ? has_string_copy : has_avx;
  if (bytes < kLeastBytes || (reader != Reader::kFar && !has_quick_copy)) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  if (reader == Reader::kFar) return CopyPastCaches(to, from, bytes);
  // Both copies below begin at a cache line boundary: CopyLines requires it, and the string copy overwrites
  // whole lines only then.
  const std::size_t head = CopyHead(to, from, bytes);
  auto* target = static_cast<std::byte*>(to) + head;
  const auto* source = static_cast<const std::byte*>(from) + head;
  bytes -= head;
  if (reader == Reader::kNear) return CopyLines(target, source, bytes);
  asm volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(bytes) : : "memory");
}

void CopyPastCaches(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  std::size_t done = CopyHead(to, from, bytes);
  for (; done + kCacheLine <= bytes; done += kCacheLine) {
    const auto* in = reinterpret_cast<const __m128i*>(source + done);
    auto* out = reinterpret_cast<__m128i*>(target + done);
    // The four stores fill a whole line, which is then written to memory without being read first.
    const __m128i words[] = {_mm_loadu_si128(in), _mm_loadu_si128(in + 1), _mm_loadu_si128(in + 2),
                             _mm_loadu_si128(in + 3)};
    for (int i = 0; i < 4; ++i) _mm_stream_si128(out + i, words[i]);
  }
  std::memcpy(target + done, source + done, bytes - done);
  _mm_sfence();
}
#else
void CopyToShared(void* to, const void* from, std::size_t bytes, Reader /*reader*/) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void CopyPastCaches(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
#endif

}  // namespace warren
