#include <stdexcept>
#include <string>

#include "examples/histgbt/cuda/kernels.h"
#include "examples/histgbt/cuda/launch.h"

namespace warren::histgbt {
namespace {

template <typename Kernel>
__global__ void __launch_bounds__(kThreads) RunKernel(const __grid_constant__ Kernel kernel) {
  extern __shared__ __align__(16) unsigned char shared[];
  const Thread thread{threadIdx.x, blockIdx.x, gridDim.x};
  const int phases = kernel.Phases();
  for (int phase = 0; phase < phases; ++phase) {
    if (phase > 0) __syncthreads();
    kernel.Run(phase, thread, shared);
  }
}

}  // namespace

template <typename Kernel>
void Launch(const Kernel& kernel, unsigned blocks, cudaStream_t stream) {
  if (blocks == 0) return;
  const std::size_t shared = kernel.SharedBytes();
  cudaError_t error = cudaSuccess;
  constexpr std::size_t kWithoutAsking = 48 << 10;
  if (shared > kWithoutAsking) {
    error = cudaFuncSetAttribute(RunKernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared));
  }
  if (error == cudaSuccess) {
    RunKernel<Kernel><<<blocks, kThreads, shared, stream>>>(kernel);
    error = cudaGetLastError();
  }
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("starting a kernel: ") + cudaGetErrorString(error));
}

HISTGBT_INSTANTIATE_LAUNCH

}  // namespace warren::histgbt
