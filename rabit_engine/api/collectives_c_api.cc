// The C face of the collectives: warren/c_api.h. Bytes and offsets are made of counts and types here; what a
// call means, and what is refused, is in session.h.
#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/api/c_result.h"
#include "rabit_engine/api/device_call.h"
#include "rabit_engine/api/named_calls.h"
#include "rabit_engine/api/pending_call.h"
#include "rabit_engine/api/reducing.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/slices.h"
#include "warren/c_api.h"

struct WarrenComm_ {
  std::shared_ptr<warren::api::Session> session;
};
struct WarrenHandle_ {
  std::shared_ptr<warren::api::PendingCall> call;
};
struct WarrenCoordinator_ {
  std::shared_ptr<warren::api::NamedCalls> calls;
};

namespace {

using warren::DataType;
using warren::EqualOffsets;
using warren::Inbound;
using warren::Misuse;
using warren::Operation;
using warren::Outbound;
using warren::Reduction;
using warren::api::Attempt;
using warren::api::Call;
using warren::api::Copy;
using warren::api::LastError;
using warren::api::NamedCallOptions;
using warren::api::NamedCalls;
using warren::api::NamedWork;
using warren::api::Reduce;
using warren::api::Reducing;
using warren::api::Session;
using warren::api::Threads;
using warren::api::Wanted;
using warren::coordinator::Request;
using warren::coordinator::Signature;

using Offsets = std::vector<std::size_t>;

/// With the communicator's session, which lives until the call has ended.
template <typename Function>
int On(WarrenComm comm, const char* name, Function&& function) {
  return Attempt([&] {
    const Call call{name};
    if (comm == nullptr) throw Misuse(fmt::format("rank unknown: {}: the communicator is null", name));
    const std::shared_ptr<Session> session = comm->session;
    function(*session, call);
  });
}

/// How a collective was called: to be waited for, or with a place for its handle.
struct Way {
  const char* name;
  bool is_async = false;
  WarrenHandle* handle = nullptr;
};

/// A rank that has no memory for its part tells the others, who wait for it.
template <typename Work>
void Perform(Session& session, const Call& call, Work&& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    session.GiveUp("out of memory");
    throw warren::EngineError(fmt::format("{}: out of memory", session.Where(call)));
  }
}

/// `prepare(session, call)` checks the arguments, and returns the work that is left: it holds by value what
/// it needs besides the caller's buffers.
template <typename Prepare>
int Run(const Way& way, WarrenComm comm, Prepare&& prepare) {
  return On(comm, way.name, [&](Session& session, const Call& call) {
    if (!way.is_async) return Perform(session, call, prepare(session, call));
    if (way.handle == nullptr) session.Refuse(call, "the place for the handle is null");
    *way.handle = nullptr;
    // The work refers to the session, which the operation keeps.
    *way.handle = new WarrenHandle_{
        session.Enqueue(call, [kept = comm->session, call, work = prepare(session, call)]() mutable {
          Perform(*kept, call, work);
        })};
  });
}

/// A communicator that is made, or none.
void Give(std::shared_ptr<Session> session, WarrenComm* out) {
  *out = session ? new WarrenComm_{std::move(session)} : nullptr;
}

template <typename Function>
int Make(WarrenComm comm, const char* name, WarrenComm* out, Function&& function) {
  return On(comm, name, [&](Session& session, const Call& call) {
    if (out == nullptr) session.Refuse(call, "the place for the communicator is null");
    *out = nullptr;
    Give(function(session, call), out);
  });
}

std::size_t ElementBytes(const Session& session, const Call& call, int type) {
  const bool known =
      (type >= WARREN_INT8 && type <= WARREN_FLOAT64) || type == WARREN_FLOAT16 || type == WARREN_BFLOAT16;
  if (!known)
    session.Refuse(call, fmt::format("{} is no element type; see WarrenType in warren/c_api.h", type));
  // The codes up to 7 are rabit's: 4 and 5 are its long types, of 64 bits where this engine runs.
  return SizeOf(static_cast<DataType>(type));
}

std::size_t Product(const Session& session, const Call& call, std::size_t count, std::size_t unit) {
  if (unit != 0 && count > std::numeric_limits<std::ptrdiff_t>::max() / unit) {
    session.Refuse(call, fmt::format("{} times {} bytes are more than memory can hold", count, unit));
  }
  return count * unit;
}

