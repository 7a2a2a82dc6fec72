// Kernels for any CPU: 16-byte vectors, which the compiler maps to the build's target.
#define WARREN_VECTOR_BYTES 16
#include "rabit_engine/reduce/kernels_impl.h"

namespace warren {

extern const KernelTable kPlainTable;
constinit const KernelTable kPlainTable = MakeTable("plain");

}  // namespace warren
