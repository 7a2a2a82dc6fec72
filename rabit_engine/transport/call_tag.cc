#include "rabit_engine/transport/call_tag.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "rabit_engine/base/error.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren {
namespace {

std::string DescribeElements(const CallTag& tag) {
  const bool known_type = tag.type < kNumDataTypes;
  const bool known_operation = tag.operation < kNumOperations;
  const std::string elements = known_type
                                   ? fmt::format("{} {}", tag.count, Name(static_cast<DataType>(tag.type)))
                                   : fmt::format("{} elements of {} bytes", tag.count, tag.element_bytes);
  return fmt::format(
      "{}, {}", elements,
      known_operation ? Name(static_cast<Operation>(tag.operation)) : std::string_view("custom operation"));
}

}  // namespace

std::string_view Name(Collective collective) {
  switch (collective) {
    case Collective::kAllreduce:
      return "allreduce";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kAllgather:
      return "allgather";
    case Collective::kReduceScatter:
      return "reduce-scatter";
    case Collective::kReduce:
      return "reduce";
    case Collective::kBarrier:
      return "barrier";
    case Collective::kExchange:
      return "exchange";
    case Collective::kGather:
      return "gather";
    case Collective::kScatter:
      return "scatter";
    case Collective::kAllToAll:
      return "all-to-all";
    case Collective::kSendReceive:
      return "send or receive";
    case Collective::kSplit:
      return "split";
  }
  return "unknown collective";
}

std::string Describe(const CallTag& tag) {
  const std::string_view name = Name(tag.collective);
  switch (tag.collective) {
    case Collective::kAllreduce:
    case Collective::kReduceScatter:
      return fmt::format("{} of {} (call {})", name, DescribeElements(tag), tag.sequence);
    case Collective::kReduce:
      return fmt::format("{} of {} to root {} (call {})", name, DescribeElements(tag), tag.root,
                         tag.sequence);
    case Collective::kBroadcast:
      return fmt::format("{} of {} bytes from root {} (call {})", name, tag.count, tag.root, tag.sequence);
    case Collective::kAllgather:
    case Collective::kExchange:
      return fmt::format("{} of {} bytes (call {})", name, tag.count, tag.sequence);
    case Collective::kGather:
      return fmt::format("{} of {} bytes to root {} (call {})", name, tag.count, tag.root, tag.sequence);
    case Collective::kScatter:
      return fmt::format("{} of {} bytes from root {} (call {})", name, tag.count, tag.root, tag.sequence);
    case Collective::kAllToAll:
      return fmt::format("{} of {} bytes between the two (call {})", name, tag.count, tag.sequence);
    case Collective::kSendReceive:
      return fmt::format("{} of {} bytes (after call {})", name, tag.count, tag.sequence);
    case Collective::kBarrier:
    case Collective::kSplit:
      break;
  }
  return fmt::format("{} (call {})", name, tag.sequence);
}

std::uint64_t DigestWith(const CallTag& tag) {
  // Each word has its own odd constant, so that swapped words change the digest; good enough against
  // accidents.
  constexpr std::array<std::uint64_t, 4> kOdd{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                                              0xd6e8feb86659fd93};
  const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(tag);
  const std::uint64_t mixed = words[0] * kOdd[0] ^ std::rotl(words[1] * kOdd[1], 21) ^
                              std::rotl(words[2] * kOdd[2], 42) ^ std::rotl(words[3], 7) * kOdd[3];
  return mixed ^ mixed >> 29;
}

bool IsSameCall(const CallTag& a, const CallTag& b) {
  CallTag with_same_past = b;
  with_same_past.before = a.before;
  return a == with_same_past;
}

void ThrowDifferentCalls(int rank, const CallTag& own, int peer, const CallTag& theirs) {
  std::string mine_text = Describe(own);
  std::string their_text = Describe(theirs);
  if (mine_text == their_text) {
    if (IsSameCall(own, theirs)) {
      throw Misuse(fmt::format(
          "rank {} and rank {} both call {}, but one of the calls before it was not the same on both. All ranks must make the same calls in the same order.",
          rank, peer, mine_text));
    }
    const bool in_slices =
        own.collective == Collective::kAllgather || own.collective == Collective::kReduceScatter;
    const auto detail = [in_slices](const CallTag& tag) {
      if (in_slices) return fmt::format(" [algorithm {}, lengths of slices {:08x}]", tag.algorithm, tag.root);
      return fmt::format(" [algorithm {}, root {}, elements of {} bytes]", tag.algorithm, tag.root,
                         tag.element_bytes);
    };
    mine_text += detail(own);
    their_text += detail(theirs);
  }
  throw Misuse(fmt::format(
      "rank {} calls {} where rank {} calls {}. All ranks must make the same calls in the same order.", rank,
      mine_text, peer, their_text));
}

}  // namespace warren
