#include "rabit_engine/device/cuda/error.h"

#include <fmt/format.h>

#include <cstdlib>

namespace warren::device {
namespace {

/// Returns advice for the user if the error means that no GPU can be used at all; otherwise an empty string.
std::string Advice(cudaError_t status) {
  if (status == cudaErrorInsufficientDriver || status == cudaErrorInitializationError ||
      status == cudaErrorSystemDriverMismatch) {
    return ". No GPU can be used here: either there is no NVIDIA driver, or it is too old for the CUDA that this library was built with; check with `nvidia-smi`. "
           "rabit::Allreduce needs no GPU";
  }
  if (status == cudaErrorNoDevice || status == cudaErrorInvalidDevice ||
      status == cudaErrorDevicesUnavailable) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return fmt::format(
        ". No GPU can be used here: there is none, or this process may not use it (CUDA_VISIBLE_DEVICES is {}); `nvidia-smi -L` lists them. rabit::Allreduce needs no GPU",
        visible == nullptr ? "not set" : fmt::format("'{}'", visible));
  }
  return "";
}

}  // namespace

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report this error again
  throw CudaError(fmt::format("{}: CUDA reported '{}' ({}){}", what, cudaGetErrorString(status),
                              cudaGetErrorName(status), Advice(status)));
}

OnDevice::OnDevice(int device) {
  int current = -1;
  Check(cudaGetDevice(&current), "getting the current GPU");
  if (current == device) return;
  Check(cudaSetDevice(device), "switching to the GPU of this rank");
  before_ = current;
}

OnDevice::~OnDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
}

}  // namespace warren::device
