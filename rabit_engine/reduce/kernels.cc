#include "rabit_engine/reduce/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace warren {

// Constant-initialized data: reading a table executes none of the instructions that its kernels use.
extern const KernelTable kPlainTable;
#if defined(__x86_64__)
extern const KernelTable kAvx2Table;
extern const KernelTable kAvx512Table;

namespace {

bool HasAvx2() {
  // Clang 14's __builtin_cpu_supports does not recognize F16C.
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return has_f16c && __builtin_cpu_supports("avx2");
}

bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace

const KernelTable* Avx2Kernels() {
  static const bool has = HasAvx2();
  return has ? &kAvx2Table : nullptr;
}

const KernelTable* Avx512Kernels() {
  static const bool has = HasAvx512();
  return has ? &kAvx512Table : nullptr;
}
#else
const KernelTable* Avx2Kernels() {
  return nullptr;
}
const KernelTable* Avx512Kernels() {
  return nullptr;
}
#endif

const KernelTable& PlainKernels() {
  return kPlainTable;
}

const KernelTable& BestKernels() {
  if (const KernelTable* table = Avx512Kernels()) return *table;
  if (const KernelTable* table = Avx2Kernels()) return *table;
  return PlainKernels();
}

}  // namespace warren
