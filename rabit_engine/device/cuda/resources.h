// RAII wrappers for CUDA resources.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cstddef>
#include <utility>

#include "rabit_engine/device/cuda/error.h"

namespace warren::device {

/// An event without timing. With kInterprocess, other processes can wait for it.
class Event {
 public:
  enum class Use { kHere, kInterprocess };
  explicit Event(Use use = Use::kHere) {
    const unsigned flags = use == Use::kInterprocess ? cudaEventDisableTiming | cudaEventInterprocess
                                                     : static_cast<unsigned>(cudaEventDisableTiming);
    Check(cudaEventCreateWithFlags(&event_, flags), "creating an event");
  }
  /// Opens the event of another process.
  explicit Event(const cudaIpcEventHandle_t& handle) {
    Check(cudaIpcOpenEventHandle(&event_, handle), "opening another rank's event");
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }

  cudaEvent_t get() const { return event_; }
  void Record(cudaStream_t stream) { Check(cudaEventRecord(event_, stream), "recording an event"); }
  /// Makes work that is enqueued on `stream` from now on wait for the work before the last Record.
  void Hold(cudaStream_t stream) const {
    Check(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event");
  }
  bool IsDone() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    Check(status, "work on the GPU");
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// A stream that does not synchronize with the default stream.
class CudaStream {
 public:
  CudaStream() { Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream"); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Device memory or pinned host memory. Grows on demand, without keeping its contents.
class Memory {
 public:
  enum class Where { kDevice, kHost };
  explicit Memory(Where where) : where_(where) {}
  Memory(Memory&& other) noexcept
      : where_(other.where_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Memory& operator=(Memory&&) = delete;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { Free(); }

  /// Returns at least `bytes` bytes. Memory returned before must no longer be in use.
  void* Take(std::size_t bytes) {
    if (bytes <= bytes_) return data_;
    Free();
    // The size is rounded up, so that the memory rarely grows, but to less than twice the size needed.
    constexpr std::size_t kLarge = std::size_t{64} << 20;
    constexpr std::size_t kStep = std::size_t{2} << 20;
    bytes = bytes < kLarge ? std::bit_ceil(bytes) : (bytes + kStep - 1) / kStep * kStep;
    if (where_ == Where::kDevice) {
      Check(cudaMalloc(&data_, bytes), "allocating GPU memory");
    } else {
      Check(cudaHostAlloc(&data_, bytes, cudaHostAllocPortable), "allocating pinned memory");
    }
    bytes_ = bytes;
    return data_;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void Free() {
    if (data_ == nullptr) return;
    where_ == Where::kDevice ? cudaFree(data_) : cudaFreeHost(data_);
    data_ = nullptr;
    bytes_ = 0;
  }

  Where where_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace warren::device
