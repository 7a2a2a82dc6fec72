#include "data/text/simd/kernels.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "data/error.h"

namespace warren::data::simd {

// Constant-initialized, so that no code compiled for an instruction set that the CPU may lack runs at
// program start.
#if defined(__x86_64__)
extern const Kernels kSse41;
extern const Kernels kAvx2;
#elif defined(__aarch64__)
extern const Kernels kNeon;
#endif

namespace {

constexpr Kernels kPlain{"plain", nullptr, nullptr};
constinit std::atomic<const Kernels*> forced{nullptr};

/// Returns the fastest kernels for this CPU. There are none for AVX-512: moving masks from its mask registers
/// to general registers takes longer, and cost 15 % of the speed.
const Kernels& Fastest() {
  for (const Kernels* kernels : {Avx2(), Sse41(), Neon()}) {
    if (kernels != nullptr) return *kernels;
  }
  return kPlain;
}

const Kernels& Chosen() {
  const char* const wish = std::getenv("WARREN_SIMD");
  if (wish == nullptr || *wish == '\0') return Fastest();
  std::string here;
  for (const Kernels* kernels : {&kPlain, Sse41(), Avx2(), Neon()}) {
    if (kernels == nullptr) continue;
    if (std::string(kernels->name) == wish) return *kernels;
    here += here.empty() ? "" : ", ";
    here += kernels->name;
  }
  throw DataError(fmt::format("WARREN_SIMD={}: this machine supports {}", wish, here));
}

}  // namespace

const Kernels& Plain() {
  return kPlain;
}
const Kernels* Sse41() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.1")) return &kSse41;
#endif
  return nullptr;
}
const Kernels* Avx2() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")) {
    return &kAvx2;
  }
#endif
  return nullptr;
}
const Kernels* Neon() {
#if defined(__aarch64__)
  return &kNeon;
#else
  return nullptr;
#endif
}

const Kernels& Best() {
  if (const Kernels* const wish = forced.load(std::memory_order_acquire)) return *wish;
  static const Kernels& chosen = Chosen();
  return chosen;
}

void Force(const Kernels* kernels) {
  forced.store(kernels, std::memory_order_release);
}

}  // namespace warren::data::simd
