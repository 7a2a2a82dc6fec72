#include "rabit_engine/device/cuda/exported_memory.h"

#include <cuda.h>

#include <array>

#include "rabit_engine/device/cuda/error.h"

namespace warren::device {
namespace {

constexpr std::size_t kMostMappings = 256;

/// The driver's function, without linking the driver, which is not there where there is no GPU.
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
  unsigned long long number = 0;  // NOLINT(google-runtime-int): the driver's type
  int capable = 0;
  std::array<CUpointer_attribute, 3> names = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                              CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                              CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
  std::array<void*, 3> values = {&begin, &number, &capable};
  const auto address = reinterpret_cast<CUdeviceptr>(buffer);
  if (PointerGetAttributes()(static_cast<unsigned>(names.size()), names.data(), values.data(), address) !=
          CUDA_SUCCESS ||
      begin == 0 || capable == 0) {
    return false;
  }
  exported.allocation = number;
  exported.offset = address - begin;
  auto* const base = const_cast<char*>(static_cast<const char*>(buffer)) - exported.offset;
  if (cudaIpcGetMemHandle(&exported.handle, base) == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

ImportedMemory::~ImportedMemory() {
  for (const auto& [key, mapping] : mappings_) cudaIpcCloseMemHandle(mapping.base);
}

void* ImportedMemory::Open(int rank, const ExportedBuffer& buffer) {
  const Key key(rank, buffer.allocation);
  auto found = mappings_.find(key);
  if (found == mappings_.end()) {
    if (mappings_.size() == kMostMappings) CloseOldest();
    void* base = nullptr;
    Check(cudaIpcOpenMemHandle(&base, buffer.handle, cudaIpcMemLazyEnablePeerAccess),
          "opening another rank's memory");
    order_.push_back(key);
    found = mappings_.emplace(key, Mapping{base, std::prev(order_.end())}).first;
  }
  order_.splice(order_.end(), order_, found->second.used);
  return static_cast<std::byte*>(found->second.base) + buffer.offset;
}

void ImportedMemory::CloseOldest() {
  Check(cudaDeviceSynchronize(), "work on the GPU");  // which may be in it
  const auto oldest = mappings_.find(order_.front());
  cudaIpcCloseMemHandle(oldest->second.base);
  mappings_.erase(oldest);
  order_.pop_front();
}

}  // namespace warren::device
