#include "rabit_engine/device/cuda/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "rabit_engine/device/cuda/error.h"

namespace warren::device {
namespace {

constexpr char kFile[] = "libnccl.so.2";

bool IsFolder(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Looks up the library's functions. Returns the name of the first missing function; empty if none is
/// missing.
std::string FillIn(NcclLibrary& nccl, void* library) {
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(nccl.GetVersion, "ncclGetVersion");
  find(nccl.GetErrorString, "ncclGetErrorString");
  find(nccl.GetLastError, "ncclGetLastError");
  find(nccl.GetUniqueId, "ncclGetUniqueId");
  find(nccl.CommInitRankConfig, "ncclCommInitRankConfig");
  find(nccl.CommFinalize, "ncclCommFinalize");
  find(nccl.CommDestroy, "ncclCommDestroy");
  find(nccl.CommAbort, "ncclCommAbort");
  find(nccl.CommGetAsyncError, "ncclCommGetAsyncError");
  find(nccl.GroupStart, "ncclGroupStart");
  find(nccl.GroupEnd, "ncclGroupEnd");
  find(nccl.AllReduce, "ncclAllReduce");
  find(nccl.Broadcast, "ncclBroadcast");
  find(nccl.AllGather, "ncclAllGather");
  find(nccl.ReduceScatter, "ncclReduceScatter");
  return missing;
}

NcclLibrary Load() {
  std::string tried;
  for (const std::string& file : NcclCandidates(&wire::FromEnvironment)) {
    NcclLibrary nccl;
    nccl.file = file;
    // The library is never closed, because NCCL's threads may still run its code.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += fmt::format("{}{}", tried.empty() ? "" : "; ", dlerror());
      continue;
    }
    const std::string missing = FillIn(nccl, library);
    if (!missing.empty()) {
      tried += fmt::format("{}{} has no {}", tried.empty() ? "" : "; ", file, missing);
      continue;
    }
    if (nccl.GetVersion(&nccl.version) == ncclSuccess) return nccl;
    tried += fmt::format("{}{} does not report its version", tried.empty() ? "" : "; ", file);
  }
  throw CudaError(fmt::format("{}. WARREN_NCCL_PATH names the file, or its folder", tried));
}

}  // namespace

std::vector<std::string> NcclCandidates(const wire::LookUp& look_up) {
  for (const char* name : {"WARREN_NCCL_PATH", "DMLC_NCCL_PATH"}) {
    const auto path = wire::FindVariable(name, look_up);
    if (!path) continue;
    return {IsFolder(path->value) ? path->value + "/" + kFile : path->value};
  }
  return {kFile, "libnccl.so"};
}

const NcclLibrary& Nccl() {
  static const NcclLibrary nccl = Load();
  return nccl;
}

}  // namespace warren::device
