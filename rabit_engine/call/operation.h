// One collective call of one rank as a value: the APIs build it, Complaint checks it, and a Communicator runs
// it. The meaning of each field depends on the kind; see the static functions of Operation, which describe
// the kinds.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "rabit_engine/call/collective.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren {

/// A message to another rank, or to the sender itself.
struct Outbound {
  int to = -1;
  const void* data = nullptr;
  std::size_t bytes = 0;
};
/// A message from another rank, or from the receiver itself; `bytes` must be the length that was sent.
struct Inbound {
  int from = -1;
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// A view: the caller's buffers, offsets and reduction must outlive it. Buffers need no alignment; counts may
/// be 0.
struct Operation {
  Collective kind = Collective::kBarrier;
  const void* send = nullptr;
  void* receive = nullptr;
  /// For an allreduce or a reduce, the number of elements. Otherwise a size in bytes: for a broadcast or an
  /// allgather without offsets, the size of the buffer; for a gather, of this rank's contribution; for a
  /// scatter, of this rank's slice.
  std::size_t count = 0;
  /// The slices of `send` and of `receive`, one per rank: rank r's slice is [offsets[r], offsets[r + 1]), in
  /// elements for a reduce-scatter, otherwise in bytes.
  std::span<const std::size_t> send_offsets{};
  std::span<const std::size_t> receive_offsets{};
  /// Set for an allgather whose ranks know only their own slices; this rank's slice is [begin, end) of the
  /// `count` bytes of `receive`.
  bool without_offsets = false;
  std::size_t begin = 0;
  std::size_t end = 0;
  const Reduction* reduction = nullptr;
  /// Whether `send` and `receive` of a reduction are one buffer of all elements. Then this rank's part of the
  /// result replaces the corresponding elements, and the other elements are undefined afterwards. Otherwise
  /// `receive` holds only this rank's result: it is `send`, this rank's slice of `send`, or memory that does
  /// not overlap `send`; `send` is not changed unless the two buffers overlap.
  bool in_place = false;
  bool average = false;  ///< the result is divided by the number of ranks
  int root = 0;
  // The messages of kSendReceive.
  std::span<const Outbound> sends{};
  std::span<const Inbound> receives{};

