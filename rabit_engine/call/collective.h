// The kinds of collectives, used by every part of the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
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

/// The collectives' names, indexed by the values of Collective.
inline constexpr std::string_view kCollectiveNames[] = {
    "unknown collective", "allreduce", "broadcast", "allgather",  "reduce-scatter",  "reduce", "barrier",
    "exchange",           "gather",    "scatter",   "all-to-all", "send or receive", "split"};

static_assert(std::size(kCollectiveNames) == static_cast<std::size_t>(Collective::kSplit) + 1);

/// Returns the name, e.g. "allreduce".
constexpr std::string_view Name(Collective collective) {
  const auto number = static_cast<std::size_t>(collective);
  return kCollectiveNames[number < std::size(kCollectiveNames) ? number : 0];
}

/// Whether the collective combines the ranks' elements.
constexpr bool Reduces(Collective collective) {
  return collective == Collective::kAllreduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}

/// True if only the sender and the receiver of a message know its length. The tag of each message then has
/// the message's length as its count, and the tag of the call has no count.
constexpr bool CountsAreOfMessages(Collective collective) {
  return collective == Collective::kGather || collective == Collective::kScatter ||
         collective == Collective::kAllToAll || collective == Collective::kSendReceive;
}

}  // namespace warren
