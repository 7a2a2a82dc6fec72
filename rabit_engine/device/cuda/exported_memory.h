// Device memory that other processes on the GPU can reach (CUDA IPC), and theirs here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>

namespace warren::device {

/// What a rank tells others of a buffer of its own. Trivially copyable.
struct ExportedBuffer {
  cudaIpcMemHandle_t handle{};   ///< of the whole allocation
  std::uint64_t allocation = 0;  ///< its number: another one at the same address has another number
  std::uint64_t offset = 0;      ///< of the buffer in it, in bytes
};

/// Null pointers and memory that cannot be exported (not of cudaMalloc, say) give none.
bool Export(const void* buffer, ExportedBuffer& exported);

/// The other ranks' memory as this process sees it. Opening takes long, so what was opened stays so, until
/// there are too many or the end. Not thread safe.
class ImportedMemory {
 public:
  ImportedMemory() = default;
  ImportedMemory(const ImportedMemory&) = delete;
  ImportedMemory& operator=(const ImportedMemory&) = delete;
  ~ImportedMemory();

  /// The buffer of another rank. Throws CudaError.
  void* Open(int rank, const ExportedBuffer& buffer);

 private:
  using Key = std::pair<int, std::uint64_t>;  ///< rank, allocation
  struct Mapping {
    void* base = nullptr;
    std::list<Key>::iterator used;
  };
  void CloseOldest();

  std::map<Key, Mapping> mappings_;
  std::list<Key> order_;  ///< the one used last at the end
};

}  // namespace warren::device
