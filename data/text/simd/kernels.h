// The fast paths, one set an instruction set. Inside of data/ only, and for its tests and benchmarks: all of
// them give what the plain parsers give, and a test holds them to it.
//
// This header is also included where AVX is switched on, so it must not define anything that the linker could
// take for all (no inline function, no library template in use).
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::data::simd {

/// Where a kernel reads and writes. The arrays have room for all that the text can hold.
template <typename Index>
struct LibSvmRows {
  const char* at;   ///< the beginning of a row; when the kernel returns, of the first one it has not read
  const char* end;  ///< behind a line end; followed by kTextPadding bytes that can be read
  Index first;      ///< 1: indices count from 1
  std::size_t rows;
  std::size_t entries;
  std::uint64_t* offsets;
  Index* indices;
  float* values;
  float* labels;
  float* weights;       ///< null: rows have none
  std::uint64_t* qids;  ///< null: rows have none
  std::uint64_t columns;
  Index least;
};

/// Reads rows as long as they are ordinary: one label, a weight and a qid if there are arrays for them,
/// features. Stops at the end, or at the first row that is not, and leaves nothing of that one behind.
template <typename Index>
using LibSvmKernel = void (*)(LibSvmRows<Index>&);

struct Kernels {
  const char* name;
  LibSvmKernel<std::uint32_t> libsvm32;  ///< null: the plain parser is all there is
  LibSvmKernel<std::uint64_t> libsvm64;
};

/// `Index`: std::uint32_t or std::uint64_t.
template <typename Index>
LibSvmKernel<Index> LibSvm(const Kernels& kernels) {
  if constexpr (sizeof(Index) == sizeof(std::uint32_t)) {
    return kernels.libsvm32;
  } else {
    return kernels.libsvm64;
  }
}

/// For every CPU.
const Kernels& Plain();
/// Null when the CPU lacks what they are made for, or the build is for another processor.
const Kernels* Sse41();
const Kernels* Avx2();
const Kernels* Avx512();
const Kernels* Neon();
/// The fastest of them that this CPU has, or the one that WARREN_SIMD names (plain, sse4.1, avx2, avx512,
/// neon). Throws DataError when that one cannot be had.
const Kernels& Best();
/// Makes Best() return these instead, for tests and benchmarks; null: no longer. Thread safe.
void Force(const Kernels* kernels);

}  // namespace warren::data::simd
