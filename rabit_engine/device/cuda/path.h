// The interface of the ways to run collectives. Each device::Path has one implementation.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <string>

#include "rabit_engine/device/operation.h"
#include "rabit_engine/device/plugin.h"

namespace warren::device {

/// Errors are CudaError and HostFailed. After an error the path can only be aborted and destroyed. Not
/// thread-safe.
class CollectivePath {
 public:
  virtual ~CollectivePath() = default;
  CollectivePath() = default;
  CollectivePath(const CollectivePath&) = delete;
  CollectivePath& operator=(const CollectivePath&) = delete;

  /// A description for users, e.g. "NCCL 2.28.9".
  virtual std::string Describe() const = 0;
  /// Whether Enqueue can be captured into a CUDA graph, because it does nothing but enqueue work that can be
  /// repeated.
  virtual bool CanBeCaptured() const { return false; }
  /// Enqueues the collectives on their streams, in this order. All ranks call it with the same collectives.
  virtual void Enqueue(std::span<const Operation> calls) = 0;
  /// Throws if the work in progress can no longer succeed. Does not wait.
  virtual void Look() {}
  /// Must be called by all ranks before the path is destroyed, unless it is aborted: afterwards no rank uses
  /// another rank's memory.
  virtual void Finish() {}
  /// Aborts the work in progress without waiting for any rank; the destructor follows.
  virtual void Abort() noexcept {}
};

/// For a single rank: copies the input to the output if they are different buffers.
std::unique_ptr<CollectivePath> MakeAlonePath();
/// A collective call. Throws CudaError if NCCL is not available.
std::unique_ptr<CollectivePath> MakeNcclPath(const WarrenDeviceHost& host);
/// For ranks on one GPU of one host. A collective call.
std::unique_ptr<CollectivePath> MakeSharedPath(const WarrenDeviceHost& host);
/// For any ranks. Enqueue returns when only the last copies to the device are still in progress.
std::unique_ptr<CollectivePath> MakeStagedPath(const WarrenDeviceHost& host);

inline cudaStream_t StreamOf(const Operation& call) {
  return static_cast<cudaStream_t>(call.stream);
}

}  // namespace warren::device
