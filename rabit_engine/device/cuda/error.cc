#include "rabit_engine/device/cuda/error.h"

#include <fmt/format.h>

#include <cstdlib>

namespace warren::device {
namespace {

/// Advice for the user if the error means that no GPU can be used at all; else empty.
std::string Advice(cudaError_t status) {
  if (status == cudaErrorInsufficientDriver || status == cudaErrorInitializationError ||
      status == cudaErrorSystemDriverMismatch) {
    return ". No GPU can be used here: either there is no NVIDIA driver, or it is too old for the CUDA that "
           "this library was built with; `nvidia-smi` tells. rabit::Allreduce needs no GPU";
  }
  if (status == cudaErrorNoDevice || status == cudaErrorInvalidDevice ||
      status == cudaErrorDevicesUnavailable) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return fmt::format(
        ". No GPU can be used here: there is none, or it is not this process's to use "
        "(CUDA_VISIBLE_DEVICES is {}); `nvidia-smi -L` lists them. rabit::Allreduce needs no GPU",
        visible == nullptr ? "not set" : fmt::format("'{}'", visible));
  }
  return "";
}

}  // namespace

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report this error again
  throw CudaError(fmt::format("{}: CUDA says '{}' ({}){}", what, cudaGetErrorString(status),
                              cudaGetErrorName(status), Advice(status)));
}

OnDevice::OnDevice(int device) {
  int current = -1;
  Check(cudaGetDevice(&current), "asking for the current GPU");
  if (current == device) return;
  Check(cudaSetDevice(device), "changing to the GPU of this rank");
  before_ = current;
}

OnDevice::~OnDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
}

}  // namespace warren::device
