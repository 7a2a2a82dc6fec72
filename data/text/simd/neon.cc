// Kernels for NEON, which every 64-bit ARM processor has: see libsvm_kernel.h.
#include <arm_neon.h>

#include "data/text/simd/libsvm_kernel.h"

namespace warren::data::simd {
namespace {

struct NeonIsa {
  static uint8x16_t Load(const void* from) { return vld1q_u8(static_cast<const std::uint8_t*>(from)); }

  /// Returns one bit for each byte of four vectors; each byte must be 0xFF or 0. Each byte keeps the bit of
  /// its position among eight, and adding neighbors three times combines eight bytes into one.
  static std::uint64_t Mask(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
    alignas(kLoad) static constexpr std::uint8_t kPlaces[kLoad] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                                   1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t places = Load(kPlaces);
    const uint8x16_t ab = vpaddq_u8(vandq_u8(a, places), vandq_u8(b, places));
    const uint8x16_t cd = vpaddq_u8(vandq_u8(c, places), vandq_u8(d, places));
    const uint8x16_t abcd = vpaddq_u8(ab, cd);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(abcd, abcd)), 0);
  }

  static Window Look(const char* at) {
    uint8x16_t blank[4];
    uint8x16_t space[4];
    uint8x16_t colon[4];
    uint8x16_t dot[4];
    uint8x16_t minus[4];
    uint8x16_t digit[4];
    for (unsigned part = 0; part < kWindow / kLoad; ++part) {
      const uint8x16_t bytes = Load(at + part * kLoad);
      blank[part] = vcleq_u8(bytes, vdupq_n_u8(' '));
      space[part] = vceqq_u8(bytes, vdupq_n_u8(' '));
      colon[part] = vceqq_u8(bytes, vdupq_n_u8(':'));
      dot[part] = vceqq_u8(bytes, vdupq_n_u8('.'));
      minus[part] = vceqq_u8(bytes, vdupq_n_u8('-'));
      digit[part] = vcleq_u8(vsubq_u8(bytes, vdupq_n_u8('0')), vdupq_n_u8(9));
    }
    Window window{};
    window.blank = Mask(blank[0], blank[1], blank[2], blank[3]);
    window.space = Mask(space[0], space[1], space[2], space[3]);
    window.colon = Mask(colon[0], colon[1], colon[2], colon[3]);
    window.dot = Mask(dot[0], dot[1], dot[2], dot[3]);
    window.minus = Mask(minus[0], minus[1], minus[2], minus[3]);
    const std::uint64_t known = Mask(digit[0], digit[1], digit[2], digit[3]);
    window.other = ~(window.blank | window.colon | window.dot | window.minus | known);
    return window;
  }

  /// Converts up to eight digits at `first` to `upper`, and up to eight at `second` to `lower`. If
  /// `first_shuffle` is null, converts up to sixteen digits at `second`: the last eight to `lower`, the
  /// preceding digits to `upper`.
  static void TwoNumbers(const char* first, const std::uint8_t* first_shuffle, const char* second,
                         const std::uint8_t* second_shuffle, std::uint32_t& upper, std::uint32_t& lower) {
    const uint8x16_t zero = vdupq_n_u8('0');
    // The shuffle sets unused bytes to zero, so '0' must be subtracted before it.
    uint8x16_t digits = vqtbl1q_u8(vsubq_u8(Load(second), zero), Load(second_shuffle));
    if (first_shuffle != nullptr) {
      digits = vorrq_u8(digits, vqtbl1q_u8(vsubq_u8(Load(first), zero), Load(first_shuffle)));
    }
    const uint8x16_t tens = vreinterpretq_u8_u16(vdupq_n_u16(10 | 1 << 8));
    const uint16x8_t pairs = vpaddlq_u8(vmulq_u8(digits, tens));
    const uint16x8_t hundreds = vreinterpretq_u16_u32(vdupq_n_u32(100 | 1 << 16));
    const uint32x4_t fours = vpaddlq_u16(vmulq_u16(pairs, hundreds));
    const uint32x4_t thousands = vreinterpretq_u32_u64(vdupq_n_u64(10000 | std::uint64_t{1} << 32));
    const uint64x2_t eights = vpaddlq_u32(vmulq_u32(fours, thousands));
    upper = static_cast<std::uint32_t>(vgetq_lane_u64(eights, 0));
    lower = static_cast<std::uint32_t>(vgetq_lane_u64(eights, 1));
  }
};

}  // namespace

extern const Kernels kNeon;
constinit const Kernels kNeon{"neon", ReadLibSvmRows<NeonIsa, std::uint32_t>,
                              ReadLibSvmRows<NeonIsa, std::uint64_t>};

}  // namespace warren::data::simd
