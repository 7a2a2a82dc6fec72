// The C API of jobs, communicators, collectives and handles: all of warren/c_api.h except named operations
// (named_c_api.cc), tagged messages (messages_c_api.cc), device memory (device_api.cc), reports
// (report_c_api.cc), WarrenVouch (vouch_c_api.cc) and memberships (membership_c_api.cc). Converts counts and
// types to bytes and offsets; session.h describes what calls do and when they are refused.
#include <fmt/format.h>

#include <array>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/api/c_operation.h"
#include "rabit_engine/api/c_result.h"
#include "rabit_engine/api/collectives_face.h"
#include "rabit_engine/api/pending_call.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/fnv1a.h"
#include "rabit_engine/bootstrap/rendezvous_bootstrap.h"
#include "rabit_engine/call/slices.h"
#include "warren/c_api.h"

using namespace warren::api::face;  // NOLINT(google-build-using-namespace): the functions below are C's

namespace {

using warren::EngineError;
using warren::EqualOffsets;
using warren::Fnv1a;
using warren::Misuse;
using warren::Operation;
using warren::RendezvousBootstrap;
using warren::api::Arguments;
using warren::api::Attempt;
using warren::api::Call;
using warren::api::CallOptions;
using warren::api::LastError;
using warren::api::OwnedOperation;
using warren::api::Prepare;
using warren::api::Session;
using warren::api::Threads;

/// The function with which a collective is called: its name and, if it is asynchronous, its options and the
/// pointer for the handle.
struct CallMode {
  const char* name;
  bool is_async = false;
  const WarrenCallOptions* options = nullptr;
  WarrenHandle* handle = nullptr;
};

/// Runs the work. On std::bad_alloc, informs the other ranks, which are waiting for this rank, and throws
/// EngineError.
template <typename Work>
void Perform(Session& session, const Call& call, Work&& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    session.GiveUp("out of memory");
    throw EngineError(fmt::format("{}: out of memory", session.Where(call)));
  }
}

WarrenHandle Begin(const std::shared_ptr<Session>& session, const CallMode& mode, const Arguments& arguments,
                   std::shared_ptr<WarrenCustomOp> custom) {
  Call call{mode.name};
  std::shared_ptr<CallOptions> options;
  RequireWhole(*session, call, mode.options, "CALL");
  if (mode.options != nullptr) {
    const bool has_name = mode.options->name != nullptr && *mode.options->name != '\0';
    if (has_name || mode.options->timeout_seconds != 0) {
      options = std::make_shared<CallOptions>();
      if (has_name) options->name = mode.options->name;
      call.options = options.get();
    }
  }
  OwnedOperation operation = Prepare(*session, call, arguments, std::move(custom));
  session->Check(call, operation.View());
  if (mode.handle == nullptr) session->Refuse(call, "`handle` is NULL");
  if (options) options->timeout = session->Timeout(call, mode.options->timeout_seconds);
  // The work keeps the session and the options alive until it has run.
  return new WarrenHandle_{session->Enqueue(call, [session, options, call, operation = std::move(operation)] {
    Perform(*session, call, [&] { session->Run(call, operation.View()); });
  })};
}

int Run(const CallMode& mode, WarrenComm comm, const Arguments& arguments) {
  std::shared_ptr<WarrenCustomOp> custom = TakeCustomOp(arguments);
  return On(comm, mode.name, [&](Session& session, const Call& call) {
    if (!mode.is_async) {
      const OwnedOperation operation = Prepare(session, call, arguments, std::move(custom));
      return Perform(session, call, [&] { session.Run(call, operation.View()); });
    }
    if (mode.handle != nullptr) *mode.handle = nullptr;
    *mode.handle = Begin(comm->session, mode, arguments, std::move(custom));
  });
}

/// Stores a new communicator with this session in *out, or NULL if `session` is null.
void Give(std::shared_ptr<Session> session, WarrenComm* out) {
  *out = session ? new WarrenComm_{std::move(session)} : nullptr;
}

template <typename Function>
int Make(WarrenComm comm, const char* name, WarrenComm* out, Function&& function) {
  return On(comm, name, [&](Session& session, const Call& call) {
    if (out == nullptr) session.Refuse(call, "out is NULL");
    *out = nullptr;
    Give(function(session, call), out);
  });
}

