// The C API of the collectives: warren/c_api.h without named operations (named_c_api.cc) and device memory
// (device_api.cc). Turns counts and types into bytes and offsets; session.h tells what calls do and which are
// refused.
#include <fmt/format.h>

#include <array>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/api/c_result.h"
#include "rabit_engine/api/collectives_face.h"
#include "rabit_engine/api/pending_call.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/slices.h"
#include "rabit_engine/bootstrap/rendezvous_bootstrap.h"
#include "warren/c_api.h"

using namespace warren::api::face;  // NOLINT(google-build-using-namespace): the functions below are C's

namespace {

using warren::EqualOffsets;
using warren::Inbound;
using warren::Misuse;
using warren::Outbound;
using warren::Reduction;
using warren::RendezvousBootstrap;
using warren::api::Attempt;
using warren::api::Call;
using warren::api::CallOptions;
using warren::api::LastError;
using warren::api::Reduce;
using warren::api::Reducing;
using warren::api::Session;
using warren::api::Threads;
using warren::api::Wanted;

/// How a collective was called: synchronously, or with options and a place for the handle.
struct Way {
  const char* name;
  bool is_async = false;
  const WarrenCallOptions* options = nullptr;
  WarrenHandle* handle = nullptr;
};

/// `prepare` as in Run. If the call is refused, the caller's custom operation is released.
template <typename Prepare>
WarrenHandle Begin(const std::shared_ptr<Session>& session, const Way& way, Prepare&& prepare) {
  Call call{way.name};
  std::shared_ptr<CallOptions> options;
  if (way.options != nullptr) {
    if (way.options->struct_bytes < sizeof(WarrenCallOptions)) {
      session->Refuse(call,
                      "struct_bytes of the options is too small; initialise them with WARREN_CALL_OPTIONS");
    }
    const bool has_name = way.options->name != nullptr && *way.options->name != '\0';
    if (has_name || way.options->timeout_seconds != 0) {
      options = std::make_shared<CallOptions>();
      if (has_name) options->name = way.options->name;
      call.options = options.get();
    }
  }
  auto work = prepare(*session, call);
  if (way.handle == nullptr) session->Refuse(call, "`handle` is NULL");
  if (options) options->timeout = session->Timeout(call, way.options->timeout_seconds);
  // Keeps the session and the options alive while the work needs them.
  return new WarrenHandle_{session->Enqueue(
      call, [session, options, call, work = std::move(work)]() mutable { Perform(*session, call, work); })};
}

/// `prepare(session, call)` checks the arguments and returns the remaining work, which holds by value all it
/// needs except the caller's buffers.
template <typename Prepare>
int Run(const Way& way, WarrenComm comm, Prepare&& prepare) {
  return On(comm, way.name, [&](Session& session, const Call& call) {
    if (!way.is_async) return Perform(session, call, prepare(session, call));
    if (way.handle != nullptr) *way.handle = nullptr;
    *way.handle = Begin(comm->session, way, prepare);
  });
}

/// Stores a new communicator, or NULL, in *out.
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

auto ReduceToRoot(Session& session, const Call& call, const void* send, void* recv, std::size_t count,
                  const Wanted& wanted, int root) {
  session.CheckRoot(call, root);
  const bool receives = session.rank() == root;
  const Reducing what{send, count, receives ? recv : nullptr, 0, receives ? count : 0};
  CheckReduction(session, call, wanted, what);
  return [=, &session] {
    Reduce(session, wanted, what, [&](void* buffer, const Reduction& reduction) {
      session.Reduce(call, buffer, count, reduction, root);
    });
  };
}

auto Gather(Session& session, const Call& call, const void* send, std::size_t bytes, void* recv,
            Offsets offsets, int root) {
  return
      [=, &session, offsets = std::move(offsets)] { session.Gather(call, send, bytes, recv, offsets, root); };
}

auto Scatter(Session& session, const Call& call, const void* send, Offsets offsets, void* recv,
             std::size_t bytes, int root) {
  session.CheckGather(call, recv, bytes, send, offsets, root);
  return [=, &session, offsets = std::move(offsets)] {
    session.Scatter(call, send, offsets, recv, bytes, root);
  };
}

/// Offsets matter only at the root.
Offsets OfRoot(const Session& session, int root, Offsets offsets) {
  return session.rank() == root ? std::move(offsets) : Offsets();
}
Offsets RaggedOfRoot(const Session& session, const Call& call, int root, const size_t* counts,
                     std::size_t unit) {
  return session.rank() == root ? Ragged(session, call, counts, unit) : Offsets();
}

std::uint64_t DigestOf(std::span<const int> ranks) {
  std::uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (const int rank : ranks) digest = (digest ^ static_cast<std::uint32_t>(rank)) * 0x100000001b3;
  return digest;
}

void RequireSameList(Session& session, const Call& call, std::span<const int> ranks) {
  std::vector<std::uint64_t> digests(static_cast<std::size_t>(session.world_size()));
  digests[session.rank()] = DigestOf(ranks);
  session.Allgather(call, digests.data(), EqualOffsets(session.world_size(), sizeof(std::uint64_t)));
  for (int rank = 0; rank < session.world_size(); ++rank) {
    if (digests[rank] == digests[0]) continue;
    session.Refuse(call,
                   fmt::format("ranks 0 and {} of this communicator gave different lists of ranks", rank));
  }
}

/// Returns each rank's position in the list; -1 if it is not in it.
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

/// `given` must live until the communicator is made.
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

// --- all calls, synchronous and asynchronous ---------------------------------------------------------------

int AllreduceOn(const Way& way, WarrenComm comm, const void* send, void* recv, size_t count, int type,
                int op) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    return Allreduce(session, call, send, recv, count, Typed(session, call, type, op));
  });
}

