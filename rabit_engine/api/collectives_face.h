// Shared by the C APIs of the collectives (warren/c_api.h): communicators and handles as C sees them, and
// each call split into checking its arguments now and the work, which can run later and on another thread.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "rabit_engine/api/c_result.h"
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

namespace warren::api::face {

using Offsets = std::vector<std::size_t>;

/// Runs the function with the communicator's session, which lives until the call has ended.
template <typename Function>
int On(WarrenComm comm, const char* name, Function&& function) {
  return Attempt([&] {
    const Call call{name};
    if (comm == nullptr) throw Misuse(fmt::format("rank unknown: {}: the communicator is null", name));
    const std::shared_ptr<Session> session = comm->session;
    function(*session, call);
  });
}

/// Runs the work. If this rank is out of memory, informs the other ranks, which wait for it.
template <typename Work>
void Perform(Session& session, const Call& call, Work&& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    session.GiveUp("out of memory");
    throw warren::EngineError(fmt::format("{}: out of memory", session.Where(call)));
  }
}

inline std::size_t ElementBytes(const Session& session, const Call& call, int type) {
  const bool known =
      (type >= WARREN_INT8 && type <= WARREN_FLOAT64) || type == WARREN_FLOAT16 || type == WARREN_BFLOAT16;
  if (!known)
    session.Refuse(call, fmt::format("{} is not an element type; see WarrenType in warren/c_api.h", type));
  // The codes up to 7 are rabit's: 4 and 5 are its long types, which have 64 bits on all supported platforms.
  return SizeOf(static_cast<DataType>(type));
}

inline std::size_t Product(const Session& session, const Call& call, std::size_t count, std::size_t unit) {
  if (unit != 0 && count > std::numeric_limits<std::ptrdiff_t>::max() / unit) {
    session.Refuse(call, fmt::format("{} times {} bytes is more than memory can hold", count, unit));
  }
  return count * unit;
}

/// Offsets of one equal slice per rank.
inline Offsets Equal(const Session& session, const Call& call, std::size_t count, std::size_t unit) {
  const std::size_t slice = Product(session, call, count, unit);
  Product(session, call, slice, static_cast<std::size_t>(session.world_size()));
  return EqualOffsets(session.world_size(), slice);
}

inline Offsets Ragged(const Session& session, const Call& call, const size_t* counts, std::size_t unit) {
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

inline void RequireBuffer(const Session& session, const Call& call, const void* buffer, std::size_t bytes) {
  if (buffer == nullptr && bytes > 0)
    session.Refuse(call, fmt::format("a buffer of {} bytes is NULL", bytes));
}

// --- reductions --------------------------------------------------------------------------------------------

inline Wanted Typed(const Session& session, const Call& call, int type, int op) {
  ElementBytes(session, call, type);
  if (op < WARREN_MAX || op > WARREN_AVG) {
    session.Refuse(call, fmt::format("{} is not an operation; see WarrenOp in warren/c_api.h", op));
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

inline void CallCustom(const void* right, void* left, std::size_t count, void* context) {
  const auto& op = *static_cast<const WarrenCustomOp*>(context);
  if (op.function(right, left, count, op.context) == 0) return;
  throw Misuse("the caller's operation reported a failure");
}

inline Wanted Custom(const Session& session, const Call& call, const WarrenCustomOp* op) {
  if (op == nullptr) session.Refuse(call, "the operation is NULL");
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

inline void CheckReduction(const Session& session, const Call& call, const Wanted& wanted,
                           const Reducing& what) {
  RequireBuffer(session, call, what.send,
                Product(session, call, what.count, wanted.reduction.element_bytes()));
  if (what.recv == nullptr && what.length > 0) session.Refuse(call, "the buffer for the result is NULL");
}

inline auto Allreduce(Session& session, const Call& call, const void* send, void* recv, std::size_t count,
                      const Wanted& wanted) {
  const Reducing what{send, count, recv, 0, count};
  CheckReduction(session, call, wanted, what);
  return [=, &session] {
    Reduce(session, wanted, what, [&](void* buffer, const Reduction& reduction) {
      session.Allreduce(call, buffer, count, reduction, {});
    });
  };
}

/// Refuses the call unless all ranks have the same slices. The engine cannot compare them, because it only
/// sees pieces of the caller's slices.
inline void CompareSlices(Session& session, const Call& call, const Offsets& offsets) {
  struct Told {
    std::uint64_t elements;
    std::uint64_t hash;  ///< FNV-1a, by words
  };
  std::vector<Told> told(static_cast<std::size_t>(session.world_size()));
  Told own{offsets.back(), 0xcbf29ce484222325U};
  for (const std::size_t offset : offsets) own.hash = (own.hash ^ offset) * 0x100000001b3U;
  told[static_cast<std::size_t>(session.rank())] = own;
  Offsets places(told.size() + 1);
  for (std::size_t r = 0; r < told.size(); ++r) places[r + 1] = places[r] + sizeof(Told);
  session.Allgather(call, told.data(), places);
  for (std::size_t r = 1; r < told.size(); ++r) {
    if (told[r].elements == told[0].elements && told[r].hash == told[0].hash) continue;
    session.Refuse(
        call,
        fmt::format(
            "rank {} has {} elements and rank 0 has {}, or their counts for some rank differ; all ranks must give the same counts",
            r, told[r].elements, told[0].elements));
  }
}

/// Offsets are in elements.
inline auto ReduceScatter(Session& session, const Call& call, const void* send, void* recv, Offsets offsets,
                          const Wanted& wanted) {
  const std::size_t first = offsets[session.rank()];
  const Reducing what{send, offsets.back(), recv, first, offsets[session.rank() + 1] - first};
  CheckReduction(session, call, wanted, what);
  return [=, &session, offsets = std::move(offsets)] {
    if (session.world_size() > 1 && what.count * wanted.reduction.element_bytes() > kPieceBytes) {
      CompareSlices(session, call, offsets);
      return ReduceScatterInPieces(
          session, wanted, send, recv, offsets,
          [&](void* buffer, std::span<const std::size_t> piece, const Reduction& reduction) {
            session.ReduceScatter(call, buffer, piece, reduction);
          });
    }
    Reduce(session, wanted, what, [&](void* buffer, const Reduction& reduction) {
      session.ReduceScatter(call, buffer, offsets, reduction);
    });
  };
}

// --- slices ------------------------------------------------------------------------------------------------

inline auto Allgather(Session& session, const Call& call, const void* send, void* recv, Offsets offsets) {
  const std::size_t first = offsets[session.rank()];
  const std::size_t bytes = offsets[session.rank() + 1] - first;
  RequireBuffer(session, call, send, bytes);
  RequireBuffer(session, call, recv, offsets.back());
  return [=, &session, offsets = std::move(offsets)] {
    if (bytes > 0) Copy(static_cast<std::byte*>(recv) + first, send, bytes);
    session.Allgather(call, recv, offsets);
  };
}

inline auto AllToAll(Session& session, const Call& call, const void* send, Offsets sent, void* recv,
                     Offsets received) {
  session.CheckAllToAll(call, send, sent, recv, received);
  return [=, &session, sent = std::move(sent), received = std::move(received)] {
    session.AllToAll(call, send, sent, recv, received);
  };
}

}  // namespace warren::api::face
