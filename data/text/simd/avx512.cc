// Kernels for AVX-512 F, BW, DQ and VL. Only this file is compiled for them: see libsvm_kernel.h.
#include <immintrin.h>

#include "data/text/simd/digits_sse.h"
#include "data/text/simd/libsvm_kernel.h"

namespace warren::data::simd {
namespace {

struct Avx512Isa : Digits {
  static Window Look(const char* at) {
    const __m512i bytes = _mm512_loadu_si512(at);
    Window window{};
    window.blank = _mm512_cmple_epu8_mask(bytes, _mm512_set1_epi8(' '));
    window.colon = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(':'));
    window.dot = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('.'));
    const std::uint64_t digit =
        _mm512_cmple_epu8_mask(_mm512_sub_epi8(bytes, _mm512_set1_epi8('0')), _mm512_set1_epi8(9));
    window.other = ~(window.blank | window.colon | window.dot | digit);
    return window;
  }
};

}  // namespace

extern const Kernels kAvx512;
constinit const Kernels kAvx512{"avx512", ReadLibSvmRows<Avx512Isa, std::uint32_t>,
                                ReadLibSvmRows<Avx512Isa, std::uint64_t>};

}  // namespace warren::data::simd
