// Arrays in GPU memory.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace warren::histgbt {

/// Throws std::runtime_error with "device=cuda: <what>: <CUDA's message>" unless `error` is cudaSuccess.
inline void CheckCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw std::runtime_error(std::string("device=cuda: ") + what + ": " + cudaGetErrorString(error));
}

/// An array in GPU memory that loses its contents when it grows. Not thread-safe.
template <typename T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t size) { resize(size); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// The elements are undefined after resizing.
  void resize(std::size_t size) {
    if (size > capacity_) {
      cudaFree(data_);  // waits for work that uses the memory
      data_ = nullptr;
      capacity_ = 0;
      const std::size_t capacity = std::max(size, size_ + size_ / 2);
      void* memory = nullptr;
      CheckCuda(cudaMalloc(&memory, capacity * sizeof(T)), "allocating GPU memory");
      data_ = static_cast<T*>(memory);
      capacity_ = capacity;
    }
    size_ = size;
  }
  void swap(DeviceArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  /// The source must be pageable memory. It may be freed after the call, because CUDA has then copied it to a
  /// staging buffer.
  void Upload(std::span<const T> from, cudaStream_t stream) {
    resize(from.size());
    if (from.empty()) return;
    CheckCuda(cudaMemcpyAsync(data_, from.data(), from.size_bytes(), cudaMemcpyHostToDevice, stream),
              "copying to the GPU");
  }
  /// Waits for the stream and returns a copy of the array.
  std::vector<T> Download(cudaStream_t stream) const {
    std::vector<T> result(size_);
    if (size_ > 0) {
      CheckCuda(cudaMemcpyAsync(result.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost, stream),
                "copying from the GPU");
    }
    CheckCuda(cudaStreamSynchronize(stream), "work on the GPU");
    return result;
  }
  void Zero(cudaStream_t stream) {
    if (size_ > 0) CheckCuda(cudaMemsetAsync(data_, 0, size_ * sizeof(T), stream), "clearing GPU memory");
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace warren::histgbt
