#include "rabit_engine/device/cuda/gpu.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <string_view>

#include "posix/host_name.h"
#include "rabit_engine/device/cuda/error.h"
#include "rabit_engine/device/cuda/nccl_library.h"
#include "rabit_engine/device/cuda/resources.h"
#include "wire/variables.h"

namespace warren::device {
namespace {

template <std::size_t size>
void Put(std::array<char, size>& to, std::string_view text) {
  text = text.substr(0, size - 1);
  std::copy(text.begin(), text.end(), to.begin());
}

/// Returns a number that is equal for processes that can use each other's CUDA handles to memory and events:
/// these are valid within one kernel, one PID namespace and one IPC namespace.
std::uint64_t HostNumber() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string key;
  std::getline(file, key);
  // Without a boot_id (systemd's ProcSubset=pid hides it) the namespaces' numbers say nothing: those of the
  // initial namespaces are the same on every host. The process then shares with none.
  if (key.empty()) key = fmt::format("{} {}", posix::HostName(), getpid());
  for (const char* path : {"/proc/self/ns/ipc", "/proc/self/ns/pid"}) {
    struct stat status {};
    if (stat(path, &status) == 0) key += fmt::format(" {}", status.st_ino);
  }
  return std::hash<std::string>()(key);
}

/// Whether the GPU's memory and events can be exported to other processes. Tries to export both, since some
/// systems do not allow it.
bool CanShare(int device) {
  int supported = 0;
  Check(cudaDeviceGetAttribute(&supported, cudaDevAttrIpcEventSupport, device),
        "getting the properties of the GPU");
  if (supported == 0) return false;
  const OnDevice on(device);
  try {
    const Event event(Event::Use::kInterprocess);
    cudaIpcEventHandle_t event_handle{};
    Check(cudaIpcGetEventHandle(&event_handle, event.get()), "exporting an event");
    Memory memory(Memory::Where::kDevice);
    cudaIpcMemHandle_t memory_handle{};
    Check(cudaIpcGetMemHandle(&memory_handle, memory.Take(1)), "exporting memory");
    return true;
  } catch (const CudaError&) {
    return false;
  }
}

Wish WishOfUser() {
  const auto set = wire::FindVariable("WARREN_DEVICE_PATH", &wire::FromEnvironment);
  if (!set) return Wish::kAuto;
  if (const auto wish = ReadWish(set->value)) return *wish;
  throw CudaError(fmt::format("{} is \"{}\", expected auto, nccl, shared or staged", set->name, set->value));
}

}  // namespace

int SelectGpu(int local_rank) {
  int count = 0;
  Check(cudaGetDeviceCount(&count), "counting GPUs");
  if (count == 0) Check(cudaErrorNoDevice, "counting GPUs");
  const int device = local_rank % count;
  Check(cudaSetDevice(device), "selecting a GPU");
  return device;
}

int GpuOf(const void* memory) {
  int device = 0;
  if (memory == nullptr) {
    int count = 0;
    Check(cudaGetDeviceCount(&count), "counting GPUs");
    Check(cudaGetDevice(&device), "getting the current GPU");
    return device;
  }
  cudaPointerAttributes attributes{};
  Check(cudaPointerGetAttributes(&attributes, memory), "inspecting a buffer");
  if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged) {
    throw CudaError("the buffer is host memory; rabit::Allreduce takes that");
  }
  return attributes.device;
}

Place DescribePlace(int device, const std::string& trouble, bool tls) {
  Place place;
  place.device = device;
  place.process = getpid();
  place.host = HostNumber();
  place.tls = tls ? 1 : 0;
  Put(place.host_name, posix::HostName());
  try {
    if (!trouble.empty()) throw CudaError(trouble);
    place.wish = WishOfUser();
    cudaDeviceProp properties{};
    Check(cudaGetDeviceProperties(&properties, device), "getting the properties of the GPU");
    std::memcpy(place.gpu.data(), properties.uuid.bytes, place.gpu.size());
    Put(place.gpu_name, properties.name);
    place.shares = CanShare(device) ? 1 : 0;
    place.is_mig = std::string_view(properties.name).find(" MIG ") != std::string_view::npos ? 1 : 0;
  } catch (const std::exception& error) {
    Put(place.trouble, error.what());
  }
  try {
    place.nccl = Nccl().version;
  } catch (const std::exception& error) {
    Put(place.no_nccl, error.what());
  }
  return place;
}

}  // namespace warren::device
