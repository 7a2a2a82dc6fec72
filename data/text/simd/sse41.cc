// Kernels for SSE4.1. This file is compiled for that instruction set: see libsvm_kernel.h.
#include "data/text/simd/digits_sse.h"
#include "data/text/simd/libsvm_kernel.h"

namespace warren::data::simd {
namespace {

struct Sse41Isa : Digits {
  static Window Look(const char* at) {
    Window window{};
    for (unsigned part = 0; part < kWindow / kLoad; ++part) {
      const __m128i bytes = Load(at + part * kLoad);
      const unsigned shift = part * kLoad;
      const __m128i blank = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ')), bytes);
      const __m128i colon = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(':'));
      const __m128i dot = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('.'));
      const __m128i minus = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-'));
      const __m128i from_zero = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
      const __m128i digit = _mm_cmpeq_epi8(_mm_min_epu8(from_zero, _mm_set1_epi8(9)), from_zero);
      const __m128i known =
          _mm_or_si128(_mm_or_si128(blank, colon), _mm_or_si128(_mm_or_si128(dot, minus), digit));
      window.blank |= Mask(blank) << shift;
      window.space |= Mask(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '))) << shift;
      window.colon |= Mask(colon) << shift;
      window.dot |= Mask(dot) << shift;
      window.minus |= Mask(minus) << shift;
      window.other |= (Mask(known) ^ 0xFFFF) << shift;
    }
    return window;
  }
  static std::uint64_t Mask(__m128i bytes) { return static_cast<unsigned>(_mm_movemask_epi8(bytes)); }
};

}  // namespace

extern const Kernels kSse41;
constinit const Kernels kSse41{"sse4.1", ReadLibSvmRows<Sse41Isa, std::uint32_t>,
                               ReadLibSvmRows<Sse41Isa, std::uint64_t>};

}  // namespace warren::data::simd
