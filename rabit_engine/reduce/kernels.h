// The typed kernels, one table per instruction set. Only for reduce/ and its tests and benchmarks. All tables
// produce the same bits, as a test checks.
//
// This header is also included in files compiled for AVX, so it must not define anything that the linker
// could use for the whole program (no inline functions, no library templates).
#pragma once

#include <cstddef>

#include "rabit_engine/reduce/reduction.h"

namespace warren {

/// Combines inputs[0], inputs[1], ... in the engine's order (order.h). The number of inputs depends on the
/// kernel. `bytes`, the size of each input, is a multiple of the element size. `out` may be one of the
/// inputs; ranges must not overlap partially. Nothing needs to be aligned.
using FusedKernel = void (*)(void* out, const void* const* inputs, std::size_t bytes);

struct WideKernels;

/// The kernels of one type and operation, by the number of inputs. All are null if the operation is not
/// defined for the type.
struct KernelSet {
  FusedKernel two = nullptr;
  FusedKernel three = nullptr;
  FusedKernel four = nullptr;
  FusedKernel eight = nullptr;
  const WideKernels* wide = nullptr;  ///< set if these kernels round their results
};

/// For sums and products of 16-bit floats, which are computed in floats and rounded once: the kernels to use
/// if no single kernel takes all inputs. If the results have another size than the inputs, `out` must not be
/// one of the inputs.
struct WideKernels {
  FusedKernel widen;   ///< converts one input to floats
  KernelSet widened;   ///< combines 16-bit floats into floats
  KernelSet floats;    ///< combines floats into floats
  FusedKernel narrow;  ///< rounds one input of floats to 16-bit floats
};

struct KernelTable {
  const char* name;
  KernelSet sets[kNumDataTypes][kNumReduceOps];
};

/// The kernels for any CPU.
const KernelTable& PlainKernels();
/// Returns null if the CPU lacks AVX2 or F16C, or the build is not for x86-64.
const KernelTable* Avx2Kernels();
/// Returns null if the CPU lacks AVX-512 F, BW, DQ or VL, or the build is not for x86-64.
const KernelTable* Avx512Kernels();
/// The widest kernels that this CPU supports. Queries the CPU once.
const KernelTable& BestKernels();

}  // namespace warren