int AllreduceCustomOn(const Way& way, WarrenComm comm, const void* send, void* recv, size_t count,
                      const WarrenCustomOp* op) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    return Allreduce(session, call, send, recv, count, Custom(session, call, op));
  });
}

int ReduceOn(const Way& way, WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
             int root) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    return ReduceToRoot(session, call, send, recv, count, Typed(session, call, type, op), root);
  });
}

int ReduceCustomOn(const Way& way, WarrenComm comm, const void* send, void* recv, size_t count,
                   const WarrenCustomOp* op, int root) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    return ReduceToRoot(session, call, send, recv, count, Custom(session, call, op), root);
  });
}

int ReduceScatterOn(const Way& way, WarrenComm comm, const void* send, void* recv, size_t count, int type,
                    int op) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const Wanted wanted = Typed(session, call, type, op);
    return ReduceScatter(session, call, send, recv, Equal(session, call, count, 1), wanted);
  });
}

int ReduceScatterVOn(const Way& way, WarrenComm comm, const void* send, void* recv, const size_t* counts,
                     int type, int op) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const Wanted wanted = Typed(session, call, type, op);
    return ReduceScatter(session, call, send, recv, Ragged(session, call, counts, 1), wanted);
  });
}

int ReduceScatterVCustomOn(const Way& way, WarrenComm comm, const void* send, void* recv,
                           const size_t* counts, const WarrenCustomOp* op) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    return ReduceScatter(session, call, send, recv, Ragged(session, call, counts, 1),
                         Custom(session, call, op));
  });
}

int BroadcastOn(const Way& way, WarrenComm comm, void* buffer, size_t count, int type, int root) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const std::size_t bytes = Product(session, call, count, ElementBytes(session, call, type));
    session.CheckRoot(call, root);
    RequireBuffer(session, call, buffer, bytes);
    return [=, &session] { session.Broadcast(call, buffer, bytes, root); };
  });
}

int AllgatherOn(const Way& way, WarrenComm comm, const void* send, void* recv, size_t count, int type) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    return Allgather(session, call, send, recv,
                     Equal(session, call, count, ElementBytes(session, call, type)));
  });
}

int AllgatherVOn(const Way& way, WarrenComm comm, const void* send, void* recv, const size_t* counts,
                 int type) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    return Allgather(session, call, send, recv,
                     Ragged(session, call, counts, ElementBytes(session, call, type)));
  });
}

int GatherOn(const Way& way, WarrenComm comm, const void* send, void* recv, size_t count, int type,
             int root) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const std::size_t element = ElementBytes(session, call, type);
    Offsets offsets = Equal(session, call, count, element);
    return Gather(session, call, send, count * element, recv, OfRoot(session, root, std::move(offsets)),
                  root);
  });
}

