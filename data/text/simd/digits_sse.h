// Converts digits to numbers with SSE4.1, for all x86 kernels. Each of them includes this file: see
// libsvm_kernel.h.
#pragma once

#include <smmintrin.h>

#include <cstdint>

namespace warren::data::simd {
namespace {

struct Digits {
  static __m128i Load(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }

  /// Converts up to eight digits at `first` to `upper`, and up to eight at `second` to `lower`. If
  /// `first_shuffle` is null, converts up to sixteen digits at `second`: the last eight to `lower`, the
  /// preceding digits to `upper`.
  static void TwoNumbers(const char* first, const std::uint8_t* first_shuffle, const char* second,
                         const std::uint8_t* second_shuffle, std::uint32_t& upper, std::uint32_t& lower) {
    const __m128i zero = _mm_set1_epi8('0');
    // The shuffle sets unused bytes to zero, so '0' must be subtracted before it.
    __m128i digits = _mm_shuffle_epi8(_mm_sub_epi8(Load(second), zero), Load(second_shuffle));
    if (first_shuffle != nullptr) {
      digits = _mm_or_si128(digits, _mm_shuffle_epi8(_mm_sub_epi8(Load(first), zero), Load(first_shuffle)));
    }
    const __m128i pairs = _mm_maddubs_epi16(digits, _mm_set1_epi16(10 | 1 << 8));
    const __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(100 | 1 << 16));
    const __m128i packed = _mm_packus_epi32(fours, fours);
    const __m128i eights = _mm_madd_epi16(packed, _mm_set1_epi32(10000 | 1 << 16));
    const auto both = static_cast<std::uint64_t>(_mm_cvtsi128_si64(eights));
    upper = static_cast<std::uint32_t>(both);
    lower = static_cast<std::uint32_t>(both >> 32);
  }
};

}  // namespace
}  // namespace warren::data::simd