/// Of as many equal slices as there are ranks.
Offsets Equal(const Session& session, const Call& call, std::size_t count, std::size_t unit) {
  const std::size_t slice = Product(session, call, count, unit);
  Product(session, call, slice, static_cast<std::size_t>(session.world_size()));
  return EqualOffsets(session.world_size(), slice);
}

Offsets Ragged(const Session& session, const Call& call, const size_t* counts, std::size_t unit) {
  if (counts == nullptr) session.Refuse(call, "the counts are null; one for each rank is expected");
  Offsets offsets{0};
  for (int rank = 0; rank < session.world_size(); ++rank) {
    const std::size_t bytes = Product(session, call, counts[rank], unit);
    if (bytes > std::numeric_limits<std::ptrdiff_t>::max() - offsets.back()) {
      session.Refuse(call, "the slices are more than memory can hold");
    }
    offsets.push_back(offsets.back() + bytes);
  }
  return offsets;
}

void RequireBuffer(const Session& session, const Call& call, const void* buffer, std::size_t bytes) {
  if (buffer == nullptr && bytes > 0)
    session.Refuse(call, fmt::format("a buffer is null, for {} bytes", bytes));
}

// --- reductions --------------------------------------------------------------------------------------------

Wanted Typed(const Session& session, const Call& call, int type, int op) {
  ElementBytes(session, call, type);
  if (op < WARREN_MAX || op > WARREN_AVG) {
    session.Refuse(call, fmt::format("{} is no operation; see WarrenOp in warren/c_api.h", op));
  }
  const auto data_type = static_cast<DataType>(type);
  const bool average = op == WARREN_AVG;
  const auto operation = average ? Operation::kSum : static_cast<Operation>(op);
  const bool is_float = !IsDefined(data_type, Operation::kBitOr);
  if ((average && !is_float) || !IsDefined(data_type, operation)) {
    session.Refuse(
        call, fmt::format("there is no {} of {}", average ? "average" : Name(operation), Name(data_type)));
  }
  return {Reduction::Typed(data_type, operation), average, nullptr};
}

void CallCustom(const void* right, void* left, std::size_t count, void* context) {
  const auto& op = *static_cast<const WarrenCustomOp*>(context);
  if (op.function(right, left, count, op.context) == 0) return;
  throw Misuse("the caller's operation says that it has failed");
}

Wanted Custom(const Session& session, const Call& call, const WarrenCustomOp* op) {
  if (op == nullptr) session.Refuse(call, "the operation is null");
  const std::shared_ptr<WarrenCustomOp> kept(new WarrenCustomOp(*op), [](WarrenCustomOp* ended) {
    if (ended->release != nullptr) ended->release(ended->context);
    delete ended;
  });
  if (op->function == nullptr || op->element_bytes == 0) {
    session.Refuse(call, "the operation has no function, or its elements have no bytes");
  }
  const Reduction reduction = Reduction::Custom(CallCustom, kept.get(), kept->element_bytes);
  return {reduction, false, kept};
}

void CheckReduction(const Session& session, const Call& call, const Wanted& wanted, const Reducing& what) {
  RequireBuffer(session, call, what.send,
                Product(session, call, what.count, wanted.reduction.element_bytes()));
  if (what.recv == nullptr && what.length > 0) session.Refuse(call, "the buffer for the result is null");
}

