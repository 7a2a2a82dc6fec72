#include "rabit_engine/device/cuda/waiting.h"

namespace warren::device {

void ThrowUnlessLost(const WarrenDeviceHost& host, const CudaError& error) {
  constexpr std::chrono::seconds kTimeToName{2};
  const auto end = std::chrono::steady_clock::now() + kTimeToName;
  WaitFor(host, [end] { return std::chrono::steady_clock::now() >= end; });
  throw CudaError(error);
}

}  // namespace warren::device
