// Device memory that other processes on the GPU can reach (CUDA IPC), and theirs here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace warren::device {

/// What a rank tells others of a buffer of its own. Trivially copyable.
struct ExportedBuffer {
  cudaIpcMemHandle_t handle{};   ///< of the whole allocation
  std::uint64_t base = 0;        ///< where it begins, as its owner sees it
  std::uint64_t bytes = 0;       ///< how large it is
  std::uint64_t allocation = 0;  ///< its number: another one at the same address has another number
  std::uint64_t offset = 0;      ///< of the buffer in it, in bytes
  std::int64_t process = 0;      ///< whose it is
};

/// Null pointers and memory that cannot be exported (not of cudaMalloc, say) give none.
bool Export(const void* buffer, ExportedBuffer& exported);

/// Other processes' memory as this one sees it. Opening takes long, so what was opened stays so, until its
/// owner has something else at the same place (which is how it is found out that it was freed), there are too
/// many, or the end. All communicators of a process share one, since a place can be mapped once only. Thread
/// safe.
class ImportedMemory {
 public:
  /// It ends with the last that has it.
  static std::shared_ptr<ImportedMemory> OfThisProcess();
  ImportedMemory() = default;
  ImportedMemory(const ImportedMemory&) = delete;
  ImportedMemory& operator=(const ImportedMemory&) = delete;
  ~ImportedMemory();

  /// A buffer of another process. `wait` is called before something is closed that the device may still work
  /// on. Throws CudaError, and what `wait` throws.
  void* Open(const ExportedBuffer& buffer, const std::function<void()>& wait);

 private:
  using Key = std::pair<std::int64_t, std::uint64_t>;  ///< process, allocation
  struct Mapping {
    void* data = nullptr;
    std::uint64_t base = 0;  ///< as its owner sees it
    std::uint64_t bytes = 0;
    std::list<Key>::iterator used;
  };
  void Close(std::map<Key, Mapping>::iterator mapping);

  std::mutex mutex_;
  std::map<Key, Mapping> mappings_;
  std::list<Key> order_;  ///< the one used last at the end
};

}  // namespace warren::device
