// The form of kernels, and their launch. A kernel is a struct whose members are its arguments. Its work is
// divided into phases, between which all threads of a block synchronize (__syncthreads) and exchange data in
// the block's shared memory. The same code therefore runs on a GPU (launch.cu) and, one thread after the
// other, on a host, which allows tests without a GPU.
//
//   struct Kernel {
//     int Phases() const;
//     std::size_t SharedBytes() const;
//     void Run(int phase, const Thread& thread, void* shared) const;
//   };
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "examples/histgbt/arithmetic.h"

namespace warren::histgbt {

/// Threads per block, for all kernels.
inline constexpr unsigned kThreads = 256;

struct Thread {
  unsigned index;   ///< index in its block
  unsigned block;   ///< index of the block in the grid
  unsigned blocks;  ///< number of blocks in the grid

  HISTGBT_HD std::size_t global() const { return static_cast<std::size_t>(block) * kThreads + index; }
  HISTGBT_HD std::size_t all() const { return static_cast<std::size_t>(blocks) * kThreads; }
};

/// Starts the kernel on the stream; does nothing for 0 blocks. Throws std::runtime_error if the launch fails.
template <typename Kernel>
void Launch(const Kernel& kernel, unsigned blocks, cudaStream_t stream);

// Atomic operations on the GPU. On a host, threads run one after the other, so plain operations suffice.
template <typename Value>
HISTGBT_HD inline void AtomicAdd(Value* to, Value value) {
#ifdef __CUDA_ARCH__
  atomicAdd(to, value);
#else
  *to += value;
#endif
}
HISTGBT_HD inline void AtomicAdd(std::int64_t* to, std::int64_t value) {
#ifdef __CUDA_ARCH__
  // With two's complement, signed and unsigned addition are the same.
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));  // NOLINT
#else
  *to += value;
#endif
}
/// Adds, and returns the previous value.
HISTGBT_HD inline std::uint32_t AtomicReserve(std::uint32_t* counter, std::uint32_t count) {
#ifdef __CUDA_ARCH__
  return atomicAdd(counter, count);
#else
  const std::uint32_t before = *counter;
  *counter += count;
  return before;
#endif
}
HISTGBT_HD inline void AtomicMax(std::uint32_t* to, std::uint32_t value) {
#ifdef __CUDA_ARCH__
  atomicMax(to, value);
#else
  if (*to < value) *to = value;
#endif
}
HISTGBT_HD inline void AtomicAdd(GradientSum* to, const GradientSum& value) {
  if (value.gradient != 0) AtomicAdd(&to->gradient, value.gradient);
  if (value.hessian != 0) AtomicAdd(&to->hessian, value.hessian);
}

HISTGBT_HD inline std::uint32_t BitsOf(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  return std::bit_cast<std::uint32_t>(value);
#endif
}

}  // namespace warren::histgbt
