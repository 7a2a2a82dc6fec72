// The C API of named operations: the part of warren/c_api.h for coordinators.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rabit_engine/api/c_operation.h"
#include "rabit_engine/api/c_result.h"
#include "rabit_engine/api/collectives_face.h"
#include "rabit_engine/api/named_calls.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/fnv1a.h"
#include "rabit_engine/coordinator/request.h"
#include "warren/c_api.h"

using namespace warren::api::face;  // NOLINT(google-build-using-namespace): the functions below are C's

namespace {

using warren::Collective;
using warren::Fnv1a;
using warren::Misuse;
using warren::Operation;
using warren::Reduction;
using warren::api::Arguments;
using warren::api::Attempt;
using warren::api::Call;
using warren::api::NamedCallOptions;
using warren::api::NamedCalls;
using warren::api::NamedWork;
using warren::api::OwnedOperation;
using warren::api::Prepare;
using warren::api::Session;
using warren::coordinator::Request;
using warren::coordinator::Signature;

NamedCallOptions OptionsOf(const Session& session, const Call& call,
                           const WarrenCoordinatorOptions* options) {
  NamedCallOptions result = session.options().named;
  if (options == nullptr) return result;
  RequireWhole(session, call, options, "COORDINATOR");
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

/// Returns the properties of an operation that must be the same on all ranks.
Signature SignatureOf(const Operation& operation) {
  Signature signature;
  signature.kind = operation.kind;
  signature.count = operation.count;
  if (operation.kind == Collective::kBroadcast) signature.root = operation.root;
  if (operation.kind == Collective::kAllToAll) signature.count = 0;  // ranks know only their own slices
  if (operation.kind == Collective::kReduceScatter || operation.kind == Collective::kAllgather) {
    signature.count = operation.receive_offsets.back();
    signature.digest = Fnv1a(operation.receive_offsets);
  }
  if (operation.reduction == nullptr) return signature;
  const Reduction& reduction = *operation.reduction;
  signature.custom = reduction.is_custom();
  if (!signature.custom) {
    signature.type = static_cast<std::uint8_t>(reduction.type());
    signature.operation = static_cast<std::uint8_t>(reduction.operation());
  }
  signature.average = operation.average;
  signature.element_bytes = reduction.element_bytes();
  return signature;
}

std::vector<std::uint64_t> LengthsOf(std::span<const std::size_t> offsets) {
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 1; i < offsets.size(); ++i) lengths.push_back(offsets[i] - offsets[i - 1]);
  return lengths;
}

/// Throws Misuse if the coordinator is null. The result keeps its named calls alive if another thread frees
/// the coordinator meanwhile.
std::shared_ptr<NamedCalls> CallsOf(WarrenCoordinator coordinator, const Call& call) {
  if (coordinator == nullptr) {
    throw Misuse(fmt::format("rank unknown: {}: the coordinator is null", call.name));
  }
  return coordinator->calls;
}

int Enqueue(WarrenCoordinator coordinator, const char* function, const char* name,
            const WarrenEnqueueOptions* options, WarrenHandle* handle, const Arguments& arguments) {
  std::shared_ptr<WarrenCustomOp> custom = TakeCustomOp(arguments);
  return Attempt([&] {
    const Call call{function};
    const std::shared_ptr<NamedCalls> calls = CallsOf(coordinator, call);
    Session& session = calls->session();
    if (handle == nullptr) session.Refuse(call, "`handle` is NULL");
    *handle = nullptr;
    if (name == nullptr || *name == '\0') session.Refuse(call, "the operation has no name");
    Request request;
    request.name = name;
    RequireWhole(session, call, options, "ENQUEUE");
    if (options != nullptr) {
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
    OwnedOperation owned = Prepare(session, call, arguments, std::move(custom));
    session.Check(call, owned.View());
    request.signature = SignatureOf(owned.View());
    if (arguments.kind == Collective::kAllToAll) {
      request.sent = LengthsOf(owned.send_offsets);
      request.received = LengthsOf(owned.receive_offsets);
    }
    NamedWork work;
    work.send = arguments.send;
    work.receive = arguments.recv;
    work.run = [&session, call, operation = std::move(owned)] { session.Run(call, operation.View()); };
    *handle = new WarrenHandle_{calls->Add(call, std::move(request), std::move(work))};
  });
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
  return Attempt([&] { CallsOf(coordinator, Call{"WarrenCoordinatorClose"})->Close(); });
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
    const int last = CallsOf(coordinator, call)->Join(call);
    if (last_rank != nullptr) *last_rank = last;
  });
}

int WarrenEnqueueAllreduce(WarrenCoordinator coordinator, const char* name, const void* send, void* recv,
                           size_t count, int type, int op, const WarrenEnqueueOptions* options,
                           WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueAllreduce", name, options, handle,
                 Arguments::Allreduce(send, recv, count, type, op));
}

int WarrenEnqueueAllreduceCustom(WarrenCoordinator coordinator, const char* name, const void* send,
                                 void* recv, size_t count, const WarrenCustomOp* op,
                                 const WarrenEnqueueOptions* options, WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueAllreduceCustom", name, options, handle,
                 Arguments::Allreduce(send, recv, count, 0, op));
}

int WarrenEnqueueReduceScatterV(WarrenCoordinator coordinator, const char* name, const void* send, void* recv,
                                const size_t* counts, int type, int op, const WarrenEnqueueOptions* options,
                                WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueReduceScatterV", name, options, handle,
                 Arguments::ReduceScatter(send, recv, counts, type, op));
}

int WarrenEnqueueBroadcast(WarrenCoordinator coordinator, const char* name, void* buffer, size_t count,
                           int type, int root, const WarrenEnqueueOptions* options, WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueBroadcast", name, options, handle,
                 Arguments::Broadcast(buffer, count, type, root));
}

int WarrenEnqueueAllgatherV(WarrenCoordinator coordinator, const char* name, const void* send, void* recv,
                            const size_t* counts, int type, const WarrenEnqueueOptions* options,
                            WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueAllgatherV", name, options, handle,
                 Arguments::Allgather(send, recv, counts, type));
}

int WarrenEnqueueAllToAllV(WarrenCoordinator coordinator, const char* name, const void* send,
                           const size_t* send_counts, void* recv, const size_t* recv_counts, int type,
                           const WarrenEnqueueOptions* options, WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueAllToAllV", name, options, handle,
                 Arguments::AllToAll(send, send_counts, recv, recv_counts, type));
}

int WarrenEnqueueBarrier(WarrenCoordinator coordinator, const char* name, const WarrenEnqueueOptions* options,
                         WarrenHandle* handle) {
  return Enqueue(coordinator, "WarrenEnqueueBarrier", name, options, handle, {});
}
