#include <cstdint>

#include "rabit_engine/device/cuda/elements.h"
#include "rabit_engine/device/cuda/error.h"
#include "rabit_engine/device/cuda/reduce_kernels.h"

namespace warren::device {
namespace {

constexpr int kThreads = 256;
/// The number of bytes that a thread moves per access if all buffers are aligned to this size.
constexpr int kPackBytes = 16;

template <typename T>
struct alignas(kPackBytes) Pack {
  static constexpr int kSize = kPackBytes / sizeof(T);
  T of[kSize];
};

/// The largest and a special value of the kernels' template parameter `most`. A kernel reduces the buffers of
/// up to `most` ranks and loads the values of all ranks before it combines them. With kAnyNumber, it reduces
/// the buffers of any number of ranks, and combines each value as it is loaded.
constexpr int kFew = 8;
constexpr int kAnyNumber = 0;

template <ReduceOp operation, typename T, int most>
__global__ void __launch_bounds__(kThreads)
    ReducePacks(const __grid_constant__ Buffers inputs, const __grid_constant__ Buffers outputs,
                std::size_t first, std::size_t packs) {
  const int ranks = inputs.count;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs;
       i += step) {
    const auto load = [&](int rank) { return static_cast<const Pack<T>*>(inputs.of[rank])[first + i]; };
    Pack<T> result;
    if constexpr (most != kAnyNumber) {
      Pack<T> packs_of[most];
#pragma unroll
      for (int rank = 0; rank < most; ++rank) {
        if (rank < ranks) packs_of[rank] = load(rank);
      }
#pragma unroll
      for (int k = 0; k < Pack<T>::kSize; ++k) {
        T values[most];
#pragma unroll
        for (int rank = 0; rank < most; ++rank) values[rank] = packs_of[rank].of[k];
        result.of[k] = CombineFew<operation>(ranks, values);
      }
    } else {
      for (int k = 0; k < Pack<T>::kSize; ++k) {
        result.of[k] = CombineInOrder<operation, T>(ranks, [&](int rank) { return load(rank).of[k]; });
      }
    }
    for (int output = 0; output < outputs.count; ++output) {
      static_cast<Pack<T>*>(outputs.of[output])[first + i] = result;
    }
  }
}

template <ReduceOp operation, typename T, int most>
__global__ void __launch_bounds__(kThreads)
    ReduceElements(const __grid_constant__ Buffers inputs, const __grid_constant__ Buffers outputs,
                   std::size_t begin, std::size_t end) {
  const int ranks = inputs.count;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = begin + static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < end;
       i += step) {
    const auto load = [&](int rank) { return static_cast<const T*>(inputs.of[rank])[i]; };
    T result;
    if constexpr (most != kAnyNumber) {
      T values[most];
#pragma unroll
      for (int rank = 0; rank < most; ++rank) {
        if (rank < ranks) values[rank] = load(rank);
      }
      result = CombineFew<operation>(ranks, values);
    } else {
      result = CombineInOrder<operation, T>(ranks, load);
    }
    for (int output = 0; output < outputs.count; ++output) static_cast<T*>(outputs.of[output])[i] = result;
  }
}

bool AllAligned(const Buffers& buffers) {
  for (int i = 0; i < buffers.count; ++i) {
    if (reinterpret_cast<std::uintptr_t>(buffers.of[i]) % kPackBytes != 0) return false;
  }
  return true;
}

/// Returns the number of blocks for this number of threads, but at most 16 for each multiprocessor.
unsigned BlocksFor(std::size_t threads) {
  int device = 0;
  int processors = 0;
  Check(cudaGetDevice(&device), "getting the current GPU");
  Check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "getting the properties of the GPU");
  const std::size_t most = static_cast<std::size_t>(processors) * 16;
  const std::size_t needed = (threads + kThreads - 1) / kThreads;
  return static_cast<unsigned>(needed < most ? needed : most);
}

template <ReduceOp operation, typename T>
void Launch(const Buffers& inputs, const Buffers& outputs, std::size_t begin, std::size_t end,
            cudaStream_t stream) {
  constexpr std::size_t kSize = Pack<T>::kSize;
  const std::size_t first = (begin + kSize - 1) / kSize;
  const std::size_t last = end / kSize;
  std::size_t rest = begin;
  if (first < last && begin % kSize == 0 && AllAligned(inputs) && AllAligned(outputs)) {
    const std::size_t packs = last - first;
    const unsigned blocks = BlocksFor(packs);
    const auto start = [&](auto kernel) {
      kernel<<<blocks, kThreads, 0, stream>>>(inputs, outputs, first, packs);
    };
    if (inputs.count <= 2) {
      start(ReducePacks<operation, T, 2>);
    } else if (inputs.count <= 4) {
      start(ReducePacks<operation, T, 4>);
    } else if (inputs.count <= kFew) {
      start(ReducePacks<operation, T, kFew>);
    } else {
      start(ReducePacks<operation, T, kAnyNumber>);
    }
    Check(cudaGetLastError(), "starting a reduction");
    rest = last * kSize;
  }
  if (rest == end) return;
  const auto kernel =
      inputs.count <= kFew ? ReduceElements<operation, T, kFew> : ReduceElements<operation, T, kAnyNumber>;
  kernel<<<BlocksFor(end - rest), kThreads, 0, stream>>>(inputs, outputs, rest, end);
  Check(cudaGetLastError(), "starting a reduction");
}

}  // namespace

void LaunchReduce(Type type, ReduceOp operation, const Buffers& inputs, const Buffers& outputs,
                  std::size_t begin, std::size_t end, cudaStream_t stream) {
  WithElement(type, [&](auto element) {
    WithOperation(operation, [&](auto constant) {
      Launch<decltype(constant)::value, decltype(element)>(inputs, outputs, begin, end, stream);
    });
  });
}

}  // namespace warren::device