auto Allreduce(Session& session, const Call& call, const void* send, void* recv, std::size_t count,
               const Wanted& wanted) {
  const Reducing what{send, count, recv, 0, count};
  CheckReduction(session, call, wanted, what);
  return [=, &session] {
    Reduce(session, wanted, what, [&](void* buffer, const Reduction& reduction) {
      session.Allreduce(call, buffer, count, reduction, {});
    });
  };
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

/// Offsets in elements.
auto ReduceScatter(Session& session, const Call& call, const void* send, void* recv, Offsets offsets,
                   const Wanted& wanted) {
  const std::size_t first = offsets[session.rank()];
  const Reducing what{send, offsets.back(), recv, first, offsets[session.rank() + 1] - first};
  CheckReduction(session, call, wanted, what);
  return [=, &session, offsets = std::move(offsets)] {
    Reduce(session, wanted, what, [&](void* buffer, const Reduction& reduction) {
      session.ReduceScatter(call, buffer, offsets, reduction);
    });
  };
}

// --- slices ------------------------------------------------------------------------------------------------

auto Allgather(Session& session, const Call& call, const void* send, void* recv, Offsets offsets) {
  const std::size_t first = offsets[session.rank()];
  const std::size_t bytes = offsets[session.rank() + 1] - first;
  RequireBuffer(session, call, send, bytes);
  RequireBuffer(session, call, recv, offsets.back());
  return [=, &session, offsets = std::move(offsets)] {
    if (bytes > 0) Copy(static_cast<std::byte*>(recv) + first, send, bytes);
    session.Allgather(call, recv, offsets);
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

auto AllToAll(Session& session, const Call& call, const void* send, Offsets sent, void* recv,
              Offsets received) {
  session.CheckAllToAll(call, send, sent, recv, received);
  return [=, &session, sent = std::move(sent), received = std::move(received)] {
    session.AllToAll(call, send, sent, recv, received);
  };
}

/// The counts of a rank that is not the root are nobody's.
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
    session.Refuse(call, fmt::format("ranks 0 and {} of it give different lists of ranks", rank));
  }
}

// --- every call, however it is waited for ------------------------------------------------------------------

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
    if (out == nullptr) session->Refuse(call, "the place for the communicator is null");
    Give(std::move(session), out);
  });
}

int WarrenCommSplit(WarrenComm comm, int color, int key, WarrenComm* out) {
  return Make(comm, "WarrenCommSplit", out,
              [&](Session& session, const Call& call) { return session.Split(call, color, key); });
}

int WarrenCommCreate(WarrenComm comm, const int* ranks, size_t count, WarrenComm* out) {
  return Make(comm, "WarrenCommCreate", out, [&](Session& session, const Call& call) {
    if (ranks == nullptr && count > 0) session.Refuse(call, "the list of ranks is null");
    const std::span list(ranks, count);
    RequireSameList(session, call, list);
    std::vector<int> place(static_cast<std::size_t>(session.world_size()), -1);
    for (std::size_t i = 0; i < count; ++i) {
      if (list[i] < 0 || list[i] >= session.world_size() || place[list[i]] >= 0) {
        session.Refuse(
            call,
            fmt::format("the list of ranks has {}, which is no rank or is there twice; ranks are 0 to {}",
                        list[i], session.world_size() - 1));
      }
      place[list[i]] = static_cast<int>(i);
    }
    const int own = place[session.rank()];
    return session.Split(call, own < 0 ? -1 : 0, own);
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

int WarrenCommRank(WarrenComm comm, int* rank) {
  return On(comm, "WarrenCommRank", [&](Session& session, const Call& call) {
    if (rank == nullptr) session.Refuse(call, "the place for the rank is null");
    *rank = session.rank();
  });
}

int WarrenCommSize(WarrenComm comm, int* size) {
  return On(comm, "WarrenCommSize", [&](Session& session, const Call& call) {
    if (size == nullptr) session.Refuse(call, "the place for the size is null");
    *size = session.world_size();
  });
}

int WarrenCommRankInWorld(WarrenComm comm, int rank, int* rank_in_world) {
  return On(comm, "WarrenCommRankInWorld", [&](Session& session, const Call& call) {
    if (rank_in_world == nullptr) session.Refuse(call, "the place for the rank is null");
    *rank_in_world = session.RankInJob(call, rank);
  });
}

// --- collectives -------------------------------------------------------------------------------------------

int WarrenAllreduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op) {
  return AllreduceOn({"WarrenAllreduce"}, comm, send, recv, count, type, op);
}
int WarrenAllreduceAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                         WarrenHandle* handle) {
  return AllreduceOn({"WarrenAllreduceAsync", true, handle}, comm, send, recv, count, type, op);
}

int WarrenAllreduceCustom(WarrenComm comm, const void* send, void* recv, size_t count,
                          const WarrenCustomOp* op) {
  return AllreduceCustomOn({"WarrenAllreduceCustom"}, comm, send, recv, count, op);
}
int WarrenAllreduceCustomAsync(WarrenComm comm, const void* send, void* recv, size_t count,
                               const WarrenCustomOp* op, WarrenHandle* handle) {
  return AllreduceCustomOn({"WarrenAllreduceCustomAsync", true, handle}, comm, send, recv, count, op);
}

int WarrenReduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op, int root) {
  return ReduceOn({"WarrenReduce"}, comm, send, recv, count, type, op, root);
}
int WarrenReduceAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op, int root,
                      WarrenHandle* handle) {
  return ReduceOn({"WarrenReduceAsync", true, handle}, comm, send, recv, count, type, op, root);
}