void RequireSameList(Session& session, const Call& call, std::span<const int> ranks) {
  std::vector<std::uint64_t> digests(static_cast<std::size_t>(session.world_size()));
  digests[session.rank()] = Fnv1a(ranks);
  session.Run(
      call, Operation::Allgather(digests.data(), EqualOffsets(session.world_size(), sizeof(std::uint64_t))));
  for (int rank = 0; rank < session.world_size(); ++rank) {
    if (digests[rank] == digests[0]) continue;
    session.Refuse(call,
                   fmt::format("ranks 0 and {} of this communicator gave different lists of ranks", rank));
  }
}

/// Returns each rank's position in the list, or -1 if the rank is not listed. Refuses invalid and repeated
/// ranks.
std::vector<int> Places(const Session& session, const Call& call, std::span<const int> list) {
  std::vector<int> place(static_cast<std::size_t>(session.world_size()), -1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] < 0 || list[i] >= session.world_size() || place[list[i]] >= 0) {
      session.Refuse(
          call,
          fmt::format(
              "the list of ranks contains {}, which is not a rank or is listed twice; ranks are 0 to {}",
              list[i], session.world_size() - 1));
    }
    place[list[i]] = static_cast<int>(i);
  }
  return place;
}

/// Returns a bootstrap over the caller's rendezvous, `given`, whose function and context must stay valid
/// until the communicator is made. Throws Misuse if `given` is null or invalid.
RendezvousBootstrap BootstrapOf(const char* call, const WarrenRendezvous* given) {
  if (given == nullptr || given->struct_bytes < sizeof(WarrenRendezvous) || given->allgather == nullptr) {
    throw Misuse(fmt::format(
        "{}: the rendezvous is NULL or not valid; initialise it with WARREN_RENDEZVOUS, and set `allgather`",
        call));
  }
  if (given->size < 1 || given->rank < 0 || given->rank >= given->size) {
    throw Misuse(fmt::format("{}: the rendezvous is for rank {} of {}, which is not possible", call,
                             given->rank, given->size));
  }
  return {given->rank, given->size, [rendezvous = *given](const std::string& record) {
            std::vector<std::string> records;
            const auto give = [](void* to, const void* text, std::size_t bytes) {
              static_cast<std::vector<std::string>*>(to)->emplace_back(static_cast<const char*>(text), bytes);
            };
            std::array<char, 1024> error{};
            if (rendezvous.allgather(record.data(), record.size(), give, &records, error.data(), error.size(),
                                     rendezvous.context) != 0) {
              error.back() = '\0';
              throw warren::EngineError(fmt::format("the rendezvous failed: {}", error.data()));
            }
            return records;
          }};
}

}  // namespace

// --- the job -----------------------------------------------------------------------------------------------

int WarrenInit(int argc, char** argv) {
  return Attempt([&] { Session::Init(Call{"WarrenInit"}, argc, argv); });
}

int WarrenFinalize() {
  return warren::api::AttemptFinalize(Call{"WarrenFinalize"});
}

const char* WarrenGetLastError() {
  return LastError().c_str();
}

// --- communicators -----------------------------------------------------------------------------------------

int WarrenCommWorld(WarrenComm* out) {
  return Attempt([&] {
    const Call call{"WarrenCommWorld"};
    std::shared_ptr<Session> session = Session::Require(call, Threads::kShare);
    if (out == nullptr) session->Refuse(call, "out is NULL");
    Give(std::move(session), out);
  });
}

int WarrenCommSplit(WarrenComm comm, int color, int key, WarrenComm* out) {
  return Make(comm, "WarrenCommSplit", out,
              [&](Session& session, const Call& call) { return session.Split(call, color, key); });
}

int WarrenCommCreate(WarrenComm comm, const int* ranks, size_t count, WarrenComm* out) {
  return Make(comm, "WarrenCommCreate", out, [&](Session& session, const Call& call) {
    if (ranks == nullptr && count > 0) session.Refuse(call, "the list of ranks is NULL");
    const std::span list(ranks, count);
    RequireSameList(session, call, list);
    const std::vector<int> place = Places(session, call, list);
    const int own = place[session.rank()];
    return session.Split(call, own < 0 ? -1 : 0, own);
  });
}

int WarrenCommMeet(const WarrenRendezvous* rendezvous, WarrenComm* out) {
  return Attempt([&] {
    const Call call{"WarrenCommMeet"};
    if (out == nullptr) throw Misuse("WarrenCommMeet: out is NULL");
    *out = nullptr;
    Give(Session::Meet(call, std::make_unique<RendezvousBootstrap>(BootstrapOf(call.name, rendezvous))), out);
  });
}

