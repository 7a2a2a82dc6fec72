// librabit_cuda.so, found and loaded when a program first asks for a device.
#pragma once

#include <string>
#include <vector>

#include "rabit_engine/device/plugin.h"

namespace warren::device {

/// The files to try, best first: only WARREN_CUDA_LIBRARY if it is set; otherwise the file next to librabit,
/// then the one that the loader finds.
std::vector<std::string> LibraryCandidates(const std::string& wanted,
                                           const std::vector<std::string>& folders);

/// Loads the library once; it is never unloaded. If loading fails, each call tries again and throws an
/// EngineError that lists what was tried.
const WarrenDevices& LoadDevices();

}  // namespace warren::device
