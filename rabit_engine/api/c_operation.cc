#include "rabit_engine/api/c_operation.h"

#include <fmt/format.h>

#include <limits>
#include <new>
#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/call/slices.h"

namespace warren::api {
namespace {

std::size_t Product(const Session& session, const Call& call, std::size_t count, std::size_t unit) {
  if (unit != 0 && count > std::numeric_limits<std::ptrdiff_t>::max() / unit) {
    session.Refuse(call, fmt::format("{} times {} bytes is more than memory can hold", count, unit));
  }
  return count * unit;
}

/// Returns the offsets of equal slices, one slice per rank. Refuses slices that are too large for memory.
Offsets Equal(const Session& session, const Call& call, std::size_t count, std::size_t unit) {
  const std::size_t slice = Product(session, call, count, unit);
  Product(session, call, slice, static_cast<std::size_t>(session.world_size()));
  return EqualOffsets(session.world_size(), slice);
}

Offsets Ragged(const Session& session, const Call& call, const size_t* counts, std::size_t unit) {
  if (counts == nullptr) session.Refuse(call, "the counts are NULL; expected one for each rank");
  Offsets offsets{0};
  for (int rank = 0; rank < session.world_size(); ++rank) {
    const std::size_t bytes = Product(session, call, counts[rank], unit);
    if (bytes > std::numeric_limits<std::ptrdiff_t>::max() - offsets.back()) {
      session.Refuse(call, "the slices are larger than memory can hold");
    }
    offsets.push_back(offsets.back() + bytes);
  }
  return offsets;
}

Offsets OffsetsOf(const Session& session, const Call& call, const Counts& counts, std::size_t unit) {
  if (const auto* const each = std::get_if<const std::size_t*>(&counts)) {
    return Ragged(session, call, *each, unit);
  }
  return Equal(session, call, std::get<std::size_t>(counts), unit);
}

/// Returns the offsets of the root's slices. If there is one count per rank, only the root has the counts; on
/// the other ranks, returns no offsets. If the slices are equal, returns the offsets on every rank, so that
/// every rank refuses a count that is too large.
Offsets OffsetsOfRoot(const Session& session, const Call& call, int root, const Counts& counts,
                      std::size_t unit) {
  const bool are_equal = std::holds_alternative<std::size_t>(counts);
  return are_equal || session.rank() == root ? OffsetsOf(session, call, counts, unit) : Offsets();
}

void SetTypedReduction(const Session& session, const Call& call, int type, int op, OwnedOperation& owned) {
  CElementBytes(session, call, type);
  if (op < WARREN_MAX || op > WARREN_AVG) {
    session.Refuse(call, fmt::format("{} is not an operation; see WarrenOp in warren/c_api.h", op));
  }
  const auto data_type = static_cast<DataType>(type);
  const bool average = op == WARREN_AVG;
  const auto reduce_op = average ? ReduceOp::kSum : static_cast<ReduceOp>(op);
  const bool is_float = !IsDefined(data_type, ReduceOp::kBitOr);
  if ((average && !is_float) || !IsDefined(data_type, reduce_op)) {
    session.Refuse(
        call, fmt::format("there is no {} of {}", average ? "average" : Name(reduce_op), Name(data_type)));
  }
  owned.reduction = Reduction::Typed(data_type, reduce_op);
  owned.operation.average = average;
}

void CallCustom(const void* right, void* left, std::size_t count, void* context) {
  const auto& op = *static_cast<const WarrenCustomOp*>(context);
  if (op.function(right, left, count, op.context) == 0) return;
  throw Misuse("the caller's operation reported a failure");
}

/// Stores in `owned` a reduction by the caller's operation.
void SetCustomReduction(const Session& session, const Call& call, std::shared_ptr<WarrenCustomOp> op,
                        OwnedOperation& owned) {
  if (op == nullptr) session.Refuse(call, "the operation is NULL, or there is no memory for it");
  if (op->function == nullptr || op->element_bytes == 0) {
    session.Refuse(call, "the operation has no function, or its elements have no bytes");
  }
  owned.reduction = Reduction::Custom(CallCustom, op.get(), op->element_bytes);
  owned.custom = std::move(op);
}

}  // namespace

std::size_t CElementBytes(const Session& session, const Call& call, int type) {
  const bool known =
      (type >= WARREN_INT8 && type <= WARREN_FLOAT64) || type == WARREN_FLOAT16 || type == WARREN_BFLOAT16;
  if (!known)
    session.Refuse(call, fmt::format("{} is not an element type; see WarrenType in warren/c_api.h", type));
  // The codes up to 7 are rabit's: 4 and 5 are rabit's long types, which have 64 bits on all supported
  // platforms.
  return SizeOf(static_cast<DataType>(type));
}

std::shared_ptr<WarrenCustomOp> TakeCustomOp(const Arguments& arguments) noexcept {
  const auto* const custom = std::get_if<const WarrenCustomOp*>(&arguments.op);
  if (custom == nullptr || *custom == nullptr) return nullptr;
  const WarrenCustomOp& op = **custom;
  const auto release = [](WarrenCustomOp* ended) {
    if (ended->release != nullptr) ended->release(ended->context);
    delete ended;
  };
  auto* const copy = new (std::nothrow) WarrenCustomOp(op);
  if (copy == nullptr) {
    if (op.release != nullptr) op.release(op.context);
    return nullptr;
  }
  try {
    return {copy, release};
  } catch (const std::bad_alloc&) {  // the constructor has called `release`
    return nullptr;
  }
}

OwnedOperation Prepare(const Session& session, const Call& call, const Arguments& arguments,
                       std::shared_ptr<WarrenCustomOp> custom) {
  OwnedOperation owned;
  Operation& operation = owned.operation;
  operation.kind = arguments.kind;
  operation.send = arguments.send;
  operation.receive = arguments.recv;
  operation.root = arguments.root;
  std::size_t unit = 1;
  if (Reduces(arguments.kind)) {
    const int* const op = std::get_if<int>(&arguments.op);
    op != nullptr ? SetTypedReduction(session, call, arguments.type, *op, owned)
                  : SetCustomReduction(session, call, std::move(custom), owned);
  } else if (arguments.kind != Collective::kBarrier) {
    unit = CElementBytes(session, call, arguments.type);
  }
  const bool is_root = session.rank() == arguments.root;
  operation.count = Product(session, call, arguments.count, unit);
  switch (arguments.kind) {
    case Collective::kReduce:
      if (!is_root) operation.receive = nullptr;
      break;
    case Collective::kReduceScatter:
    case Collective::kAllgather:
      owned.receive_offsets = OffsetsOf(session, call, arguments.recv_counts, unit);
      break;
    case Collective::kGather:
      owned.receive_offsets = OffsetsOfRoot(session, call, arguments.root, arguments.recv_counts, unit);
      break;
    case Collective::kScatter:
      owned.send_offsets = OffsetsOfRoot(session, call, arguments.root, arguments.send_counts, unit);
      break;
    case Collective::kAllToAll:
      owned.send_offsets = OffsetsOf(session, call, arguments.send_counts, unit);
      owned.receive_offsets = OffsetsOf(session, call, arguments.recv_counts, unit);
      break;
    case Collective::kSendReceive:
      if (arguments.to) owned.out = {*arguments.to, arguments.send, operation.count};
      if (arguments.from) {
        owned.in = {*arguments.from, arguments.recv, Product(session, call, arguments.recv_count, unit)};
      }
      break;
    default:
      break;
  }
  if (arguments.kind == Collective::kAllgather && operation.send == nullptr) {
    const std::size_t bytes =
        owned.receive_offsets[session.rank() + 1] - owned.receive_offsets[session.rank()];
    if (bytes > 0) session.Refuse(call, fmt::format("the buffer of {} bytes is NULL", bytes));
  }
  return owned;
}

}  // namespace warren::api