int WarrenReduceCustom(WarrenComm comm, const void* send, void* recv, size_t count, const WarrenCustomOp* op,
                       int root) {
  return ReduceCustomOn({"WarrenReduceCustom"}, comm, send, recv, count, op, root);
}
int WarrenReduceCustomAsync(WarrenComm comm, const void* send, void* recv, size_t count,
                            const WarrenCustomOp* op, int root, WarrenHandle* handle) {
  return ReduceCustomOn({"WarrenReduceCustomAsync", true, handle}, comm, send, recv, count, op, root);
}

int WarrenReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op) {
  return ReduceScatterOn({"WarrenReduceScatter"}, comm, send, recv, count, type, op);
}
int WarrenReduceScatterAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                             WarrenHandle* handle) {
  return ReduceScatterOn({"WarrenReduceScatterAsync", true, handle}, comm, send, recv, count, type, op);
}

int WarrenReduceScatterV(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type,
                         int op) {
  return ReduceScatterVOn({"WarrenReduceScatterV"}, comm, send, recv, counts, type, op);
}
int WarrenReduceScatterVAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type,
                              int op, WarrenHandle* handle) {
  return ReduceScatterVOn({"WarrenReduceScatterVAsync", true, handle}, comm, send, recv, counts, type, op);
}

int WarrenReduceScatterVCustom(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                               const WarrenCustomOp* op) {
  return ReduceScatterVCustomOn({"WarrenReduceScatterVCustom"}, comm, send, recv, counts, op);
}
int WarrenReduceScatterVCustomAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                    const WarrenCustomOp* op, WarrenHandle* handle) {
  return ReduceScatterVCustomOn({"WarrenReduceScatterVCustomAsync", true, handle}, comm, send, recv, counts,
                                op);
}

int WarrenBroadcast(WarrenComm comm, void* buffer, size_t count, int type, int root) {
  return BroadcastOn({"WarrenBroadcast"}, comm, buffer, count, type, root);
}
int WarrenBroadcastAsync(WarrenComm comm, void* buffer, size_t count, int type, int root,
                         WarrenHandle* handle) {
  return BroadcastOn({"WarrenBroadcastAsync", true, handle}, comm, buffer, count, type, root);
}

int WarrenAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type) {
  return AllgatherOn({"WarrenAllgather"}, comm, send, recv, count, type);
}
int WarrenAllgatherAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                         WarrenHandle* handle) {
  return AllgatherOn({"WarrenAllgatherAsync", true, handle}, comm, send, recv, count, type);
}

int WarrenAllgatherV(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type) {
  return AllgatherVOn({"WarrenAllgatherV"}, comm, send, recv, counts, type);
}
int WarrenAllgatherVAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts, int type,
                          WarrenHandle* handle) {
  return AllgatherVOn({"WarrenAllgatherVAsync", true, handle}, comm, send, recv, counts, type);
}

int WarrenGather(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root) {
  return GatherOn({"WarrenGather"}, comm, send, recv, count, type, root);
}
int WarrenGatherAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root,
                      WarrenHandle* handle) {
  return GatherOn({"WarrenGatherAsync", true, handle}, comm, send, recv, count, type, root);
}

int WarrenGatherV(WarrenComm comm, const void* send, size_t count, void* recv, const size_t* counts, int type,
                  int root) {
  return GatherVOn({"WarrenGatherV"}, comm, send, count, recv, counts, type, root);
}
int WarrenGatherVAsync(WarrenComm comm, const void* send, size_t count, void* recv, const size_t* counts,
                       int type, int root, WarrenHandle* handle) {
  return GatherVOn({"WarrenGatherVAsync", true, handle}, comm, send, count, recv, counts, type, root);
}

int WarrenScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root) {
  return ScatterOn({"WarrenScatter"}, comm, send, recv, count, type, root);
}
int WarrenScatterAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root,
                       WarrenHandle* handle) {
  return ScatterOn({"WarrenScatterAsync", true, handle}, comm, send, recv, count, type, root);
}

