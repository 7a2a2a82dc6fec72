// Selects and describes the GPU of this rank.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "rabit_engine/device/cuda/place.h"

namespace warren::device {

/// Selects GPU number local_rank (modulo the number of GPUs) of those visible to this process: makes it the
/// calling thread's current GPU and returns its number. Throws CudaError if there is no GPU.
int SelectGpu(int local_rank);

/// Returns the number of the GPU that holds this memory, or of the current GPU if `memory` is nullptr. Throws
/// CudaError for host memory.
int GpuOf(const void* memory);

/// Describes `device` for the other ranks. `trouble`: why this rank cannot take part; empty if it can. `tls`:
/// see WarrenDeviceHost. Does not throw: errors are part of the result.
Place DescribePlace(int device, const std::string& trouble, bool tls);

}  // namespace warren::device