  /// Every rank's buffer becomes the reduction of all ranks' buffers of `count` elements.
  static Operation Allreduce(void* buffer, std::size_t count, const Reduction& reduction) {
    return {.kind = Collective::kAllreduce,
            .send = buffer,
            .receive = buffer,
            .count = count,
            .reduction = &reduction,
            .in_place = true};
  }
  static Operation Allreduce(const void* send, void* receive, std::size_t count, const Reduction& reduction) {
    return {.kind = Collective::kAllreduce,
            .send = send,
            .receive = receive,
            .count = count,
            .reduction = &reduction};
  }
  /// Like Allreduce, but afterwards only the root's buffer holds the result; the other ranks' buffers are
  /// undefined.
  static Operation Reduce(void* buffer, std::size_t count, const Reduction& reduction, int root) {
    return {.kind = Collective::kReduce,
            .send = buffer,
            .receive = buffer,
            .count = count,
            .reduction = &reduction,
            .in_place = true,
            .root = root};
  }
  /// Like Allreduce, but afterwards only elements [offsets[rank], offsets[rank + 1]) of the buffer hold the
  /// result. There are world_size + 1 offsets, the same on all ranks.
  static Operation ReduceScatter(void* buffer, std::span<const std::size_t> offsets,
                                 const Reduction& reduction) {
    return {.kind = Collective::kReduceScatter,
            .send = buffer,
            .receive = buffer,
            .receive_offsets = offsets,
            .reduction = &reduction,
            .in_place = true};
  }
  /// Copies the root's buffer to all ranks.
  static Operation Broadcast(void* buffer, std::size_t bytes, int root) {
    return {.kind = Collective::kBroadcast, .send = buffer, .receive = buffer, .count = bytes, .root = root};
  }
  /// Each rank contributes its own slice of the buffer and receives the other ranks' slices. The offsets are
  /// the same on all ranks. If `send` is set, this rank's slice is copied from there first.
  static Operation Allgather(void* buffer, std::span<const std::size_t> offsets) {
    return {.kind = Collective::kAllgather, .receive = buffer, .receive_offsets = offsets};
  }
  /// An allgather for ranks that know only their own slice [begin, end) of `total` bytes; the slices must be
  /// contiguous in rank order.
  static Operation Allgather(void* buffer, std::size_t total, std::size_t begin, std::size_t end) {
    return {.kind = Collective::kAllgather,
            .receive = buffer,
            .count = total,
            .without_offsets = true,
            .begin = begin,
            .end = end};
  }
  /// Returns when all ranks have called it.
  static Operation Barrier() { return {}; }
  /// The root receives a slice from every rank, including itself: rank r's slice goes to bytes [offsets[r],
  /// offsets[r + 1]) of the root's `buffer`. Each rank contributes `bytes` bytes of `data`; `buffer` and
  /// `offsets` are used on the root only.
  static Operation Gather(const void* data, std::size_t bytes, void* buffer,
                          std::span<const std::size_t> offsets, int root) {
    return {.kind = Collective::kGather,
            .send = data,
            .receive = buffer,
            .count = bytes,
            .receive_offsets = offsets,
            .root = root};
  }
  /// The reverse of Gather: each rank receives its slice of the root's `buffer` in `data`. The slice has
  /// `bytes` bytes.
  static Operation Scatter(const void* buffer, std::span<const std::size_t> offsets, void* data,
                           std::size_t bytes, int root) {
    return {.kind = Collective::kScatter,
            .send = buffer,
            .receive = data,
            .count = bytes,
            .send_offsets = offsets,
            .root = root};
  }
  /// Sends bytes [sent[r], sent[r + 1]) of `from` to rank r, and receives the bytes from rank r into
  /// [received[r], received[r + 1]) of `to`; this rank's own slice is copied, too. The buffers must not
  /// overlap.
  static Operation AllToAll(const void* from, std::span<const std::size_t> sent, void* to,
                            std::span<const std::size_t> received) {
    return {.kind = Collective::kAllToAll,
            .send = from,
            .receive = to,
            .send_offsets = sent,
            .receive_offsets = received};
  }
  /// Sends and receives several messages concurrently. Returns when all receives have ended and all sends
  /// have been accepted for sending.
  static Operation SendReceive(std::span<const Outbound> sends, std::span<const Inbound> receives) {
    return {.kind = Collective::kSendReceive, .sends = sends, .receives = receives};
  }
};

/// Returns the error in this rank's arguments, worded as the end of a sentence, e.g. "root 9 is not a rank;
/// ranks are 0 to 3"; "" if the arguments are valid.
std::string Complaint(const Operation& operation, int rank, int world_size);

/// Like Complaint, but for communicators: also rejects averages, and reductions that are not in place, except
/// allreduces.
std::string EngineComplaint(const Operation& operation, int rank, int world_size);

/// A fast check that accepts almost all valid allreduces. If it returns false, Complaint or EngineComplaint
/// must decide.
inline bool IsPlainlyValid(const Operation& operation) {
  constexpr std::size_t kPlain = std::size_t{1} << 31;  // limits the count and the size of an element
  return operation.kind == Collective::kAllreduce && !operation.average && operation.send != nullptr &&
         operation.receive != nullptr && (operation.count | operation.reduction->element_bytes()) < kPlain;
}

/// Returns the size of this rank's part in the call, in bytes: the whole buffer if every rank has it; for a
/// gather or a scatter, the root's buffer or another rank's slice; for an all-to-all, the buffer that is
/// sent; for messages, the bytes sent to and received from other ranks; otherwise 0.
std::size_t BytesOf(const Operation& operation, int rank);

/// Copies this rank's own slice from `send` to `receive`: in an all-to-all; on the root of a gather or
/// scatter; in an allgather whose `send` is not null. For kSendReceive, copies the messages from this rank to
/// itself. Does nothing for other kinds.
void CopyOwnSlice(const Operation& operation, int rank);

}  // namespace warren