int WarrenScatterV(WarrenComm comm, const void* send, const size_t* counts, void* recv, size_t count,
                   int type, int root) {
  return ScatterVOn({"WarrenScatterV"}, comm, send, counts, recv, count, type, root);
}
int WarrenScatterVAsync(WarrenComm comm, const void* send, const size_t* counts, void* recv, size_t count,
                        int type, int root, WarrenHandle* handle) {
  return ScatterVOn({"WarrenScatterVAsync", true, handle}, comm, send, counts, recv, count, type, root);
}

int WarrenAllToAll(WarrenComm comm, const void* send, void* recv, size_t count, int type) {
  return AllToAllOn({"WarrenAllToAll"}, comm, send, recv, count, type);
}
int WarrenAllToAllAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                        WarrenHandle* handle) {
  return AllToAllOn({"WarrenAllToAllAsync", true, handle}, comm, send, recv, count, type);
}

int WarrenAllToAllV(WarrenComm comm, const void* send, const size_t* send_counts, void* recv,
                    const size_t* recv_counts, int type) {
  return AllToAllVOn({"WarrenAllToAllV"}, comm, send, send_counts, recv, recv_counts, type);
}
int WarrenAllToAllVAsync(WarrenComm comm, const void* send, const size_t* send_counts, void* recv,
                         const size_t* recv_counts, int type, WarrenHandle* handle) {
  return AllToAllVOn({"WarrenAllToAllVAsync", true, handle}, comm, send, send_counts, recv, recv_counts,
                     type);
}

int WarrenBarrier(WarrenComm comm) {
  return BarrierOn({"WarrenBarrier"}, comm);
}
int WarrenBarrierAsync(WarrenComm comm, WarrenHandle* handle) {
  return BarrierOn({"WarrenBarrierAsync", true, handle}, comm);
}

int WarrenSend(WarrenComm comm, const void* buffer, size_t count, int type, int to) {
  return SendOn({"WarrenSend"}, comm, buffer, count, type, to);
}
int WarrenSendAsync(WarrenComm comm, const void* buffer, size_t count, int type, int to,
                    WarrenHandle* handle) {
  return SendOn({"WarrenSendAsync", true, handle}, comm, buffer, count, type, to);
}

int WarrenRecv(WarrenComm comm, void* buffer, size_t count, int type, int from) {
  return RecvOn({"WarrenRecv"}, comm, buffer, count, type, from);
}
int WarrenRecvAsync(WarrenComm comm, void* buffer, size_t count, int type, int from, WarrenHandle* handle) {
  return RecvOn({"WarrenRecvAsync", true, handle}, comm, buffer, count, type, from);
}

int WarrenSendRecv(WarrenComm comm, const void* send, size_t send_count, int to, void* recv,
                   size_t recv_count, int from, int type) {
  return SendRecvOn({"WarrenSendRecv"}, comm, send, send_count, to, recv, recv_count, from, type);
}
int WarrenSendRecvAsync(WarrenComm comm, const void* send, size_t send_count, int to, void* recv,
                        size_t recv_count, int from, int type, WarrenHandle* handle) {
  return SendRecvOn({"WarrenSendRecvAsync", true, handle}, comm, send, send_count, to, recv, recv_count, from,
                    type);
}

// --- on the memory of GPUs ---------------------------------------------------------------------------------

