// Rabit's C API (rabit/c_api.h).
#include "rabit/c_api.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/api/c_result.h"
#include "rabit_engine/api/face.h"
#include "rabit_engine/api/session.h"

namespace {

using warren::Operation;
using warren::api::Attempt;
using warren::api::AttemptWithSession;
using warren::api::Call;
using warren::api::LastError;
using warren::api::Prepare;
using warren::api::Session;
using warren::api::Threads;
using Face = warren::api::Face<Threads::kShare>;

constexpr int kErrorExitCode = 255;

/// Prints this thread's last error if `result`, which Attempt has returned, is not 0. Returns `result`.
int PrintIfFailed(int result) {
  if (result != 0) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", LastError().c_str());
  }
  return result;
}

/// If the call has failed, prints the error and exits, because rabit's callers do not check results. Uses
/// _Exit, because other threads may still be running.
int OrLeave(int result) {
  if (PrintIfFailed(result) != 0) std::_Exit(kErrorExitCode);
  return 0;
}

// The calls that training loops repeat. They are not exported functions, whose calls from this library would
// go through the dynamic linker's table.

int Broadcast(void* data, rbt_ulong size, int root) {
  const Call call{"RabitBroadcast"};
  return AttemptWithSession(
      call, [&](Session& session) { session.Run(call, Operation::Broadcast(data, size, root)); });
}

int Allgather(void* buffer, size_t total, size_t begin, size_t size_or_end, int dtype) {
  const Call call{"RabitAllgather"};
  return AttemptWithSession(call, [&](Session& session) {
    session.AllgatherSlice(call, buffer, session.ElementBytes(call, dtype), total, begin, size_or_end);
  });
}

int Allreduce(void* buffer, size_t count, int dtype, int op, void (*prepare)(void* arg), void* prepare_arg) {
  const Call call{"RabitAllreduce"};
  return AttemptWithSession(call, [&](Session& session) {
    session.AllreduceTyped(call, buffer, count, dtype, op, Prepare{prepare, prepare_arg});
  });
}

/// Returns the offsets of the ranks' slices, followed by the end of the last slice. Each count is multiplied
/// by `unit`. Throws Misuse if `counts` is NULL or the slices are too large.
std::vector<std::size_t> OffsetsOfCounts(Session& session, const Call& call, const size_t* counts,
                                         std::size_t unit) {
  if (counts == nullptr) session.Refuse(call, "the counts are NULL; expected one for each rank");
  std::vector<std::size_t> offsets(1, 0);
  for (int rank = 0; rank < session.world_size(); ++rank) {
    if (counts[rank] > (std::numeric_limits<std::ptrdiff_t>::max() - offsets.back()) / unit) {
      session.Refuse(call, "the slices are larger than memory can hold");
    }
    offsets.push_back(offsets.back() + counts[rank] * unit);
  }
  return offsets;
}

}  // namespace

// --- rabit's functions -------------------------------------------------------------------------------------

bool RabitInit(int argc, char* argv[]) {
  return PrintIfFailed(RabitTryInit(argc, argv)) == 0;
}

int RabitFinalize() {
  bool well = false;
  // If an earlier error ended the job, that error has already been printed, or returned by a RabitTry
  // function.
  PrintIfFailed(Attempt([&] { well = Session::Finalize(Call{"RabitFinalize"}, Threads::kShare); }));
  return well ? 1 : 0;
}

int RabitGetRingPrevRank() {
  return Face::ring_prev_rank();
}

int RabitGetRank() {
  return Face::rank();
}

int RabitGetWorldSize() {
  return Face::world_size();
}

int RabitIsDistributed() {
  return Face::is_distributed() ? 1 : 0;
}

int RabitTrackerPrint(const char* msg) {
  return OrLeave(RabitTryTrackerPrint(msg));
}

void RabitGetProcessorName(char* out_name, rbt_ulong* out_len, rbt_ulong max_len) {
  const std::string name = Face::host();
  rbt_ulong length = 0;
  if (out_name != nullptr && max_len > 0) {
    length = std::min<rbt_ulong>(name.size(), max_len - 1);
    std::memcpy(out_name, name.data(), length);
    out_name[length] = '\0';
  }
  if (out_len != nullptr) *out_len = length;
}

int RabitBroadcast(void* sendrecv_data, rbt_ulong size, int root) {
  return OrLeave(Broadcast(sendrecv_data, size, root));
}

int RabitAllgather(void* sendrecvbuf, size_t total_size, size_t beginIndex, size_t size_node_slice,
                   size_t /*size_prev_slice*/, int enum_dtype) {
  return OrLeave(Allgather(sendrecvbuf, total_size, beginIndex, size_node_slice, enum_dtype));
}

int RabitAllreduce(void* sendrecvbuf, size_t count, int enum_dtype, int enum_op,
                   void (*prepare_fun)(void* arg), void* prepare_arg) {
  return OrLeave(Allreduce(sendrecvbuf, count, enum_dtype, enum_op, prepare_fun, prepare_arg));
}

