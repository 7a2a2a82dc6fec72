// The C face: rabit/c_api.h.
#include "rabit/c_api.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "rabit_engine/api/face.h"
#include "rabit_engine/api/session.h"

namespace {

using warren::api::Call;
using warren::api::Prepare;
using warren::api::Session;
using warren::api::Threads;
using Face = warren::api::Face<Threads::kShare>;

constexpr int kErrorExitCode = 255;

void Print(const std::exception& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", error.what());
}

/// Runs the call with the session of this thread. There is no way to tell a C caller of an error: print it
/// and leave. _Exit: other threads may be in the middle of anything.
template <typename Function>
auto OrLeave(const Call& call, Function&& function) {
  try {
    return function(*Session::Require(call, Threads::kShare));
  } catch (const std::exception& error) {
    Print(error);
    std::_Exit(kErrorExitCode);
  }
}

}  // namespace

bool RabitInit(int argc, char* argv[]) {
  try {
    Session::Init(Call{"RabitInit"}, argc, argv);
    return true;
  } catch (const std::exception& error) {
    Print(error);
    return false;
  }
}

int RabitFinalize() {
  try {
    return Session::Finalize(Call{"RabitFinalize"}, Threads::kShare) ? 1 : 0;
  } catch (const std::exception& error) {
    Print(error);
    return 0;
  }
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
  const std::string text = msg == nullptr ? "" : msg;
  if (!Session::Find(Threads::kShare)) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  const Call call{"RabitTrackerPrint"};
  OrLeave(call, [&](Session& session) { session.TrackerPrint(call, text); });
  return 0;
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
  const Call call{"RabitBroadcast"};
  OrLeave(call, [&](Session& session) { session.Broadcast(call, sendrecv_data, size, root); });
  return 0;
}

int RabitAllgather(void* sendrecvbuf, size_t total_size, size_t beginIndex, size_t size_node_slice,
                   size_t /*size_prev_slice*/, int enum_dtype) {
  const Call call{"RabitAllgather"};
  OrLeave(call, [&](Session& session) {
    session.AllgatherSlice(call, sendrecvbuf, session.ElementBytes(call, enum_dtype), total_size, beginIndex,
                           size_node_slice);
  });
  return 0;
}

int RabitAllreduce(void* sendrecvbuf, size_t count, int enum_dtype, int enum_op,
                   void (*prepare_fun)(void* arg), void* prepare_arg) {
  const Call call{"RabitAllreduce"};
  OrLeave(call, [&](Session& session) {
    session.AllreduceTyped(call, sendrecvbuf, count, enum_dtype, enum_op, Prepare{prepare_fun, prepare_arg});
  });
  return 0;
}

int RabitLoadCheckPoint(char** out_global_model, rbt_ulong* out_global_len, char** out_local_model,
                        rbt_ulong* out_local_len) {
  // The caller's until the next call.
  thread_local std::string global;
  thread_local std::string local;
  global.clear();
  local.clear();
  const Call call{"RabitLoadCheckPoint"};
  const int version = OrLeave(call, [&](Session& session) {
    if (out_global_model == nullptr || out_global_len == nullptr ||
        (out_local_model == nullptr) != (out_local_len == nullptr)) {
      session.Refuse(call,
                     "the places for a model and for its length have to be given both or, for the local "
                     "model, neither");
    }
    const auto loaded = session.LoadCheckPoint(call, true, out_local_model != nullptr);
    if (!loaded) return 0;
    global = *loaded->global;
    if (out_local_model != nullptr) local = *loaded->local;
    return loaded->version;
  });
  const auto give = [](std::string& bytes, char** model, rbt_ulong* length) {
    *model = bytes.empty() ? nullptr : bytes.data();
    *length = bytes.size();
  };
  give(global, out_global_model, out_global_len);
  if (out_local_model != nullptr) give(local, out_local_model, out_local_len);
  return version;
}

void RabitCheckPoint(const char* global_model, rbt_ulong global_len, const char* local_model,
                     rbt_ulong local_len) {
  const Call call{"RabitCheckPoint"};
  OrLeave(call, [&](Session& session) {
    if (global_model == nullptr && global_len > 0) {
      session.Refuse(call, "the global model is null, and its length is not 0");
    }
    std::string global(global_model == nullptr ? "" : global_model, global_len);
    std::optional<std::string> local;
    if (local_model != nullptr) local.emplace(local_model, local_len);
    session.CheckPoint(call, std::move(global), std::move(local));
  });
}

int RabitVersionNumber() {
  return Face::version_or(0);
}

int RabitLinkTag() {
  return 0;
}
