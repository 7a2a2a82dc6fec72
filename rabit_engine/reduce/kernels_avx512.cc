// Kernels for AVX-512 F, BW, DQ and VL. Only kernels are compiled for such instruction sets: see
// kernels_impl.h.
#define WARREN_VECTOR_BYTES 64
#include "rabit_engine/reduce/kernels_impl.h"

namespace warren {

extern const KernelTable kAvx512Table;
constinit const KernelTable kAvx512Table = MakeTable("avx512");

}  // namespace warren
