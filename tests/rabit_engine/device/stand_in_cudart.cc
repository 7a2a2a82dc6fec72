// A stand-in for the CUDA runtime in host memory, with the functions that the CUDA part of the engine and its
// tests need. It reproduces the order of work. A stream is a thread that runs its work items one by one, some
// of them with a delay. Events, including those of other processes, count records and completions. Memory
// from cudaMalloc is an in-memory file that other processes can map. Speed, kernels and NVIDIA's errors are
// not reproduced.
//
// Environment variables: STAND_IN_GPU_IPC: "no" for GPUs that cannot be shared. STAND_IN_GPU_SHARED_BYTES:
// bytes of shared memory per block. STAND_IN_GPUS: number of GPUs; "none": no driver. STAND_IN_GPU_NAME: the
// GPUs' name.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#define STAND_IN extern "C" __attribute__((visibility("default")))

namespace {

constexpr auto kPoll = std::chrono::microseconds(20);
constexpr int kMostDelay = 60;  // microseconds

// --- memory ------------------------------------------------------------------------------------------------

/// The contents of an IPC handle.
struct Handle {
  pid_t pid;
  int file;
  std::size_t bytes;
  std::uintptr_t base;  ///< address of the memory in the process that owns it
};

struct Allocation {
  std::size_t bytes = 0;
  int file = -1;  ///< -1: cannot be exported
  int device = 0;
  bool pinned = false;
  unsigned long long number = 0;  // NOLINT(google-runtime-int): the driver's type
};

struct Mapped {
  void* data = nullptr;
  int file = -1;
};

Mapped MakeShared(std::size_t bytes) {
  Mapped mapped;
  mapped.file = memfd_create("stand-in-gpu", MFD_CLOEXEC);
  if (mapped.file < 0 || ftruncate(mapped.file, static_cast<off_t>(bytes)) != 0) return {};
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, mapped.file, 0);
  mapped.data = data == MAP_FAILED ? nullptr : data;
  return mapped;
}

void* OpenShared(const Handle& handle) {
  if (handle.pid == getpid()) return nullptr;  // as in CUDA, a process cannot open its own handles
  const std::string path = fmt::format("/proc/{}/fd/{}", handle.pid, handle.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* data = mmap(nullptr, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return data == MAP_FAILED ? nullptr : data;
}

// --- streams and events ------------------------------------------------------------------------------------

struct EventState {
  std::atomic<std::uint64_t> recorded;
  std::atomic<std::uint64_t> completed;
};

class StandInStream {
 public:
  StandInStream() : thread_([this] { Run(); }) { thread_.detach(); }

  void Give(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (capturing_) return captured_.push_back(std::move(work));
    queue_.push_back(std::move(work));
    ++given_;
    changed_.notify_all();
  }
  void BeginCapture() {
    const std::lock_guard lock(mutex_);
    capturing_ = true;
  }
  std::vector<std::function<void()>> EndCapture() {
    const std::lock_guard lock(mutex_);
    capturing_ = false;
    return std::exchange(captured_, {});
  }
  bool IsCapturing() {
    const std::lock_guard lock(mutex_);
    return capturing_;
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    const std::uint64_t last = given_;
    changed_.wait(lock, [&] { return done_ >= last; });
  }

 private:
  void Run() {
    std::minstd_rand random(std::random_device{}());
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !queue_.empty(); });
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % kMostDelay));
      work();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::uint64_t given_ = 0;
  std::uint64_t done_ = 0;
  bool capturing_ = false;
  std::vector<std::function<void()>> captured_;
  std::thread thread_;
};

/// The work captured on a stream, to be launched on streams later.
using StandInGraph = std::vector<std::function<void()>>;

struct StandInEvent {
  EventState* state = nullptr;
  int file = -1;
};

struct Machine {
  std::mutex mutex;
  std::map<std::uintptr_t, Allocation> allocations;
  std::map<void*, Handle> opened;
  std::vector<StandInStream*> streams;
  StandInStream* default_stream = nullptr;
  unsigned long long last_number = 0;  // NOLINT(google-runtime-int)
};

