// Errors of the CUDA part. They are exceptions inside; plugin.cc turns them into strings.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>

namespace warren::device {

class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown if a function of WarrenDeviceHost has failed; librabit has kept its error.
class HostFailed : public std::exception {};

inline void CheckHost(int status) {
  if (status != 0) throw HostFailed();
}

/// Throws CudaError, "<what>: <CUDA's error text>", unless `status` is success.
void Check(cudaError_t status, const char* what);

/// Makes `device` the thread's current device for the lifetime of the object.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = -1;  ///< -1 if nothing needs to be restored
};

}  // namespace warren::device
