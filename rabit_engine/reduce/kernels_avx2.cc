// Kernels for AVX2 and F16C. Only kernels are compiled for such instruction sets: see kernels_impl.h.
#define WARREN_VECTOR_BYTES 32
#include "rabit_engine/reduce/kernels_impl.h"

namespace warren {

extern const KernelTable kAvx2Table;
constinit const KernelTable kAvx2Table = MakeTable("avx2");

}  // namespace warren