// Never destroyed: the streams' threads, which are not joined, may still use the machine.
Machine& TheMachine() {
  static Machine& machine = *new Machine;
  return machine;
}

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t Result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

std::string Setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

StandInStream& StreamOf(cudaStream_t stream) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  if (stream != nullptr) return *reinterpret_cast<StandInStream*>(stream);
  if (machine.default_stream == nullptr) {
    machine.default_stream = new StandInStream;
    machine.streams.push_back(machine.default_stream);
  }
  return *machine.default_stream;
}

/// Returns the allocation that contains `pointer`, or null. The caller must hold the machine's mutex.
const std::pair<const std::uintptr_t, Allocation>* Find(const void* pointer) {
  Machine& machine = TheMachine();
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto found = machine.allocations.upper_bound(address);
  if (found == machine.allocations.begin()) return nullptr;
  --found;
  return address < found->first + found->second.bytes ? &*found : nullptr;
}

cudaError_t Allocate(void** data, std::size_t bytes, bool exported, bool pinned) {
  Allocation allocation;
  allocation.bytes = std::max<std::size_t>(bytes, 1);
  allocation.device = current_device;
  allocation.pinned = pinned;
  const Mapped mapped = MakeShared(allocation.bytes);
  if (mapped.data == nullptr) return Result(cudaErrorMemoryAllocation);
  if (exported) {
    allocation.file = mapped.file;
  } else {
    close(mapped.file);
  }
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  allocation.number = ++machine.last_number;
  machine.allocations[reinterpret_cast<std::uintptr_t>(mapped.data)] = allocation;
  *data = mapped.data;
  return cudaSuccess;
}

void SynchronizeAll() {
  std::vector<StandInStream*> streams;
  {
    Machine& machine = TheMachine();
    const std::lock_guard lock(machine.mutex);
    streams = machine.streams;
  }
  for (StandInStream* const stream : streams) stream->Wait();
}

cudaError_t Free(void* data) {
  if (data == nullptr) return cudaSuccess;
  SynchronizeAll();
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  const auto found = machine.allocations.find(reinterpret_cast<std::uintptr_t>(data));
  if (found == machine.allocations.end()) return Result(cudaErrorInvalidValue);
  munmap(data, found->second.bytes);
  if (found->second.file >= 0) close(found->second.file);
  machine.allocations.erase(found);
  return cudaSuccess;
}

