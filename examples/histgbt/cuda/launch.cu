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

template void Launch(const SoftmaxKernel&, unsigned, cudaStream_t);
template void Launch(const GradientKernel&, unsigned, cudaStream_t);
template void Launch(const PackKernel&, unsigned, cudaStream_t);
template void Launch(const SharedHistogramKernel&, unsigned, cudaStream_t);
template void Launch(const GlobalHistogramKernel&, unsigned, cudaStream_t);
template void Launch(const SubtractKernel&, unsigned, cudaStream_t);
template void Launch(const AskKernel&, unsigned, cudaStream_t);
template void Launch(const ChooseKernel&, unsigned, cudaStream_t);
template void Launch(const PartitionKernel&, unsigned, cudaStream_t);
template void Launch(const LeafKernel&, unsigned, cudaStream_t);
template void Launch(const SplitLeafKernel&, unsigned, cudaStream_t);

}  // namespace warren::histgbt
