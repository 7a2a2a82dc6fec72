// Device memory that other processes on the GPU can reach (CUDA IPC), and theirs here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <utility>

namespace warren::device {

/// What a rank tells others of a buffer of its own. Trivially copyable.
struct ExportedBuffer {
  cudaIpcMemHandle_t handle{};   ///< of the whole allocation
  std::uint64_t base = 0;        ///< where it begins, as its owner sees it
  std::uint64_t bytes = 0;       ///< how large it is
  std::uint64_t allocation = 0;  ///< its number: another one at the same address has another number
  std::uint64_t offset = 0;      ///< of the buffer in it, in bytes
};

/// Null pointers and memory that cannot be exported (not of cudaMalloc, say) give none.
bool Export(const void* buffer, ExportedBuffer& exported);

/// The other ranks' memory as this process sees it. Opening takes long, so what was opened stays so, until
/// its owner has something else at the same place (which is how it is found out that it was freed), there are
/// too many, or the end. Not thread safe.
class ImportedMemory {
 public:
  ImportedMemory() = default;
  ImportedMemory(const ImportedMemory&) = delete;
  ImportedMemory& operator=(const ImportedMemory&) = delete;
  ~ImportedMemory();

  /// The buffer of another rank. `wait` is called before something is closed that the device may still work
  /// on. Throws CudaError, and what `wait` throws.
  void* Open(int rank, const ExportedBuffer& buffer, const std::function<void()>& wait);
  void CloseAll();

 private:
  using Key = std::pair<int, std::uint64_t>;  ///< rank, allocation
  struct Mapping {
    void* data = nullptr;
    std::uint64_t base = 0;  ///< as its owner sees it
    std::uint64_t bytes = 0;
    std::list<Key>::iterator used;
  };
  void Close(std::map<Key, Mapping>::iterator mapping);

  std::map<Key, Mapping> mappings_;
  std::list<Key> order_;  ///< the one used last at the end
};

}  // namespace warren::device