int WarrenCommGroup(WarrenComm comm, const int* ranks, size_t count, const char* name,
                    const WarrenRendezvous* rendezvous, WarrenComm* out) {
  return Make(comm, "WarrenCommGroup", out, [&](Session& session, const Call& call) {
    if (ranks == nullptr || count == 0) session.Refuse(call, "the list of ranks is empty");
    if (name == nullptr || *name == '\0') session.Refuse(call, "`name` is NULL or empty");
    const std::span list(ranks, count);
    const std::vector<int> place = Places(session, call, list);
    RendezvousBootstrap members = BootstrapOf(call.name, rendezvous);
    if (members.world_size() != static_cast<int>(count) || members.rank() != place[session.rank()]) {
      session.Refuse(
          call,
          fmt::format(
              "the rendezvous is for rank {} of {}, but in the list of {} ranks this rank has position {} (-1: none)",
              members.rank(), members.world_size(), count, place[session.rank()]));
    }
    return session.Group(call, list, name, members);
  });
}

int WarrenCommLocal(WarrenComm comm, WarrenComm* out) {
  return Make(comm, "WarrenCommLocal", out, [&](Session& session, const Call& call) {
    return session.Split(call, session.Hosts(call)[session.rank()], 0);
  });
}

int WarrenCommCross(WarrenComm comm, WarrenComm* out) {
  return Make(comm, "WarrenCommCross", out, [&](Session& session, const Call& call) {
    const std::vector<int> hosts = session.Hosts(call);
    int place = 0;
    for (int rank = 0; rank < session.rank(); ++rank) place += hosts[rank] == hosts[session.rank()] ? 1 : 0;
    return session.Split(call, place, 0);
  });
}

int WarrenCommFree(WarrenComm comm) {
  return Attempt([&] { delete comm; });
}

int WarrenCommSetTimeout(WarrenComm comm, double seconds) {
  return On(comm, "WarrenCommSetTimeout",
            [&](Session& session, const Call& call) { session.SetUsualTimeout(call, seconds); });
}

int WarrenCommRank(WarrenComm comm, int* rank) {
  return On(comm, "WarrenCommRank", [&](Session& session, const Call& call) {
    if (rank == nullptr) session.Refuse(call, "rank is NULL");
    *rank = session.rank();
  });
}

int WarrenCommSize(WarrenComm comm, int* size) {
  return On(comm, "WarrenCommSize", [&](Session& session, const Call& call) {
    if (size == nullptr) session.Refuse(call, "size is NULL");
    *size = session.world_size();
  });
}

int WarrenCommRankInWorld(WarrenComm comm, int rank, int* rank_in_world) {
  return On(comm, "WarrenCommRankInWorld", [&](Session& session, const Call& call) {
    if (rank_in_world == nullptr) session.Refuse(call, "rank_in_world is NULL");
    *rank_in_world = session.RankInJob(call, rank);
  });
}

// --- collectives -------------------------------------------------------------------------------------------

int WarrenAllreduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op) {
  return Run({"WarrenAllreduce"}, comm, Arguments::Allreduce(send, recv, count, type, op));
}
int WarrenAllreduceAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                         const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenAllreduceAsync", true, options, handle}, comm,
             Arguments::Allreduce(send, recv, count, type, op));
}

int WarrenAllreduceCustom(WarrenComm comm, const void* send, void* recv, size_t count,
                          const WarrenCustomOp* op) {
  return Run({"WarrenAllreduceCustom"}, comm, Arguments::Allreduce(send, recv, count, 0, op));
}
int WarrenAllreduceCustomAsync(WarrenComm comm, const void* send, void* recv, size_t count,
                               const WarrenCustomOp* op, const WarrenCallOptions* options,
                               WarrenHandle* handle) {
  return Run({"WarrenAllreduceCustomAsync", true, options, handle}, comm,
             Arguments::Allreduce(send, recv, count, 0, op));
}

int WarrenReduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op, int root) {
  return Run({"WarrenReduce"}, comm, Arguments::Reduce(send, recv, count, type, op, root));
}
int WarrenReduceAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op, int root,
                      const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenReduceAsync", true, options, handle}, comm,
             Arguments::Reduce(send, recv, count, type, op, root));
}

