// librabit_cuda.so, found and loaded when a program first asks for a device.
#pragma once

#include <string>
#include <vector>

#include "rabit_engine/device/plugin.h"

namespace warren::device {

/// The files to try, best first: WARREN_CUDA_LIBRARY alone, else beside librabit, else wherever the loader
/// looks.
std::vector<std::string> LibraryCandidates(const std::string& wanted,
                                           const std::vector<std::string>& folders);

/// Loaded once and for good. Throws EngineError that lists what was tried, each time it is asked.
const WarrenDevices& LoadDevices();

}  // namespace warren::device
