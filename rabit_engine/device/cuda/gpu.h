// The GPU of this rank.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "rabit_engine/device/cuda/place.h"

namespace warren::device {

/// The local_rank-th of the GPUs that this process may see, counting on from the first when there are fewer
/// than ranks. It becomes the thread's current one. Throws CudaError when there is none.
int SelectGpu(int local_rank);

/// The GPU that holds this memory; the current one for null. Throws CudaError when it is host memory.
int GpuOf(const void* memory);

/// What this rank tells the others of `device`. `tls`: as WarrenDeviceHost has it. Throws nothing: what goes
/// wrong is in the answer.
Place DescribePlace(int device, const std::string& trouble, bool tls);

}  // namespace warren::device