CUresult PointerGetAttributes(unsigned count, CUpointer_attribute* names, void** values,
                              CUdeviceptr pointer) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  const auto* found = Find(reinterpret_cast<void*>(pointer));
  for (unsigned i = 0; i < count; ++i) {
    if (names[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) {
      *static_cast<CUdeviceptr*>(values[i]) = found == nullptr ? 0 : found->first;
    } else if (names[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
      *static_cast<std::size_t*>(values[i]) = found == nullptr ? 0 : found->second.bytes;
    } else if (names[i] == CU_POINTER_ATTRIBUTE_BUFFER_ID) {
      *static_cast<unsigned long long*>(values[i]) = found == nullptr ? 0 : found->second.number;  // NOLINT
    } else if (names[i] == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) {
      *static_cast<int*>(values[i]) = found != nullptr && found->second.file >= 0 ? 1 : 0;
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

STAND_IN const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    default:
      return error == cudaSuccess ? "no error" : "an error of the stand-in";
  }
}

STAND_IN const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorInsufficientDriver ? "cudaErrorInsufficientDriver" : "cudaError";
}

STAND_IN cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

STAND_IN cudaError_t cudaGetDeviceCount(int* count) {
  const std::string gpus = Setting("STAND_IN_GPUS", "1");
  *count = gpus == "none" ? 0 : std::atoi(gpus.c_str());
  if (gpus == "none") return Result(cudaErrorInsufficientDriver);
  return Result(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

STAND_IN cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

STAND_IN cudaError_t cudaSetDevice(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return error;
  if (device < 0 || device >= count) return Result(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

STAND_IN cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = cudaDeviceProp{};
  Setting("STAND_IN_GPU_NAME", "stand-in for a GPU").copy(properties->name, sizeof properties->name - 1);
  std::to_string(device).copy(properties->uuid.bytes, sizeof properties->uuid.bytes);
  return cudaSuccess;
}

STAND_IN cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (attribute == cudaDevAttrIpcEventSupport) {
    *value = Setting("STAND_IN_GPU_IPC", "yes") == "yes" ? 1 : 0;
    return cudaSuccess;
  }
  if (attribute != cudaDevAttrMaxSharedMemoryPerBlockOptin) return Result(cudaErrorInvalidValue);
  *value = std::atoi(Setting("STAND_IN_GPU_SHARED_BYTES", "101376").c_str());
  return cudaSuccess;
}

STAND_IN cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  *attributes = cudaPointerAttributes{};
  const auto* found = Find(pointer);
  if (found == nullptr) return cudaSuccess;  // all zero: cudaMemoryTypeUnregistered
  attributes->type = found->second.pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes->device = found->second.device;
  return cudaSuccess;
}

STAND_IN cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  return Allocate(data, bytes, true, false);
}
STAND_IN cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t) {
  return Allocate(data, bytes, false, false);
}
STAND_IN cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  return Allocate(data, bytes, false, true);
}
STAND_IN cudaError_t cudaFree(void* data) {
  return Free(data);
}
STAND_IN cudaError_t cudaFreeHost(void* data) {
  return Free(data);
}

STAND_IN cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  auto* made = new StandInStream;
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  machine.streams.push_back(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
STAND_IN cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, 0);
}
// Streams are never freed: as in CUDA, the work on a destroyed stream is still done.
STAND_IN cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
STAND_IN cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  StreamOf(stream).Wait();
  return cudaSuccess;
}
STAND_IN cudaError_t cudaDeviceSynchronize() {
  SynchronizeAll();
  return cudaSuccess;
}
STAND_IN cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = StreamOf(stream).IsCapturing() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
STAND_IN cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  StreamOf(stream).BeginCapture();
  return cudaSuccess;
}
STAND_IN cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(new StandInGraph(StreamOf(stream).EndCapture()));
  return cudaSuccess;
}
STAND_IN cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph,
                                          unsigned long long) {  // NOLINT(google-runtime-int): CUDA's type
  *instance = reinterpret_cast<cudaGraphExec_t>(new StandInGraph(*reinterpret_cast<StandInGraph*>(graph)));
  return cudaSuccess;
}
STAND_IN cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream) {
  for (const auto& work : *reinterpret_cast<StandInGraph*>(instance)) StreamOf(stream).Give(work);
  return cudaSuccess;
}
STAND_IN cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<StandInGraph*>(graph);
  return cudaSuccess;
}
STAND_IN cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance) {
  delete reinterpret_cast<StandInGraph*>(instance);
  return cudaSuccess;
}
STAND_IN cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  StreamOf(stream).Give([=] { function(argument); });
  return cudaSuccess;
}

STAND_IN cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                     cudaStream_t stream) {
  bool pageable = false;
  {
    Machine& machine = TheMachine();
    const std::lock_guard lock(machine.mutex);
    const auto known = [&machine](const void* pointer) {
      if (Find(pointer) != nullptr) return true;
      for (const auto& [base, handle] : machine.opened) {
        if (pointer >= base && pointer < static_cast<const char*>(base) + handle.bytes) return true;
      }
      return false;
    };
    pageable = !known(to) || !known(from);
  }
  StandInStream& on = StreamOf(stream);
  on.Give([=] { std::memmove(to, from, bytes); });
  if (pageable) on.Wait();
  return cudaSuccess;
}
STAND_IN cudaError_t cudaMemsetAsync(void* data, int byte, std::size_t bytes, cudaStream_t stream) {
  StreamOf(stream).Give([=] { std::memset(data, byte, bytes); });
  return cudaSuccess;
}
STAND_IN cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  return cudaStreamSynchronize(nullptr);
}