int RabitLoadCheckPoint(char** out_global_model, rbt_ulong* out_global_len, char** out_local_model,
                        rbt_ulong* out_local_len) {
  int version = 0;
  OrLeave(RabitTryLoadCheckPoint(&version, out_global_model, out_global_len, out_local_model, out_local_len));
  return version;
}

void RabitCheckPoint(const char* global_model, rbt_ulong global_len, const char* local_model,
                     rbt_ulong local_len) {
  OrLeave(RabitTryCheckPoint(global_model, global_len, local_model, local_len));
}

int RabitVersionNumber() {
  return Face::version_or(0);
}

int RabitLinkTag() {
  return 0;
}

// --- for callers that continue after an error --------------------------------------------------------------

int RabitTryInit(int argc, char* argv[]) {
  return Attempt([&] { Session::Init(Call{"RabitInit"}, argc, argv); });
}

int RabitTryFinalize() {
  return warren::api::AttemptFinalize(Call{"RabitFinalize"});
}

int RabitTryTrackerPrint(const char* msg) {
  const std::string text = msg == nullptr ? "" : msg;
  if (!Session::Find(Threads::kShare)) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  const Call call{"RabitTrackerPrint"};
  return AttemptWithSession(call, [&](Session& session) { session.TrackerPrint(call, text); });
}

int RabitTryBroadcast(void* sendrecv_data, rbt_ulong size, int root) {
  return Broadcast(sendrecv_data, size, root);
}

int RabitTryAllgather(void* sendrecvbuf, size_t total_size, size_t beginIndex, size_t size_node_slice,
                      int enum_dtype) {
  return Allgather(sendrecvbuf, total_size, beginIndex, size_node_slice, enum_dtype);
}

int RabitTryAllreduce(void* sendrecvbuf, size_t count, int enum_dtype, int enum_op,
                      void (*prepare_fun)(void* arg), void* prepare_arg) {
  return Allreduce(sendrecvbuf, count, enum_dtype, enum_op, prepare_fun, prepare_arg);
}

int RabitTryGiveUp(const char* reason) {
  const Call call{"RabitGiveUp"};
  return AttemptWithSession(call, [&](Session& session) {
    const char* const text = reason == nullptr || *reason == '\0' ? "no reason given" : reason;
    session.GiveUp(session.Where(call) + ": " + text);
  });
}

int RabitTryAllgatherV(void* sendrecvbuf, const size_t* counts, int enum_dtype) {
  const Call call{"RabitAllgatherV"};
  return AttemptWithSession(call, [&](Session& session) {
    session.Run(call,
                Operation::Allgather(sendrecvbuf, OffsetsOfCounts(session, call, counts,
                                                                  session.ElementBytes(call, enum_dtype))));
  });
}

int RabitTryReduceScatter(void* sendrecvbuf, const size_t* counts, int enum_dtype, int enum_op) {
  const Call call{"RabitReduceScatter"};
  return AttemptWithSession(call, [&](Session& session) {
    const warren::Reduction reduction = session.TypedReduction(call, enum_dtype, enum_op);
    session.Run(call,
                Operation::ReduceScatter(sendrecvbuf, OffsetsOfCounts(session, call, counts, 1), reduction));
  });
}

int RabitTryLoadCheckPoint(int* out_version, char** out_global_model, rbt_ulong* out_global_len,
                           char** out_local_model, rbt_ulong* out_local_len) {
  // The caller may use these strings until the thread's next call of this function.
  thread_local std::string global;
  thread_local std::string local;
  global.clear();
  local.clear();
  if (out_version != nullptr) *out_version = 0;
  const Call call{"RabitLoadCheckPoint"};
  return AttemptWithSession(call, [&](Session& session) {
    if (out_global_model == nullptr || out_global_len == nullptr ||
        (out_local_model == nullptr) != (out_local_len == nullptr)) {
      session.Refuse(
          call,
          "the pointer to a model and the pointer to its length must both be given, or neither for the local model");
    }
    const auto loaded = session.LoadCheckPoint(call, true, out_local_model != nullptr);
    if (loaded) {
      if (out_version != nullptr) *out_version = loaded->version;
      global = *loaded->global;
      if (out_local_model != nullptr) local = *loaded->local;
    }
    const auto give = [](std::string& bytes, char** model, rbt_ulong* length) {
      *model = bytes.empty() ? nullptr : bytes.data();
      *length = bytes.size();
    };
    give(global, out_global_model, out_global_len);
    if (out_local_model != nullptr) give(local, out_local_model, out_local_len);
  });
}

int RabitTryCheckPoint(const char* global_model, rbt_ulong global_len, const char* local_model,
                       rbt_ulong local_len) {
  const Call call{"RabitCheckPoint"};
  return AttemptWithSession(call, [&](Session& session) {
    if (global_model == nullptr && global_len > 0) {
      session.Refuse(call, "the global model is NULL, but its length is not 0");
    }
    std::string global(global_model == nullptr ? "" : global_model, global_len);
    std::optional<std::string> local;
    if (local_model != nullptr) local.emplace(local_model, local_len);
    session.CheckPoint(call, std::move(global), std::move(local));
  });
}

const char* RabitGetLastError() {
  return LastError().c_str();
}