int WarrenReduceCustom(WarrenComm comm, const void* send, void* recv, size_t count, const WarrenCustomOp* op,
                       int root) {
  return Run({"WarrenReduceCustom"}, comm, Arguments::Reduce(send, recv, count, 0, op, root));
}
int WarrenReduceCustomAsync(WarrenComm comm, const void* send, void* recv, size_t count,
                            const WarrenCustomOp* op, int root, const WarrenCallOptions* options,
                            WarrenHandle* handle) {
  return Run({"WarrenReduceCustomAsync", true, options, handle}, comm,
             Arguments::Reduce(send, recv, count, 0, op, root));
}

int WarrenReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op) {
  return Run({"WarrenReduceScatter"}, comm, Arguments::ReduceScatter(send, recv, count, type, op));
}
int WarrenReduceScatterAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                             const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenReduceScatterAsync", true, options, handle}, comm,
             Arguments::ReduceScatter(send, recv, count, type, op));
}

int WarrenReduceScatterV(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type,
                         int op) {
  return Run({"WarrenReduceScatterV"}, comm, Arguments::ReduceScatter(send, recv, counts, type, op));
}
int WarrenReduceScatterVAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type,
                              int op, const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenReduceScatterVAsync", true, options, handle}, comm,
             Arguments::ReduceScatter(send, recv, counts, type, op));
}

int WarrenReduceScatterVCustom(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                               const WarrenCustomOp* op) {
  return Run({"WarrenReduceScatterVCustom"}, comm, Arguments::ReduceScatter(send, recv, counts, 0, op));
}
int WarrenReduceScatterVCustomAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                    const WarrenCustomOp* op, const WarrenCallOptions* options,
                                    WarrenHandle* handle) {
  return Run({"WarrenReduceScatterVCustomAsync", true, options, handle}, comm,
             Arguments::ReduceScatter(send, recv, counts, 0, op));
}

int WarrenBroadcast(WarrenComm comm, void* buffer, size_t count, int type, int root) {
  return Run({"WarrenBroadcast"}, comm, Arguments::Broadcast(buffer, count, type, root));
}
int WarrenBroadcastAsync(WarrenComm comm, void* buffer, size_t count, int type, int root,
                         const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenBroadcastAsync", true, options, handle}, comm,
             Arguments::Broadcast(buffer, count, type, root));
}

int WarrenAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type) {
  return Run({"WarrenAllgather"}, comm, Arguments::Allgather(send, recv, count, type));
}
int WarrenAllgatherAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                         const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenAllgatherAsync", true, options, handle}, comm,
             Arguments::Allgather(send, recv, count, type));
}

int WarrenAllgatherV(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type) {
  return Run({"WarrenAllgatherV"}, comm, Arguments::Allgather(send, recv, counts, type));
}
int WarrenAllgatherVAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type,
                          const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenAllgatherVAsync", true, options, handle}, comm,
             Arguments::Allgather(send, recv, counts, type));
}

int WarrenGather(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root) {
  return Run({"WarrenGather"}, comm, Arguments::Gather(send, count, recv, count, type, root));
}
int WarrenGatherAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root,
                      const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenGatherAsync", true, options, handle}, comm,
             Arguments::Gather(send, count, recv, count, type, root));
}

int WarrenGatherV(WarrenComm comm, const void* send, size_t count, void* recv, const size_t* counts, int type,
                  int root) {
  return Run({"WarrenGatherV"}, comm, Arguments::Gather(send, count, recv, counts, type, root));
}
int WarrenGatherVAsync(WarrenComm comm, const void* send, size_t count, void* recv, const size_t* counts,
                       int type, int root, const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenGatherVAsync", true, options, handle}, comm,
             Arguments::Gather(send, count, recv, counts, type, root));
}

int WarrenScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root) {
  return Run({"WarrenScatter"}, comm, Arguments::Scatter(send, count, recv, count, type, root));
}
int WarrenScatterAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root,
                       const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenScatterAsync", true, options, handle}, comm,
             Arguments::Scatter(send, count, recv, count, type, root));
}

int WarrenScatterV(WarrenComm comm, const void* send, const size_t* counts, void* recv, size_t count,
                   int type, int root) {
  return Run({"WarrenScatterV"}, comm, Arguments::Scatter(send, counts, recv, count, type, root));
}
int WarrenScatterVAsync(WarrenComm comm, const void* send, const size_t* counts, void* recv, size_t count,
                        int type, int root, const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenScatterVAsync", true, options, handle}, comm,
             Arguments::Scatter(send, counts, recv, count, type, root));
}

