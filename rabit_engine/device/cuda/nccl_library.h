// Finds NCCL and loads it when it is first needed. librabit_cuda is not linked with it: the user chooses at
// run time which NCCL is used; often it is the one that PyTorch or XGBoost has already loaded.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "wire/variables.h"

namespace warren::device {

struct NcclLibrary {
  int version = 0;   ///< as returned by ncclGetVersion
  std::string file;  ///< the file that was loaded

  decltype(&ncclGetVersion) GetVersion = nullptr;
  decltype(&ncclGetErrorString) GetErrorString = nullptr;
  decltype(&ncclGetLastError) GetLastError = nullptr;
  decltype(&ncclGetUniqueId) GetUniqueId = nullptr;
  decltype(&ncclCommInitRankConfig) CommInitRankConfig = nullptr;
  decltype(&ncclCommFinalize) CommFinalize = nullptr;
  decltype(&ncclCommDestroy) CommDestroy = nullptr;
  decltype(&ncclCommAbort) CommAbort = nullptr;
  decltype(&ncclCommGetAsyncError) CommGetAsyncError = nullptr;
  decltype(&ncclGroupStart) GroupStart = nullptr;
  decltype(&ncclGroupEnd) GroupEnd = nullptr;
  decltype(&ncclAllReduce) AllReduce = nullptr;
  decltype(&ncclBroadcast) Broadcast = nullptr;
  decltype(&ncclAllGather) AllGather = nullptr;
  decltype(&ncclReduceScatter) ReduceScatter = nullptr;
};

/// Returns the files to try, best first: only the value of WARREN_NCCL_PATH or DMLC_NCCL_PATH (a file, or a
/// folder with libnccl.so.2) if one is set; otherwise the names under which the loader may find NCCL.
std::vector<std::string> NcclCandidates(const wire::LookUp& look_up);

/// Loads NCCL once; it is never unloaded. If loading fails, each call tries again and throws a CudaError that
/// lists what was tried.
const NcclLibrary& Nccl();

}  // namespace warren::device
