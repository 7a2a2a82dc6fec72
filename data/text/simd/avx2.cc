// Kernels for AVX2, BMI and BMI2. This file is compiled for these instruction sets: see libsvm_kernel.h.
#include <immintrin.h>

#include "data/text/simd/digits_sse.h"
#include "data/text/simd/libsvm_kernel.h"

namespace warren::data::simd {
namespace {

struct Avx2Isa : Digits {
  static Window Look(const char* at) {
    Window window{};
    for (unsigned part = 0; part < 2; ++part) {
      const unsigned shift = part * 32;
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + shift));
      const __m256i blank = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(' ')), bytes);
      const __m256i colon = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(':'));
      const __m256i dot = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('.'));
      const __m256i minus = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('-'));
      const __m256i from_zero = _mm256_sub_epi8(bytes, _mm256_set1_epi8('0'));
      const __m256i digit = _mm256_cmpeq_epi8(_mm256_min_epu8(from_zero, _mm256_set1_epi8(9)), from_zero);
      const __m256i known =
          _mm256_or_si256(_mm256_or_si256(blank, colon), _mm256_or_si256(_mm256_or_si256(dot, minus), digit));
      window.blank |= Mask(blank) << shift;
      window.space |= Mask(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(' '))) << shift;
      window.colon |= Mask(colon) << shift;
      window.dot |= Mask(dot) << shift;
      window.minus |= Mask(minus) << shift;
      window.other |= (Mask(known) ^ 0xFFFFFFFF) << shift;
    }
    return window;
  }
  static std::uint64_t Mask(__m256i bytes) { return static_cast<unsigned>(_mm256_movemask_epi8(bytes)); }
};

}  // namespace

extern const Kernels kAvx2;
constinit const Kernels kAvx2{"avx2", ReadLibSvmRows<Avx2Isa, std::uint32_t>,
                              ReadLibSvmRows<Avx2Isa, std::uint64_t>};

}  // namespace warren::data::simd
