// Kernels that reduce the buffers of several ranks without copying them first.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "rabit_engine/device/cuda/place.h"
#include "rabit_engine/device/operation.h"

namespace warren::device {

/// Pointers to the ranks' buffers, in rank order; passed as a kernel argument.
struct Buffers {
  void* of[kMaxShared] =
      {};  // NOLINT(modernize-avoid-c-arrays): kernels read it, and std::array is for hosts
  int count = 0;
};

/// Enqueues a kernel that sets element i of every output to inputs[0][i] op inputs[1][i] op ..., for i in
/// [begin, end); kAverage divides the sum. An output may be one of the inputs; otherwise buffers must not
/// overlap. The order of the operands and the rounding are the engine's (reduce/order.h), so every bit is the
/// same as if the host had reduced the values.
void LaunchReduce(Type type, ReduceOp operation, const Buffers& inputs, const Buffers& outputs,
                  std::size_t begin, std::size_t end, cudaStream_t stream);

}  // namespace warren::device
