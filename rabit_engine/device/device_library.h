// Finds librabit_cuda.so and loads it when a program first uses a device.
#pragma once

#include <string>
#include <vector>

#include "rabit_engine/device/plugin.h"

namespace warren::device {

/// Returns the files to try, best first: only `wanted` (the value of WARREN_CUDA_LIBRARY) if it is not empty;
/// otherwise librabit_cuda.so in each of `folders`, then the plain name, which the loader searches for.
std::vector<std::string> LibraryCandidates(const std::string& wanted,
                                           const std::vector<std::string>& folders);

/// Loads the library once; it is never unloaded. If loading fails, each call tries again and throws an
/// EngineError that lists what was tried.
const WarrenDevices& LoadDevices();

}  // namespace warren::device
