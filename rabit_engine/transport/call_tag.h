// Describes the collective that a rank is in, so that ranks which call different collectives notice it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warren {

/// The collectives. The values go over the wire.
enum class Collective : std::uint8_t {
  kAllreduce = 1,
  kBroadcast = 2,
  kAllgather = 3,
  kReduceScatter = 4,
  kReduce = 5,
  kBarrier = 6,
  kExchange = 7,
  kGather = 8,
  kScatter = 9,
  kAllToAll = 10,
  kSendReceive = 11,
  kSplit = 12,
};
std::string_view Name(Collective collective);

/// True if only the two ranks of each message know its length: the tag of a message has the bytes as its
/// count, and the tag of the call has no count.
constexpr bool CountsAreOfMessages(Collective collective) {
  return collective == Collective::kGather || collective == Collective::kScatter ||
         collective == Collective::kAllToAll || collective == Collective::kSendReceive;
}

/// What all ranks of a call must agree on. Sent in its memory layout: 32 bytes, no padding.
struct CallTag {
  std::uint32_t sequence = 0;  ///< number of collectives this communicator has begun
  Collective collective{};
  std::uint8_t type = 0xff;       ///< DataType; 0xff for bytes and custom reductions
  std::uint8_t operation = 0xff;  ///< Operation; 0xff if none or custom
  std::uint8_t algorithm = 0;     ///< choice made by collective/choice.h; ranks must agree on it too
  std::uint64_t count = 0;        ///< elements (bytes for broadcast and allgather)
  /// Root of a broadcast, reduce, gather or scatter; for collectives in slices, a digest of their lengths.
  std::int32_t root = 0;
  std::uint32_t element_bytes = 1;
  /// Digest of all earlier calls, since some calls end without any comparison.
  std::uint64_t before = 0;
  friend bool operator==(const CallTag&, const CallTag&) = default;
};
static_assert(sizeof(CallTag) == 32);

/// "allreduce of 12 float, sum (call 7)"
std::string Describe(const CallTag& tag);

/// Returns the digest of this call and all before it.
std::uint64_t DigestWith(const CallTag& tag);

/// True if both tags describe the same call, whatever was called before.
bool IsSameCall(const CallTag& a, const CallTag& b);

/// Throws Misuse: the two ranks make different calls.
[[noreturn]] void ThrowDifferentCalls(int rank, const CallTag& own, int peer, const CallTag& theirs);

}  // namespace warren
