// What a rank says of the collective it is in, so that ranks which call different collectives find out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warren {

/// Which collectives there are; the value goes over the wire.
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

/// True where only the two ranks of a message know how long it is: its tag has its bytes as the count, and
/// the call as such has none.
constexpr bool CountsAreOfMessages(Collective collective) {
  return collective == Collective::kGather || collective == Collective::kScatter ||
         collective == Collective::kAllToAll || collective == Collective::kSendReceive;
}

/// What all ranks of a call must agree on. Sent as it lies in memory: 32 bytes, no padding.
struct CallTag {
  std::uint32_t sequence = 0;  ///< how many collectives this communicator has begun
  Collective collective{};
  std::uint8_t type = 0xff;       ///< DataType, 0xff for bytes and custom reductions
  std::uint8_t operation = 0xff;  ///< Operation, 0xff where there is none or a custom one
  std::uint8_t algorithm = 0;     ///< the choice of collective/choice.h: ranks must agree on it too
  std::uint64_t count = 0;        ///< elements (bytes for broadcast and allgather)
  std::int32_t root = 0;  ///< broadcast, reduce, gather and scatter; of slices a digest of their lengths
  std::uint32_t element_bytes = 1;
  std::uint64_t before = 0;  ///< digest of the calls before this one: some of them end without any comparison
  friend bool operator==(const CallTag&, const CallTag&) = default;
};
static_assert(sizeof(CallTag) == 32);

/// "allreduce of 12 float, sum (call 7)"
std::string Describe(const CallTag& tag);

/// The digest of a call and all before it.
std::uint64_t DigestWith(const CallTag& tag);

/// True for the same call, whatever was called before.
bool IsSameCall(const CallTag& a, const CallTag& b);

/// Throws Misuse: these ranks make different calls.
[[noreturn]] void ThrowDifferentCalls(int rank, const CallTag& own, int peer, const CallTag& theirs);

}  // namespace warren
