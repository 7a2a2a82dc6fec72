#include "rabit_engine/device/cuda/exported_memory.h"

#include <cuda.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <utility>

#include "rabit_engine/device/cuda/error.h"

namespace warren::device {
namespace {

constexpr std::size_t kMostMappings = 4096;

/// The driver's function cuPointerGetAttributes, looked up at run time: the driver is not linked, since it is
/// missing on machines without a GPU.
decltype(&cuPointerGetAttributes) PointerGetAttributes() {
  static const auto function = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    Check(
        cudaGetDriverEntryPointByVersion("cuPointerGetAttributes", &entry, 12000, cudaEnableDefault, &found),
        "looking for cuPointerGetAttributes");
    if (entry == nullptr) throw CudaError("the NVIDIA driver has no cuPointerGetAttributes");
    return reinterpret_cast<decltype(&cuPointerGetAttributes)>(entry);
  }();
  return function;
}

}  // namespace

bool Export(const void* buffer, ExportedBuffer& exported) {
  if (buffer == nullptr) return false;
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  unsigned long long number = 0;  // NOLINT(google-runtime-int): the driver's type
  int capable = 0;
  std::array<CUpointer_attribute, 4> names = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                              CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                              CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
  std::array<void*, 4> values = {&begin, &bytes, &number, &capable};
  const auto address = reinterpret_cast<CUdeviceptr>(buffer);
  if (PointerGetAttributes()(static_cast<unsigned>(names.size()), names.data(), values.data(), address) !=
          CUDA_SUCCESS ||
      begin == 0 || capable == 0) {
    return false;
  }
  exported.allocation = number;
  exported.base = begin;
  exported.bytes = bytes;
  exported.offset = address - begin;
  exported.process = getpid();
  auto* const base = const_cast<char*>(static_cast<const char*>(buffer)) - exported.offset;
  if (cudaIpcGetMemHandle(&exported.handle, base) == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

std::shared_ptr<ImportedMemory> ImportedMemory::OfThisProcess() {
  static std::mutex mutex;
  static std::weak_ptr<ImportedMemory> current;
  const std::lock_guard lock(mutex);
  std::shared_ptr<ImportedMemory> memory = current.lock();
  if (!memory) current = memory = std::make_shared<ImportedMemory>();
  return memory;
}

ImportedMemory::~ImportedMemory() {
  while (!mappings_.empty()) Close(mappings_.begin());
}

void ImportedMemory::Close(std::map<Key, Mapping>::iterator mapping) {
  cudaIpcCloseMemHandle(mapping->second.data);
  order_.erase(mapping->second.used);
  mappings_.erase(mapping);
}

void* ImportedMemory::Open(const ExportedBuffer& buffer, const std::function<void()>& wait) {
  const Key key(buffer.process, buffer.allocation);
  const std::lock_guard lock(mutex_);
  auto found = mappings_.find(key);
  if (found == mappings_.end()) {
    // Mapped allocations that overlap this one have been freed by their owner. Their mappings are closed
    // first, since nothing else can be mapped in their place.
    bool waited = false;
    const auto close = [&](auto mapping) {
      if (!std::exchange(waited, true)) wait();
      Close(mapping);
    };
    for (auto next = mappings_.begin(); next != mappings_.end();) {
      const auto mapping = next++;
      const Mapping& old = mapping->second;
      if (mapping->first.first == buffer.process && old.base < buffer.base + buffer.bytes &&
          buffer.base < old.base + old.bytes)
        close(mapping);
    }
    if (mappings_.size() >= kMostMappings) close(mappings_.find(order_.front()));
    void* data = nullptr;
    Check(cudaIpcOpenMemHandle(&data, buffer.handle, cudaIpcMemLazyEnablePeerAccess),
          "opening another rank's memory by CUDA IPC (WARREN_DEVICE_PATH=staged does not need it)");
    order_.push_back(key);
    found = mappings_.emplace(key, Mapping{data, buffer.base, buffer.bytes, std::prev(order_.end())}).first;
  }
  order_.splice(order_.end(), order_, found->second.used);
  return static_cast<std::byte*>(found->second.data) + buffer.offset;
}

}  // namespace warren::device
