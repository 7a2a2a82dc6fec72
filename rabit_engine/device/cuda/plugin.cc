// The entry point of librabit_cuda.so: the table of plugin.h, implemented with the classes of this folder.
#include "rabit_engine/device/plugin.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rabit_engine/base/say.h"
#include "rabit_engine/device/cuda/error.h"
#include "rabit_engine/device/cuda/gpu.h"
#include "rabit_engine/device/cuda/path.h"
#include "rabit_engine/device/cuda/place.h"
#include "rabit_engine/device/cuda/resources.h"
#include "rabit_engine/device/cuda/waiting.h"

using warren::Collective;
using namespace warren::device;  // NOLINT(google-build-using-namespace): the functions below are C's

struct WarrenDeviceGroup {
  const WarrenDeviceHost* host = nullptr;
  int device = 0;
  std::unique_ptr<CollectivePath> path;
  Memory scratch{Memory::Where::kDevice};
  std::string description;
};

namespace {

/// Calls `function`. Returns nullptr on success, "" if a function of WarrenDeviceHost failed, otherwise the
/// text of the error, valid until the next call on this thread.
template <typename Function>
const char* AsText(Function&& function) {
  thread_local std::string text;
  try {
    function();
    return nullptr;
  } catch (const HostFailed&) {
    return "";
  } catch (const std::exception& error) {
    text = error.what();
    if (text.empty()) text = "an error without a description";
    return text.c_str();
  }
}

std::unique_ptr<CollectivePath> MakePath(Path path, const WarrenDeviceHost& host) {
  switch (path) {
    case Path::kAlone:
      return MakeAlonePath();
    case Path::kNccl:
      return MakeNcclPath(host);
    case Path::kShared:
      return MakeSharedPath(host);
    default:
      return MakeStagedPath(host);
  }
}

/// Prints, on rank 0, a line about the device collectives of the job; with debug, also a line on each rank.
void Report(const WarrenDeviceHost& host, const std::vector<Place>& places, const Choice& choice,
            const CollectivePath& path) {
  const Place& own = places[static_cast<std::size_t>(host.rank)];
  if (host.debug != 0) {
    warren::Say("rabit: rank {} uses GPU {} on {} ({})", host.rank, own.device, own.host_name.data(),
                own.gpu_name.data());
  }
  if (host.rank != 0) return;
  std::set<std::array<unsigned char, 16>> gpus;
  std::set<std::string> names;
  for (const Place& place : places) {
    gpus.insert(place.gpu);
    names.insert(place.gpu_name.data());
  }
  warren::Say("rabit: device collectives by {} ({}); {} ranks on {} GPUs ({}{})", path.Describe(), choice.why,
              places.size(), gpus.size(), *names.begin(), names.size() > 1 ? " and others" : "");
}

std::unique_ptr<WarrenDeviceGroup> Open(const WarrenDeviceHost& host, const void* memory) {
  auto group = std::make_unique<WarrenDeviceGroup>();
  group->host = &host;
  std::string trouble;
  try {
    group->device = GpuOf(memory);
  } catch (const CudaError& error) {
    trouble = error.what();
  }
  std::vector<Place> places(static_cast<std::size_t>(host.world_size));
  places[static_cast<std::size_t>(host.rank)] = DescribePlace(group->device, trouble, host.tls != 0);
  CheckHost(host.allgather(host.context, places.data(), sizeof(Place)));
  const Choice choice = Choose(places);
  if (!choice.trouble.empty()) throw CudaError(choice.trouble);
  const OnDevice on(group->device);
  group->path = MakePath(choice.path, host);
  group->description = group->path->Describe();
  Report(host, places, choice, *group->path);
  return group;
}

void RequireDevice(const WarrenDeviceGroup& group, const Operation& call) {
  if (call.count == 0) return;
  const bool sends = call.kind != Collective::kBroadcast || call.root == group.host->rank;
  for (const void* buffer : {sends ? call.send : call.receive, static_cast<const void*>(call.receive)}) {
    const int device = GpuOf(buffer);
    if (device == group.device) continue;
    throw CudaError(
        fmt::format("a buffer is on GPU {}; this rank's collectives use GPU {}, as the first one did", device,
                    group.device));
  }
}

const char* SelectEntry(std::int32_t local_rank, std::int32_t* device) {
  return AsText([&] { *device = SelectGpu(local_rank); });
}

const char* OpenEntry(const WarrenDeviceHost* host, const void* memory, WarrenDeviceGroup** group) {
  return AsText([&] { *group = Open(*host, memory).release(); });
}

void CloseEntry(WarrenDeviceGroup* group, std::int32_t abort) {
  std::unique_ptr<WarrenDeviceGroup> owned(group);
  AsText([&] {
    const OnDevice on(owned->device);
    if (abort != 0 || AsText([&] { owned->path->Finish(); }) != nullptr) owned->path->Abort();
    owned->path.reset();
    owned.reset();
  });
}

const char* DescribeEntry(WarrenDeviceGroup* group) {
  return group->description.c_str();
}

std::int32_t CapturesEntry(WarrenDeviceGroup* group) {
  return group->path->CanBeCaptured() ? 1 : 0;
}

const char* EnqueueEntry(WarrenDeviceGroup* group, const Operation* calls, std::size_t num_calls) {
  return AsText([&] {
    const OnDevice on(group->device);
    for (std::size_t i = 0; i < num_calls; ++i) RequireDevice(*group, calls[i]);
    group->path->Enqueue({calls, num_calls});
  });
}

const char* SetMarkEntry(WarrenDeviceGroup* group, void* stream, void** mark) {
  return AsText([&] {
    const OnDevice on(group->device);
    auto event = std::make_unique<Event>();
    event->Record(static_cast<cudaStream_t>(stream));
    *mark = event.release();
  });
}

const char* IsReachedEntry(void* mark, std::int32_t* reached) {
  return AsText([&] { *reached = static_cast<const Event*>(mark)->IsDone() ? 1 : 0; });
}

const char* WaitEntry(WarrenDeviceGroup* group, void* mark) {
  return AsText([&] {
    const OnDevice on(group->device);
    const auto& end = *static_cast<const Event*>(mark);
    try {
      WaitFor(*group->host, [&] {
        if (end.IsDone()) return true;
        group->path->Look();
        return false;
      });
    } catch (const CudaError& error) {
      ThrowUnlessLost(*group->host, error);
    }
  });
}

void DropMarkEntry(void* mark) {
  delete static_cast<Event*>(mark);
}

const char* LookEntry(WarrenDeviceGroup* group) {
  return AsText([&] { group->path->Look(); });
}

const char* ScratchEntry(WarrenDeviceGroup* group, std::size_t bytes, void** memory) {
  return AsText([&] {
    const OnDevice on(group->device);
    *memory = group->scratch.Take(bytes);
  });
}

const char* CopyEntry(void* to, const void* from, std::size_t bytes, void* stream) {
  return AsText([&] {
    if (bytes == 0) return;
    cudaPointerAttributes attributes{};
    Check(cudaPointerGetAttributes(&attributes, to), "inspecting a buffer");
    const bool to_device =
        attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
    const OnDevice on_device(to_device ? attributes.device : GpuOf(from));
    auto* const on = static_cast<cudaStream_t>(stream);
    Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, on), "copying a result");
    Check(cudaStreamSynchronize(on), "copying a result");
  });
}

const char* IsCapturedEntry(void* stream, std::int32_t* captured) {
  return AsText([&] {
    *captured = 0;
    if (stream == nullptr) return;  // the default stream cannot be captured
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    Check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status), "inspecting a stream");
    *captured = status == cudaStreamCaptureStatusNone ? 0 : 1;
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const WarrenDevices* warren_devices() {
  static const WarrenDevices table = {kWarrenDevicesVersion, SelectEntry,   OpenEntry,      CloseEntry,
                                      DescribeEntry,         CapturesEntry, EnqueueEntry,   SetMarkEntry,
                                      IsReachedEntry,        WaitEntry,     DropMarkEntry,  LookEntry,
                                      ScratchEntry,          CopyEntry,     IsCapturedEntry};
  return &table;
}
