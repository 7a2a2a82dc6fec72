// The typed kernels, one table an instruction set. Inside of reduce/ only, and for its tests and benchmarks:
// all tables give the same bits, and a test holds them to it.
//
// This header is also included where AVX is switched on, so it must not define anything that the linker could
// take for all (no inline function, no library template in use).
#pragma once

#include <cstddef>

#include "rabit_engine/reduce/reduction.h"

namespace warren {

/// Combines inputs[0], inputs[1], ... in the engine's order (order.h). The number of inputs is the kernel's.
/// `bytes` is a multiple of the element's size. `out` may be any of the inputs; ranges do not overlap in
/// part. Nothing needs to be aligned.
using FusedKernel = void (*)(void* out, const void* const* inputs, std::size_t bytes);

struct WideKernels;

/// The kernels of one type and operation, by the number of their inputs. All null where the operation is not
/// defined for the type.
struct KernelSet {
  FusedKernel two = nullptr;
  FusedKernel three = nullptr;
  FusedKernel four = nullptr;
  FusedKernel eight = nullptr;
  const WideKernels* wide = nullptr;  ///< where what these kernels write is rounded
};

/// Of sums and products of 16-bit floats, which are combined as floats and rounded once: what it takes when
/// one kernel does not take all inputs. (`bytes` are always those of an input, and nothing is in place where
/// elements of the result have another size.)
struct WideKernels {
  FusedKernel widen;   ///< one input to floats
  KernelSet widened;   ///< 16-bit floats to the floats of their combination
  KernelSet floats;    ///< floats to floats
  FusedKernel narrow;  ///< one input of floats to 16-bit floats
};

struct KernelTable {
  const char* name;
  KernelSet sets[kNumDataTypes][kNumOperations];
};

/// For every CPU.
const KernelTable& PlainKernels();
/// Null when the CPU lacks AVX2 or F16C, or the build is not for x86-64.
const KernelTable* Avx2Kernels();
/// Null when the CPU lacks AVX-512 F, BW, DQ or VL, or the build is not for x86-64.
const KernelTable* Avx512Kernels();
/// The widest of them that this CPU has. Asks the CPU once.
const KernelTable& BestKernels();

}  // namespace warren
