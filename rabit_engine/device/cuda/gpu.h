// The GPU of this rank.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "rabit_engine/device/cuda/place.h"

namespace warren::device {

/// Returns GPU number local_rank of those that this process may see, modulo their number, and makes it the
/// thread's current one. Throws CudaError if there is no GPU.
int SelectGpu(int local_rank);

/// The GPU that holds this memory; the current one for null. Throws CudaError for host memory.
int GpuOf(const void* memory);

/// What this rank tells the others about `device`. `tls`: see WarrenDeviceHost. Does not throw: errors are
/// part of the result.
Place DescribePlace(int device, const std::string& trouble, bool tls);

}  // namespace warren::device