namespace {

using warren::api::DeviceCall;
using DeviceCollective = warren::device::Collective;
using DeviceKind = warren::device::Kind;
using DeviceOperation = warren::device::Operation;
using DeviceType = warren::device::Type;

DeviceType DeviceTypeOf(const Session& session, const Call& call, int type) {
  ElementBytes(session, call, type);
  switch (static_cast<WarrenType>(type)) {
    case WARREN_INT8:
      return DeviceType::kInt8;
    case WARREN_UINT8:
      return DeviceType::kUint8;
    case WARREN_INT32:
      return DeviceType::kInt32;
    case WARREN_UINT32:
      return DeviceType::kUint32;
    case WARREN_INT64:
      return DeviceType::kInt64;
    case WARREN_UINT64:
      return DeviceType::kUint64;
    case WARREN_FLOAT32:
      return DeviceType::kFloat32;
    case WARREN_FLOAT64:
      return DeviceType::kFloat64;
    case WARREN_FLOAT16:
      return DeviceType::kFloat16;
    case WARREN_BFLOAT16:
      return DeviceType::kBFloat16;
  }
  session.Refuse(call, "there is no such element type on devices");
}

DeviceOperation DeviceOperationOf(const Session& session, const Call& call, int op) {
  switch (op) {
    case WARREN_SUM:
      return DeviceOperation::kSum;
    case WARREN_PROD:
      return DeviceOperation::kProduct;
    case WARREN_MAX:
      return DeviceOperation::kMax;
    case WARREN_MIN:
      return DeviceOperation::kMin;
    case WARREN_AVG:
      return DeviceOperation::kAverage;
    default:
      session.Refuse(call, fmt::format("there is no operation {} on devices", op));
  }
}

/// `fill(session, call, collective)` says what kind it is; the rest is common.
template <typename Fill>
int OnDevice(WarrenComm comm, const char* name, const void* send, void* recv, size_t count, int type,
             void* stream, WarrenHandle* handle, Fill&& fill) {
  return On(comm, name, [&](Session& session, const Call& call) {
    DeviceCollective collective;
    collective.send = send;
    collective.receive = recv;
    collective.count = count;
    collective.type = DeviceTypeOf(session, call, type);
    collective.stream = stream;
    fill(session, call, collective);
    if (handle == nullptr) return session.OnDevice(call, collective);
    *handle = nullptr;
    *handle = new WarrenHandle_{std::make_shared<DeviceCall>(call, comm->session, collective)};
  });
}

}  // namespace

int WarrenDeviceAllreduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                          void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceAllreduce", send, recv, count, type, stream, handle,
                  [&](Session& session, const Call& call, DeviceCollective& collective) {
                    collective.operation = DeviceOperationOf(session, call, op);
                  });
}

int WarrenDeviceReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                              void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceReduceScatter", send, recv, count, type, stream, handle,
                  [&](Session& session, const Call& call, DeviceCollective& collective) {
                    collective.kind = DeviceKind::kReduceScatter;
                    collective.operation = DeviceOperationOf(session, call, op);
                  });
}

int WarrenDeviceBroadcast(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root,
                          void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceBroadcast", send, recv, count, type, stream, handle,
                  [&](Session&, const Call&, DeviceCollective& collective) {
                    collective.kind = DeviceKind::kBroadcast;
                    collective.root = root;
                  });
}

int WarrenDeviceAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type, void* stream,
                          WarrenHandle* handle) {
  return OnDevice(
      comm, "WarrenDeviceAllgather", send, recv, count, type, stream, handle,
      [&](Session&, const Call&, DeviceCollective& collective) { collective.kind = DeviceKind::kAllgather; });
}

// --- named operations --------------------------------------------------------------------------------------

