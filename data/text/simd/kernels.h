// The fast kernels, one set per instruction set. Internal to data/, its tests and its benchmarks. All return
// what the plain parsers return, which a test verifies.
//
// This header is also included by files compiled for AVX, so it must not define anything that the linker
// could keep for the whole program (no inline functions, no use of library templates).
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::data::simd {

/// Input and output of a kernel. The arrays must have capacity for as many rows and entries as the text can
/// contain.
template <typename Index>
struct LibSvmRows {
  const char* at;   ///< the beginning of a row; after the call, of the first row not read
  const char* end;  ///< follows a line end and precedes kTextPadding readable bytes
  Index first;      ///< 1 if indices count from 1, otherwise 0
  std::size_t rows;
  std::size_t entries;
  std::uint64_t* offsets;
  Index* indices;
  float* values;
  float* labels;
  float* weights;       ///< null if rows have none
  std::uint64_t* qids;  ///< null if rows have none
  std::uint64_t columns;
  Index least;
  bool ascending;  ///< set to false if the indices of a row that was read are not strictly ascending
};

/// Reads rows while they are ordinary: one label, a weight only if `weights` is not null, a qid if and only
/// if `qids` is not null, and features. Stops at `end`, or at the first row that is not ordinary; nothing of
/// that row is kept.
template <typename Index>
using LibSvmKernel = void (*)(LibSvmRows<Index>&);

struct Kernels {
  const char* name;
  LibSvmKernel<std::uint32_t> libsvm32;  ///< null: use the plain parser
  LibSvmKernel<std::uint64_t> libsvm64;
};

/// `Index` is std::uint32_t or std::uint64_t.
template <typename Index>
LibSvmKernel<Index> LibSvm(const Kernels& kernels) {
  if constexpr (sizeof(Index) == sizeof(std::uint32_t)) {
    return kernels.libsvm32;
  } else {
    return kernels.libsvm64;
  }
}

/// The plain parser, for every CPU.
const Kernels& Plain();
/// Null if the CPU lacks the instruction set or the build is for another architecture.
const Kernels* Sse41();
const Kernels* Avx2();
const Kernels* Neon();
/// Returns the kernels that WARREN_SIMD names (plain, sse4.1, avx2, neon), or else the fastest for
/// this CPU. Throws DataError if the named ones are not available.
const Kernels& Best();
/// Makes Best() return these kernels, for tests and benchmarks; null restores the default. Thread-safe.
void Force(const Kernels* kernels);

}  // namespace warren::data::simd
