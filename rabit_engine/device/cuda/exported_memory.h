// Device memory shared between processes on a GPU (CUDA IPC): exports this process's memory and maps other
// processes' memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace warren::device {

/// A rank's description of one of its buffers, for other ranks. Trivially copyable.
struct ExportedBuffer {
  cudaIpcMemHandle_t handle{};  ///< handle of the whole allocation
  std::uint64_t base = 0;       ///< the allocation's address in its owner's address space
  std::uint64_t bytes = 0;      ///< the allocation's size
  /// Identifies the allocation within its process. A later allocation at the same address has another value.
  std::uint64_t allocation = 0;
  std::uint64_t offset = 0;  ///< bytes from the start of the allocation to the buffer
  std::int64_t process = 0;  ///< the owner's process id
};

/// Describes a buffer for other processes. Returns false for null pointers and for memory that cannot be
/// exported, e.g. because it is not from cudaMalloc.
bool Export(const void* buffer, ExportedBuffer& exported);

/// Memory of other processes, mapped into this one. Opening a mapping is slow, so it stays open until the
/// owner of the memory exports another allocation that overlaps it (which shows that the old allocation has
/// been freed), there are too many mappings, or this object is destroyed. All communicators of a process
/// share one object, since an allocation can be mapped only once. Thread-safe.
class ImportedMemory {
 public:
  /// The shared object of this process; it is destroyed with its last owner.
  static std::shared_ptr<ImportedMemory> OfThisProcess();
  ImportedMemory() = default;
  ImportedMemory(const ImportedMemory&) = delete;
  ImportedMemory& operator=(const ImportedMemory&) = delete;
  ~ImportedMemory();

  /// Maps a buffer of another process and returns its address in this process. Calls `wait` before closing a
  /// mapping that the device may still use. Throws CudaError, and whatever `wait` throws.
  void* Open(const ExportedBuffer& buffer, const std::function<void()>& wait);

 private:
  using Key = std::pair<std::int64_t, std::uint64_t>;  ///< process, allocation
  struct Mapping {
    void* data = nullptr;
    std::uint64_t base = 0;  ///< the allocation's address in its owner's address space
    std::uint64_t bytes = 0;
    std::list<Key>::iterator used;
  };
  void Close(std::map<Key, Mapping>::iterator mapping);

  std::mutex mutex_;
  std::map<Key, Mapping> mappings_;
  std::list<Key> order_;  ///< by last use, the most recent at the end
};

}  // namespace warren::device