int WarrenAllToAll(WarrenComm comm, const void* send, void* recv, size_t count, int type) {
  return Run({"WarrenAllToAll"}, comm, Arguments::AllToAll(send, count, recv, count, type));
}
int WarrenAllToAllAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                        const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenAllToAllAsync", true, options, handle}, comm,
             Arguments::AllToAll(send, count, recv, count, type));
}

int WarrenAllToAllV(WarrenComm comm, const void* send, const size_t* send_counts, void* recv,
                    const size_t* recv_counts, int type) {
  return Run({"WarrenAllToAllV"}, comm, Arguments::AllToAll(send, send_counts, recv, recv_counts, type));
}
int WarrenAllToAllVAsync(WarrenComm comm, const void* send, const size_t* send_counts, void* recv,
                         const size_t* recv_counts, int type, const WarrenCallOptions* options,
                         WarrenHandle* handle) {
  return Run({"WarrenAllToAllVAsync", true, options, handle}, comm,
             Arguments::AllToAll(send, send_counts, recv, recv_counts, type));
}

int WarrenBarrier(WarrenComm comm) {
  return Run({"WarrenBarrier"}, comm, {});
}
int WarrenBarrierAsync(WarrenComm comm, const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenBarrierAsync", true, options, handle}, comm, {});
}

int WarrenSend(WarrenComm comm, const void* buffer, size_t count, int type, int to) {
  return Run({"WarrenSend"}, comm, Arguments::Send(buffer, count, type, to));
}
int WarrenSendAsync(WarrenComm comm, const void* buffer, size_t count, int type, int to,
                    const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenSendAsync", true, options, handle}, comm, Arguments::Send(buffer, count, type, to));
}

int WarrenRecv(WarrenComm comm, void* buffer, size_t count, int type, int from) {
  return Run({"WarrenRecv"}, comm, Arguments::Recv(buffer, count, type, from));
}
int WarrenRecvAsync(WarrenComm comm, void* buffer, size_t count, int type, int from,
                    const WarrenCallOptions* options, WarrenHandle* handle) {
  return Run({"WarrenRecvAsync", true, options, handle}, comm, Arguments::Recv(buffer, count, type, from));
}

int WarrenSendRecv(WarrenComm comm, const void* send, size_t send_count, int to, void* recv,
                   size_t recv_count, int from, int type) {
  return Run({"WarrenSendRecv"}, comm,
             Arguments::SendRecv(send, send_count, to, recv, recv_count, from, type));
}
int WarrenSendRecvAsync(WarrenComm comm, const void* send, size_t send_count, int to, void* recv,
                        size_t recv_count, int from, int type, const WarrenCallOptions* options,
                        WarrenHandle* handle) {
  return Run({"WarrenSendRecvAsync", true, options, handle}, comm,
             Arguments::SendRecv(send, send_count, to, recv, recv_count, from, type));
}

// --- handles -----------------------------------------------------------------------------------------------

int WarrenWait(WarrenHandle handle) {
  const std::unique_ptr<WarrenHandle_> owned(handle);
  return Attempt([&] {
    if (owned) owned->call->Wait();
  });
}

int WarrenWaitAll(const WarrenHandle* handles, size_t count) {
  int result = 0;
  std::string first;
  for (size_t i = 0; i < count; ++i) {
    if (WarrenWait(handles[i]) == 0 || result != 0) continue;
    result = -1;
    first = LastError();
  }
  if (result != 0) LastError() = first;
  return result;
}

int WarrenTest(WarrenHandle handle, int* done) {
  return Attempt([&] {
    if (done == nullptr) throw Misuse("WarrenTest: done is NULL");
    *done = handle == nullptr || handle->call->HasEnded() ? 1 : 0;
  });
}

int WarrenWhenDone(WarrenHandle handle, void (*function)(const char* error, void* context), void* context) {
  return Attempt([&] {
    if (handle == nullptr || function == nullptr)
      throw Misuse("WarrenWhenDone: the handle or the function is NULL");
    handle->call->WhenEnded([=](const std::exception_ptr& error) {
      if (!error) return function(nullptr, context);
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& failure) {
        function(failure.what(), context);
      } catch (...) {
        function("an exception from the caller's operation", context);
      }
    });
  });
}

int WarrenHandleFree(WarrenHandle handle) {
  return Attempt([&] { delete handle; });
}
