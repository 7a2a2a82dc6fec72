// NCCL, found and loaded when it is first needed. librabit_cuda is not linked with it: which NCCL is taken is
// the user's choice, at run time, and often the one that PyTorch or XGBoost has loaded already.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "wire/variables.h"

namespace warren::device {

struct NcclLibrary {
  int version = 0;   ///< as ncclGetVersion gives it
  std::string file;  ///< what was loaded

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

/// What is tried, in this order: WARREN_NCCL_PATH or DMLC_NCCL_PATH alone, a file or a folder that has
/// libnccl.so.2; else the names under which the loader may find it.
std::vector<std::string> NcclCandidates(const wire::LookUp& look_up);

/// Loaded once and for good. Throws CudaError that lists what was tried, each time it is asked.
const NcclLibrary& Nccl();

}  // namespace warren::device