int GatherVOn(const Way& way, WarrenComm comm, const void* send, size_t count, void* recv,
              const size_t* counts, int type, int root) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const std::size_t element = ElementBytes(session, call, type);
    return Gather(session, call, send, Product(session, call, count, element), recv,
                  RaggedOfRoot(session, call, root, counts, element), root);
  });
}

int ScatterOn(const Way& way, WarrenComm comm, const void* send, void* recv, size_t count, int type,
              int root) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const std::size_t element = ElementBytes(session, call, type);
    Offsets offsets = Equal(session, call, count, element);
    return Scatter(session, call, send, OfRoot(session, root, std::move(offsets)), recv, count * element,
                   root);
  });
}

int ScatterVOn(const Way& way, WarrenComm comm, const void* send, const size_t* counts, void* recv,
               size_t count, int type, int root) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const std::size_t element = ElementBytes(session, call, type);
    return Scatter(session, call, send, RaggedOfRoot(session, call, root, counts, element), recv,
                   Product(session, call, count, element), root);
  });
}

int AllToAllOn(const Way& way, WarrenComm comm, const void* send, void* recv, size_t count, int type) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const Offsets offsets = Equal(session, call, count, ElementBytes(session, call, type));
    return AllToAll(session, call, send, offsets, recv, offsets);
  });
}

int AllToAllVOn(const Way& way, WarrenComm comm, const void* send, const size_t* send_counts, void* recv,
                const size_t* recv_counts, int type) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const std::size_t element = ElementBytes(session, call, type);
    Offsets sent = Ragged(session, call, send_counts, element);
    return AllToAll(session, call, send, std::move(sent), recv, Ragged(session, call, recv_counts, element));
  });
}

int BarrierOn(const Way& way, WarrenComm comm) {
  return Run(way, comm,
             [&](Session& session, const Call& call) { return [=, &session] { session.Barrier(call); }; });
}

int SendOn(const Way& way, WarrenComm comm, const void* buffer, size_t count, int type, int to) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const Outbound out{to, buffer, Product(session, call, count, ElementBytes(session, call, type))};
    session.CheckPeer(call, out.to, out.data, out.bytes);
    return [=, &session] { session.SendReceive(call, {&out, 1}, {}); };
  });
}

int RecvOn(const Way& way, WarrenComm comm, void* buffer, size_t count, int type, int from) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const Inbound in{from, buffer, Product(session, call, count, ElementBytes(session, call, type))};
    session.CheckPeer(call, in.from, in.data, in.bytes);
    return [=, &session] { session.SendReceive(call, {}, {&in, 1}); };
  });
}

int SendRecvOn(const Way& way, WarrenComm comm, const void* send, size_t send_count, int to, void* recv,
               size_t recv_count, int from, int type) {
  return Run(way, comm, [&](Session& session, const Call& call) {
    const std::size_t element = ElementBytes(session, call, type);
    const Outbound out{to, send, Product(session, call, send_count, element)};
    const Inbound in{from, recv, Product(session, call, recv_count, element)};
    session.CheckPeer(call, out.to, out.data, out.bytes);
    session.CheckPeer(call, in.from, in.data, in.bytes);
    return [=, &session] { session.SendReceive(call, {&out, 1}, {&in, 1}); };
  });
}

}  // namespace

// --- the job -----------------------------------------------------------------------------------------------

int WarrenInit(int argc, char** argv) {
  return Attempt([&] { Session::Init(Call{"WarrenInit"}, argc, argv); });
}

int WarrenFinalize() {
  return Attempt([] {
    if (!Session::Finalize(Call{"WarrenFinalize"}, Threads::kShare)) {
      throw warren::EngineError("WarrenFinalize: an earlier error had ended the job for this rank");
    }
  });
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
  return AllreduceOn({"WarrenAllreduce"}, comm, send, recv, count, type, op);
}
int WarrenAllreduceAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                         const WarrenCallOptions* options, WarrenHandle* handle) {
  return AllreduceOn({"WarrenAllreduceAsync", true, options, handle}, comm, send, recv, count, type, op);
}

int WarrenAllreduceCustom(WarrenComm comm, const void* send, void* recv, size_t count,
                          const WarrenCustomOp* op) {
  return AllreduceCustomOn({"WarrenAllreduceCustom"}, comm, send, recv, count, op);
}
int WarrenAllreduceCustomAsync(WarrenComm comm, const void* send, void* recv, size_t count,
                               const WarrenCustomOp* op, const WarrenCallOptions* options,
                               WarrenHandle* handle) {
  return AllreduceCustomOn({"WarrenAllreduceCustomAsync", true, options, handle}, comm, send, recv, count,
                           op);
}

int WarrenReduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op, int root) {
  return ReduceOn({"WarrenReduce"}, comm, send, recv, count, type, op, root);
}
int WarrenReduceAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op, int root,
                      const WarrenCallOptions* options, WarrenHandle* handle) {
  return ReduceOn({"WarrenReduceAsync", true, options, handle}, comm, send, recv, count, type, op, root);
}

int WarrenReduceCustom(WarrenComm comm, const void* send, void* recv, size_t count, const WarrenCustomOp* op,
                       int root) {
  return ReduceCustomOn({"WarrenReduceCustom"}, comm, send, recv, count, op, root);
}
int WarrenReduceCustomAsync(WarrenComm comm, const void* send, void* recv, size_t count,
                            const WarrenCustomOp* op, int root, const WarrenCallOptions* options,
                            WarrenHandle* handle) {
  return ReduceCustomOn({"WarrenReduceCustomAsync", true, options, handle}, comm, send, recv, count, op,
                        root);
}

int WarrenReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op) {
  return ReduceScatterOn({"WarrenReduceScatter"}, comm, send, recv, count, type, op);
}
int WarrenReduceScatterAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                             const WarrenCallOptions* options, WarrenHandle* handle) {
  return ReduceScatterOn({"WarrenReduceScatterAsync", true, options, handle}, comm, send, recv, count, type,
                         op);
}

int WarrenReduceScatterV(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type,
                         int op) {
  return ReduceScatterVOn({"WarrenReduceScatterV"}, comm, send, recv, counts, type, op);
}
int WarrenReduceScatterVAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type,
                              int op, const WarrenCallOptions* options, WarrenHandle* handle) {
  return ReduceScatterVOn({"WarrenReduceScatterVAsync", true, options, handle}, comm, send, recv, counts,
                          type, op);
}

int WarrenReduceScatterVCustom(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                               const WarrenCustomOp* op) {
  return ReduceScatterVCustomOn({"WarrenReduceScatterVCustom"}, comm, send, recv, counts, op);
}
int WarrenReduceScatterVCustomAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                    const WarrenCustomOp* op, const WarrenCallOptions* options,
                                    WarrenHandle* handle) {
  return ReduceScatterVCustomOn({"WarrenReduceScatterVCustomAsync", true, options, handle}, comm, send, recv,
                                counts, op);
}

int WarrenBroadcast(WarrenComm comm, void* buffer, size_t count, int type, int root) {
  return BroadcastOn({"WarrenBroadcast"}, comm, buffer, count, type, root);
}
int WarrenBroadcastAsync(WarrenComm comm, void* buffer, size_t count, int type, int root,
                         const WarrenCallOptions* options, WarrenHandle* handle) {
  return BroadcastOn({"WarrenBroadcastAsync", true, options, handle}, comm, buffer, count, type, root);
}

int WarrenAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type) {
  return AllgatherOn({"WarrenAllgather"}, comm, send, recv, count, type);
}
int WarrenAllgatherAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                         const WarrenCallOptions* options, WarrenHandle* handle) {
  return AllgatherOn({"WarrenAllgatherAsync", true, options, handle}, comm, send, recv, count, type);
}

int WarrenAllgatherV(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type) {
  return AllgatherVOn({"WarrenAllgatherV"}, comm, send, recv, counts, type);
}
int WarrenAllgatherVAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type,
                          const WarrenCallOptions* options, WarrenHandle* handle) {
  return AllgatherVOn({"WarrenAllgatherVAsync", true, options, handle}, comm, send, recv, counts, type);
}

int WarrenGather(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root) {
  return GatherOn({"WarrenGather"}, comm, send, recv, count, type, root);
}
int WarrenGatherAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root,
                      const WarrenCallOptions* options, WarrenHandle* handle) {
  return GatherOn({"WarrenGatherAsync", true, options, handle}, comm, send, recv, count, type, root);
}

