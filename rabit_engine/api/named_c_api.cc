// The C API of named operations: the part of warren/c_api.h for coordinators.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "rabit_engine/api/c_result.h"
#include "rabit_engine/api/collectives_face.h"
#include "rabit_engine/api/named_calls.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/coordinator/request.h"
#include "warren/c_api.h"

using namespace warren::api::face;  // NOLINT(google-build-using-namespace): the functions below are C's

namespace {

using warren::Misuse;
using warren::Reduction;
using warren::api::Attempt;
using warren::api::Call;
using warren::api::NamedCallOptions;
using warren::api::NamedCalls;
using warren::api::NamedWork;
using warren::api::Session;
using warren::api::Wanted;
using warren::coordinator::Request;
using warren::coordinator::Signature;
using NamedKind = warren::coordinator::Kind;

NamedCallOptions OptionsOf(const Session& session, const Call& call,
                           const WarrenCoordinatorOptions* options) {
  NamedCallOptions result = session.options().named;
  if (options == nullptr) return result;
  if (options->struct_bytes < sizeof(WarrenCoordinatorOptions)) {
    session.Refuse(
        call, "struct_bytes of the options is too small; initialise them with WARREN_COORDINATOR_OPTIONS");
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

/// Handles the name, the options and the handle. `prepare(session, call, request, work)` checks the arguments
/// and fills in the rest of the request and the work.
template <typename Prepare>
int Enqueue(WarrenCoordinator coordinator, const char* function, const char* name,
            const WarrenEnqueueOptions* options, WarrenHandle* handle, Prepare&& prepare) {
  return Attempt([&] {
    const Call call{function};
    if (coordinator == nullptr)
      throw Misuse(fmt::format("rank unknown: {}: the coordinator is null", function));
    const std::shared_ptr<NamedCalls> calls = coordinator->calls;
    Session& session = calls->session();
    if (handle == nullptr) session.Refuse(call, "`handle` is NULL");
    *handle = nullptr;
    if (name == nullptr || *name == '\0') session.Refuse(call, "the operation has no name");
    Request request;
    request.name = name;
    if (options != nullptr) {
      if (options->struct_bytes < sizeof(WarrenEnqueueOptions)) {
        session.Refuse(
            call, "struct_bytes of the options is too small; initialise them with WARREN_ENQUEUE_OPTIONS");
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
    if (out == nullptr) session.Refuse(call, "out is NULL");
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
