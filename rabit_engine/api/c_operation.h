// Converts the arguments of a collective's C function (warren/c_api.h) to an Operation, which can run
// immediately or later, also on another thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "rabit_engine/api/session.h"
#include "rabit_engine/call/operation.h"
#include "rabit_engine/reduce/reduction.h"
#include "warren/c_api.h"

namespace warren::api {

using Offsets = std::vector<std::size_t>;

/// The number of elements in every rank's slice, or an array with one number per rank.
using Counts = std::variant<std::size_t, const std::size_t*>;

/// A WarrenOp, or the caller's custom operation.
using Op = std::variant<int, const WarrenCustomOp*>;

/// The arguments of a collective's C function; members for which the function has no parameter are not used.
/// `type` is a WarrenType; counts are in elements.
struct Arguments {
  Collective kind = Collective::kBarrier;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  Counts send_counts{};
  Counts recv_counts{};
  int type = 0;
  Op op{};
  int root = 0;
  std::size_t recv_count = 0;  ///< number of elements to receive from rank `from`
  std::optional<int> to{};
  std::optional<int> from{};

  static Arguments Allreduce(const void* send, void* recv, std::size_t count, int type, Op op) {
    return {
        .kind = Collective::kAllreduce, .send = send, .recv = recv, .count = count, .type = type, .op = op};
  }
  static Arguments Reduce(const void* send, void* recv, std::size_t count, int type, Op op, int root) {
    return {.kind = Collective::kReduce,
            .send = send,
            .recv = recv,
            .count = count,
            .type = type,
            .op = op,
            .root = root};
  }
  static Arguments ReduceScatter(const void* send, void* recv, Counts counts, int type, Op op) {
    return {.kind = Collective::kReduceScatter,
            .send = send,
            .recv = recv,
            .recv_counts = counts,
            .type = type,
            .op = op};
  }
  static Arguments Broadcast(void* buffer, std::size_t count, int type, int root) {
    return {.kind = Collective::kBroadcast,
            .send = buffer,
            .recv = buffer,
            .count = count,
            .type = type,
            .root = root};
  }
  static Arguments Allgather(const void* send, void* recv, Counts counts, int type) {
    return {.kind = Collective::kAllgather, .send = send, .recv = recv, .recv_counts = counts, .type = type};
  }
  static Arguments Gather(const void* send, std::size_t count, void* recv, Counts counts, int type,
                          int root) {
    return {.kind = Collective::kGather,
            .send = send,
            .recv = recv,
            .count = count,
            .recv_counts = counts,
            .type = type,
            .root = root};
  }
  static Arguments Scatter(const void* send, Counts counts, void* recv, std::size_t count, int type,
                           int root) {
    return {.kind = Collective::kScatter,
            .send = send,
            .recv = recv,
            .count = count,
            .send_counts = counts,
            .type = type,
            .root = root};
  }
  static Arguments AllToAll(const void* send, Counts send_counts, void* recv, Counts recv_counts, int type) {
    return {.kind = Collective::kAllToAll,
            .send = send,
            .recv = recv,
            .send_counts = send_counts,
            .recv_counts = recv_counts,
            .type = type};
  }
  static Arguments Send(const void* send, std::size_t count, int type, int to) {
    return {.kind = Collective::kSendReceive, .send = send, .count = count, .type = type, .to = to};
  }
  static Arguments Recv(void* recv, std::size_t count, int type, int from) {
    return {.kind = Collective::kSendReceive, .recv = recv, .type = type, .recv_count = count, .from = from};
  }
  static Arguments SendRecv(const void* send, std::size_t count, int to, void* recv, std::size_t recv_count,
                            int from, int type) {
    return {.kind = Collective::kSendReceive,
            .send = send,
            .recv = recv,
            .count = count,
            .type = type,
            .recv_count = recv_count,
            .to = to,
            .from = from};
  }
};

/// An operation and the data to which it refers, except for the caller's buffers.
struct OwnedOperation {
  Operation operation;
  Offsets send_offsets;
  Offsets receive_offsets;
  std::optional<Reduction> reduction;
  std::shared_ptr<WarrenCustomOp> custom;  ///< called by the reduction
  std::optional<Outbound> out;
  std::optional<Inbound> in;

  /// The returned view is valid until this object is changed, moved or destroyed.
  Operation View() const {
    Operation view = operation;
    view.send_offsets = send_offsets;
    view.receive_offsets = receive_offsets;
    if (reduction) view.reduction = &*reduction;
    if (out) view.sends = {&*out, 1};
    if (in) view.receives = {&*in, 1};
    return view;
  }
};

/// Returns the size of an element of `type`, a WarrenType. Refuses other codes.
std::size_t CElementBytes(const Session& session, const Call& call, int type);

/// Takes over the caller's custom operation in `arguments`, which is released when the last copy of the
/// result is destroyed. Each function that has such a parameter calls this first, so that the operation is
/// also released if the call is refused. Returns null if there is no custom operation, or no memory.
std::shared_ptr<WarrenCustomOp> TakeCustomOp(const Arguments& arguments) noexcept;

/// Makes the operation. `custom` is TakeCustomOp's result. Refuses the call if the arguments cannot be
/// converted; Session::Check makes the remaining checks.
OwnedOperation Prepare(const Session& session, const Call& call, const Arguments& arguments,
                       std::shared_ptr<WarrenCustomOp> custom);

}  // namespace warren::api
