// How collectives run once it is settled who uses which GPU: one class for each device::Path.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <string>

#include "rabit_engine/device/collective.h"
#include "rabit_engine/device/plugin.h"

namespace warren::device {

/// Errors are CudaError and HostFailed. After an error it can only be destroyed. Not thread safe.
class CollectivePath {
 public:
  virtual ~CollectivePath() = default;
  CollectivePath() = default;
  CollectivePath(const CollectivePath&) = delete;
  CollectivePath& operator=(const CollectivePath&) = delete;

  /// For people: "NCCL 2.28.9".
  virtual std::string Describe() const = 0;
  /// Whether Enqueue only puts work on the streams, and work that can be done again: a CUDA graph.
  virtual bool CanBeCaptured() const { return false; }
  /// Puts the collectives on their streams, in this order. All ranks call it with the same ones.
  virtual void Enqueue(std::span<const Collective> calls) = 0;
  /// Throws when what is under way cannot end well any more. Does not wait.
  virtual void Look() {}
  /// The ranks end together: nothing that others may still need goes before they are through with it.
  virtual void Finish() {}
  /// Breaks off what is under way and waits for nobody; the destructor follows.
  virtual void Abort() noexcept {}
};

/// A world of one: a copy where the two buffers differ.
std::unique_ptr<CollectivePath> MakeAlonePath();
/// Throws CudaError where NCCL cannot be had. Collective.
std::unique_ptr<CollectivePath> MakeNcclPath(const WarrenDeviceHost& host);
/// For ranks on one GPU of one host. Collective.
std::unique_ptr<CollectivePath> MakeSharedPath(const WarrenDeviceHost& host);
/// For any ranks. Enqueue returns when all but the last copies to the device are done.
std::unique_ptr<CollectivePath> MakeStagedPath(const WarrenDeviceHost& host);

inline cudaStream_t StreamOf(const Collective& call) {
  return static_cast<cudaStream_t>(call.stream);
}

}  // namespace warren::device
