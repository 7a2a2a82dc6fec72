// A description of the collective that a rank has called, with which ranks detect that they call different
// collectives.
#pragma once

#include <cstdint>
#include <string>

#include "rabit_engine/call/collective.h"
#include "rabit_engine/call/operation.h"

namespace warren {

/// The properties of a call that must be the same on all its ranks. Sent in its memory layout: 32 bytes, no
/// padding.
struct CallTag {
  std::uint32_t sequence = 0;  ///< number of collectives this communicator has begun, including this one
  Collective collective{};
  std::uint8_t type = 0xff;       ///< DataType; 0xff for bytes and custom reductions
  std::uint8_t operation = 0xff;  ///< ReduceOp; 0xff if none or custom
  std::uint8_t algorithm = 0;     ///< id of the chosen algorithm (collective/registry.h)
  std::uint64_t count = 0;        ///< elements of a reduction; otherwise bytes
  /// Root of a broadcast, reduce, gather or scatter; for an allgather or reduce-scatter, a digest of the
  /// slice lengths.
  std::int32_t root = 0;
  std::uint32_t element_bytes = 1;
  /// Digest of all earlier calls. Some calls end before any two ranks have compared tags; this reveals a
  /// mismatch in a later call.
  std::uint64_t before = 0;
  friend bool operator==(const CallTag&, const CallTag&) = default;
};
static_assert(sizeof(CallTag) == 32);

/// The operation's tag without the fields that the communicator fills in (`sequence`, `algorithm`, `before`),
/// and without a count if CountsAreOfMessages. This part must be the same on all ranks.
CallTag TagOf(const Operation& operation);

/// Describes the call, e.g. "allreduce of 12 float, sum (call 7)".
std::string Describe(const CallTag& tag);

/// Returns the digest of this call and all earlier calls.
std::uint64_t DigestWith(const CallTag& tag);

/// Whether both tags describe the same call, regardless of the calls before it.
bool IsSameCall(const CallTag& a, const CallTag& b);

/// Throws Misuse: the two ranks make different calls.
[[noreturn]] void ThrowDifferentCalls(int rank, const CallTag& own, int peer, const CallTag& theirs);

}  // namespace warren
