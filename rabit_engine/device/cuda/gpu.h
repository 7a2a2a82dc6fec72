// The GPU of this rank.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "rabit_engine/device/cuda/place.h"

namespace warren::device {

/// Selects GPU number local_rank (modulo the number of GPUs) of those visible to this process: makes it the
/// thread's current one and returns its number. Throws CudaError if there is no GPU.
int SelectGpu(int local_rank);

/// The GPU that holds this memory; the current one for null. Throws CudaError for host memory.
int GpuOf(const void* memory);

/// Describes `device` for the other ranks. `tls`: see WarrenDeviceHost. Does not throw: errors are part of
/// the result.
Place DescribePlace(int device, const std::string& trouble, bool tls);

}  // namespace warren::device