STAND_IN cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const Mapped mapped = MakeShared(sizeof(EventState));
  if (mapped.data == nullptr) return Result(cudaErrorMemoryAllocation);
  *event =
      reinterpret_cast<cudaEvent_t>(new StandInEvent{static_cast<EventState*>(mapped.data), mapped.file});
  return cudaSuccess;
}
// The event's state is never freed, as streams may still access it.
STAND_IN cudaError_t cudaEventDestroy(cudaEvent_t event) {
  auto* made = reinterpret_cast<StandInEvent*>(event);
  if (made->file >= 0) close(made->file);
  delete made;
  return cudaSuccess;
}
STAND_IN cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  EventState* state = reinterpret_cast<StandInEvent*>(event)->state;
  const std::uint64_t number = ++state->recorded;
  StreamOf(stream).Give([=] {
    std::uint64_t before = state->completed;
    while (before < number && !state->completed.compare_exchange_weak(before, number)) {
    }
  });
  return cudaSuccess;
}
STAND_IN cudaError_t cudaEventQuery(cudaEvent_t event) {
  const EventState* state = reinterpret_cast<StandInEvent*>(event)->state;
  return Result(state->completed >= state->recorded ? cudaSuccess : cudaErrorNotReady);
}
STAND_IN cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const EventState* state = reinterpret_cast<StandInEvent*>(event)->state;
  const std::uint64_t number = state->recorded;
  StreamOf(stream).Give([=] {
    while (state->completed < number) std::this_thread::sleep_for(kPoll);
  });
  return cudaSuccess;
}

STAND_IN cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  const Handle own{getpid(), reinterpret_cast<StandInEvent*>(event)->file, sizeof(EventState), 0};
  std::memcpy(handle, &own, sizeof own);
  return cudaSuccess;
}
STAND_IN cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  Handle theirs{};
  std::memcpy(&theirs, &handle, sizeof theirs);
  void* state = OpenShared(theirs);
  if (state == nullptr) return Result(cudaErrorInvalidResourceHandle);
  *event = reinterpret_cast<cudaEvent_t>(new StandInEvent{static_cast<EventState*>(state), -1});
  return cudaSuccess;
}
STAND_IN cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* data) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  const auto* found = Find(data);
  if (found == nullptr || found->second.file < 0) return Result(cudaErrorInvalidValue);
  const Handle own{getpid(), found->second.file, found->second.bytes, found->first};
  std::memcpy(handle, &own, sizeof own);
  return cudaSuccess;
}
STAND_IN cudaError_t cudaIpcOpenMemHandle(void** data, cudaIpcMemHandle_t handle, unsigned) {
  Handle theirs{};
  std::memcpy(&theirs, &handle, sizeof theirs);
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  // An earlier mapping of the same memory must be closed first.
  for (const auto& [where, open] : machine.opened) {
    if (open.pid == theirs.pid && open.base < theirs.base + theirs.bytes &&
        theirs.base < open.base + open.bytes)
      return Result(cudaErrorAlreadyMapped);
  }
  *data = OpenShared(theirs);
  if (*data == nullptr) return Result(cudaErrorInvalidResourceHandle);
  machine.opened[*data] = theirs;
  return cudaSuccess;
}
STAND_IN cudaError_t cudaIpcCloseMemHandle(void* data) {
  SynchronizeAll();
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  const auto found = machine.opened.find(data);
  if (found == machine.opened.end()) return Result(cudaErrorInvalidValue);
  munmap(data, found->second.bytes);
  machine.opened.erase(found);
  return cudaSuccess;
}

STAND_IN cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                      unsigned long long,
                                                      cudaDriverEntryPointQueryResult* found) {
  const bool known = std::string_view(name) == "cuPointerGetAttributes";
  *function = known ? reinterpret_cast<void*>(&PointerGetAttributes) : nullptr;
  if (found != nullptr) *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