namespace {

using NamedKind = warren::coordinator::Kind;

NamedCallOptions OptionsOf(const Session& session, const Call& call,
                           const WarrenCoordinatorOptions* options) {
  NamedCallOptions result = session.options().named;
  if (options == nullptr) return result;
  if (options->struct_bytes < sizeof(WarrenCoordinatorOptions)) {
    session.Refuse(call,
                   "the options are of no version of this library: begin with WARREN_COORDINATOR_OPTIONS");
  }
  if (options->fusion_bytes >= 0) result.fusion_bytes = static_cast<std::size_t>(options->fusion_bytes);
  constexpr int kLongestCycle = 1'000'000;
  if (options->cycle_us > kLongestCycle)
    session.Refuse(call, fmt::format("a cycle of {} us; at most {}", options->cycle_us, kLongestCycle));
  if (options->cycle_us >= 0) result.cycle = std::chrono::microseconds(options->cycle_us);
  if (options->autotune >= 0) result.autotune = options->autotune != 0;
  if (options->stall_warning_seconds > 0) result.warns_after = options->stall_warning_seconds;
  if (options->stall_error_seconds >= 0) result.fails_after = options->stall_error_seconds;
  return result;
}

/// With the name, the options and a place for the handle. `prepare(session, call, request, work)` checks
/// the arguments and fills in what the request says of them, and the work.
template <typename Prepare>
int Enqueue(WarrenCoordinator coordinator, const char* function, const char* name,
            const WarrenEnqueueOptions* options, WarrenHandle* handle, Prepare&& prepare) {
  return Attempt([&] {
    const Call call{function};
    if (coordinator == nullptr)
      throw Misuse(fmt::format("rank unknown: {}: the coordinator is null", function));
    const std::shared_ptr<NamedCalls> calls = coordinator->calls;
    Session& session = calls->session();
    if (handle == nullptr) session.Refuse(call, "the place for the handle is null");
    *handle = nullptr;
    if (name == nullptr || *name == '\0') session.Refuse(call, "the operation has no name");
    Request request;
    request.name = name;
    if (options != nullptr) {
      if (options->struct_bytes < sizeof(WarrenEnqueueOptions)) {
        session.Refuse(call,
                       "the options are of no version of this library: begin with WARREN_ENQUEUE_OPTIONS");
      }
      request.priority = options->priority;
      if (options->group != nullptr && *options->group != '\0') {
        if (options->group_size == 0 || options->group_size > std::numeric_limits<std::uint32_t>::max())
          session.Refuse(call,
                         fmt::format("group '{}' has a size of {}", options->group, options->group_size));
        request.group = options->group;
        request.group_size = static_cast<std::uint32_t>(options->group_size);
      } else if (options->group_size != 0) {
        session.Refuse(call, fmt::format("a group of {} has no name", options->group_size));
      }
    }
    NamedWork work;
    prepare(session, call, request, work);
    *handle = new WarrenHandle_{calls->Add(call, std::move(request), std::move(work))};
  });
}

std::uint64_t DigestOfSlices(std::span<const std::size_t> offsets) {
  std::uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (const std::size_t offset : offsets) digest = (digest ^ offset) * 0x100000001b3;
  return digest;
}

void Sign(Signature& signature, const Wanted& wanted, std::size_t count) {
  const Reduction& reduction = wanted.reduction;
  signature.custom = reduction.is_custom();
  if (!signature.custom) {
    signature.type = static_cast<std::uint8_t>(reduction.type());
    signature.operation = static_cast<std::uint8_t>(reduction.operation());
  }
  signature.average = wanted.average;
  signature.element_bytes = reduction.element_bytes();
  signature.count = count;
}

void SignSlices(Signature& signature, NamedKind kind, std::span<const std::size_t> offsets) {
  signature.kind = kind;
  signature.count = offsets.back();
  signature.digest = DigestOfSlices(offsets);
}

}  // namespace

int WarrenCoordinatorCreate(WarrenComm comm, const WarrenCoordinatorOptions* options,
                            WarrenCoordinator* out) {
  return On(comm, "WarrenCoordinatorCreate", [&](Session& session, const Call& call) {
    if (out == nullptr) session.Refuse(call, "the place for the coordinator is null");
    *out = nullptr;
    *out = new WarrenCoordinator_{NamedCalls::Make(call, session, OptionsOf(session, call, options))};
  });
}

int WarrenCoordinatorClose(WarrenCoordinator coordinator) {
  return Attempt([&] {
    if (coordinator == nullptr) throw Misuse("rank unknown: WarrenCoordinatorClose: the coordinator is null");
    std::shared_ptr<NamedCalls>(coordinator->calls)->Close();
  });
}

int WarrenCoordinatorFree(WarrenCoordinator coordinator) {
  const std::unique_ptr<WarrenCoordinator_> owned(coordinator);
  return Attempt([&] {
    if (owned) owned->calls->Close();
  });
}

int WarrenCoordinatorJoin(WarrenCoordinator coordinator, int* last_rank) {
  return Attempt([&] {
    const Call call{"WarrenCoordinatorJoin"};
    if (coordinator == nullptr)
      throw Misuse(fmt::format("rank unknown: {}: the coordinator is null", call.name));
    const int last = std::shared_ptr<NamedCalls>(coordinator->calls)->Join(call);
    if (last_rank != nullptr) *last_rank = last;
  });
}

int WarrenEnqueueAllreduce(WarrenCoordinator coordinator, const char* name, const void* send, void* recv,
                           size_t count, int type, int op, const WarrenEnqueueOptions* options,
                           WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueAllreduce", name, options, handle,
                 [&](Session& session, const Call& call, Request& request, NamedWork& work) {
                   const Wanted wanted = Typed(session, call, type, op);
                   work = {Allreduce(session, call, send, recv, count, wanted), send, recv};
                   Sign(request.signature, wanted, count);
                 });
}