int WarrenGatherV(WarrenComm comm, const void* send, size_t count, void* recv, const size_t* counts, int type,
                  int root) {
  return GatherVOn({"WarrenGatherV"}, comm, send, count, recv, counts, type, root);
}
int WarrenGatherVAsync(WarrenComm comm, const void* send, size_t count, void* recv, const size_t* counts,
                       int type, int root, const WarrenCallOptions* options, WarrenHandle* handle) {
  return GatherVOn({"WarrenGatherVAsync", true, options, handle}, comm, send, count, recv, counts, type,
                   root);
}

int WarrenScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root) {
  return ScatterOn({"WarrenScatter"}, comm, send, recv, count, type, root);
}
int WarrenScatterAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root,
                       const WarrenCallOptions* options, WarrenHandle* handle) {
  return ScatterOn({"WarrenScatterAsync", true, options, handle}, comm, send, recv, count, type, root);
}

int WarrenScatterV(WarrenComm comm, const void* send, const size_t* counts, void* recv, size_t count,
                   int type, int root) {
  return ScatterVOn({"WarrenScatterV"}, comm, send, counts, recv, count, type, root);
}
int WarrenScatterVAsync(WarrenComm comm, const void* send, const size_t* counts, void* recv, size_t count,
                        int type, int root, const WarrenCallOptions* options, WarrenHandle* handle) {
  return ScatterVOn({"WarrenScatterVAsync", true, options, handle}, comm, send, counts, recv, count, type,
                    root);
}

int WarrenAllToAll(WarrenComm comm, const void* send, void* recv, size_t count, int type) {
  return AllToAllOn({"WarrenAllToAll"}, comm, send, recv, count, type);
}
int WarrenAllToAllAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                        const WarrenCallOptions* options, WarrenHandle* handle) {
  return AllToAllOn({"WarrenAllToAllAsync", true, options, handle}, comm, send, recv, count, type);
}

int WarrenAllToAllV(WarrenComm comm, const void* send, const size_t* send_counts, void* recv,
                    const size_t* recv_counts, int type) {
  return AllToAllVOn({"WarrenAllToAllV"}, comm, send, send_counts, recv, recv_counts, type);
}
int WarrenAllToAllVAsync(WarrenComm comm, const void* send, const size_t* send_counts, void* recv,
                         const size_t* recv_counts, int type, const WarrenCallOptions* options,
                         WarrenHandle* handle) {
  return AllToAllVOn({"WarrenAllToAllVAsync", true, options, handle}, comm, send, send_counts, recv,
                     recv_counts, type);
}

int WarrenBarrier(WarrenComm comm) {
  return BarrierOn({"WarrenBarrier"}, comm);
}
int WarrenBarrierAsync(WarrenComm comm, const WarrenCallOptions* options, WarrenHandle* handle) {
  return BarrierOn({"WarrenBarrierAsync", true, options, handle}, comm);
}

int WarrenSend(WarrenComm comm, const void* buffer, size_t count, int type, int to) {
  return SendOn({"WarrenSend"}, comm, buffer, count, type, to);
}
int WarrenSendAsync(WarrenComm comm, const void* buffer, size_t count, int type, int to,
                    const WarrenCallOptions* options, WarrenHandle* handle) {
  return SendOn({"WarrenSendAsync", true, options, handle}, comm, buffer, count, type, to);
}

int WarrenRecv(WarrenComm comm, void* buffer, size_t count, int type, int from) {
  return RecvOn({"WarrenRecv"}, comm, buffer, count, type, from);
}
int WarrenRecvAsync(WarrenComm comm, void* buffer, size_t count, int type, int from,
                    const WarrenCallOptions* options, WarrenHandle* handle) {
  return RecvOn({"WarrenRecvAsync", true, options, handle}, comm, buffer, count, type, from);
}

int WarrenSendRecv(WarrenComm comm, const void* send, size_t send_count, int to, void* recv,
                   size_t recv_count, int from, int type) {
  return SendRecvOn({"WarrenSendRecv"}, comm, send, send_count, to, recv, recv_count, from, type);
}
int WarrenSendRecvAsync(WarrenComm comm, const void* send, size_t send_count, int to, void* recv,
                        size_t recv_count, int from, int type, const WarrenCallOptions* options,
                        WarrenHandle* handle) {
  return SendRecvOn({"WarrenSendRecvAsync", true, options, handle}, comm, send, send_count, to, recv,
                    recv_count, from, type);
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