int WarrenEnqueueAllreduceCustom(WarrenCoordinator coordinator, const char* name, const void* send,
                                 void* recv, size_t count, const WarrenCustomOp* op,
                                 const WarrenEnqueueOptions* options, WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueAllreduceCustom", name, options, handle,
                 [&](Session& session, const Call& call, Request& request, NamedWork& work) {
                   const Wanted wanted = Custom(session, call, op);
                   work.run = Allreduce(session, call, send, recv, count, wanted);
                   Sign(request.signature, wanted, count);
                 });
}

int WarrenEnqueueReduceScatterV(WarrenCoordinator coordinator, const char* name, const void* send, void* recv,
                                const size_t* counts, int type, int op, const WarrenEnqueueOptions* options,
                                WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueReduceScatterV", name, options, handle,
                 [&](Session& session, const Call& call, Request& request, NamedWork& work) {
                   const Wanted wanted = Typed(session, call, type, op);
                   const Offsets offsets = Ragged(session, call, counts, 1);
                   work.run = ReduceScatter(session, call, send, recv, offsets, wanted);
                   Sign(request.signature, wanted, offsets.back());
                   SignSlices(request.signature, NamedKind::kReduceScatter, offsets);
                 });
}

int WarrenEnqueueBroadcast(WarrenCoordinator coordinator, const char* name, void* buffer, size_t count,
                           int type, int root, const WarrenEnqueueOptions* options, WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueBroadcast", name, options, handle,
                 [&](Session& session, const Call& call, Request& request, NamedWork& work) {
                   const std::size_t bytes = Product(session, call, count, ElementBytes(session, call, type));
                   session.CheckRoot(call, root);
                   RequireBuffer(session, call, buffer, bytes);
                   work.run = [=, &session] { session.Broadcast(call, buffer, bytes, root); };
                   request.signature.kind = NamedKind::kBroadcast;
                   request.signature.count = bytes;
                   request.signature.root = root;
                 });
}

int WarrenEnqueueAllgatherV(WarrenCoordinator coordinator, const char* name, const void* send, void* recv,
                            const size_t* counts, int type, const WarrenEnqueueOptions* options,
                            WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueAllgatherV", name, options, handle,
                 [&](Session& session, const Call& call, Request& request, NamedWork& work) {
                   const Offsets offsets = Ragged(session, call, counts, ElementBytes(session, call, type));
                   work.run = Allgather(session, call, send, recv, offsets);
                   SignSlices(request.signature, NamedKind::kAllgather, offsets);
                 });
}

int WarrenEnqueueAllToAllV(WarrenCoordinator coordinator, const char* name, const void* send,
                           const size_t* send_counts, void* recv, const size_t* recv_counts, int type,
                           const WarrenEnqueueOptions* options, WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueAllToAllV", name, options, handle,
                 [&](Session& session, const Call& call, Request& request, NamedWork& work) {
                   const std::size_t element = ElementBytes(session, call, type);
                   const Offsets sent = Ragged(session, call, send_counts, element);
                   const Offsets received = Ragged(session, call, recv_counts, element);
                   for (int rank = 0; rank < session.world_size(); ++rank) {
                     request.sent.push_back(sent[rank + 1] - sent[rank]);
                     request.received.push_back(received[rank + 1] - received[rank]);
                   }
                   work.run = AllToAll(session, call, send, sent, recv, received);
                   request.signature.kind = NamedKind::kAllToAll;
                 });
}

int WarrenEnqueueBarrier(WarrenCoordinator coordinator, const char* name, const WarrenEnqueueOptions* options,
                         WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueBarrier", name, options, handle,
                 [](Session& session, const Call& call, Request& request, NamedWork& work) {
                   work.run = [&session, call] { session.Barrier(call); };
                   request.signature.kind = NamedKind::kBarrier;
                 });
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
    if (done == nullptr) throw Misuse("WarrenTest: the place for the answer is null");
    *done = handle == nullptr || handle->call->HasEnded() ? 1 : 0;
  });
}

int WarrenWhenDone(WarrenHandle handle, void (*function)(const char* error, void* context), void* context) {
  return Attempt([&] {
    if (handle == nullptr || function == nullptr)
      throw Misuse("WarrenWhenDone: the handle or the function is null");
    handle->call->WhenEnded([=](const std::exception_ptr& error) {
      if (!error) return function(nullptr, context);
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& failure) {
        function(failure.what(), context);
      } catch (...) {
        function("an exception of the caller's operation", context);
      }
    });
  });
}

int WarrenHandleFree(WarrenHandle handle) {
  return Attempt([&] { delete handle; });
}
