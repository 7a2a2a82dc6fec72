#include "rabit_engine/call/call_tag.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstddef>
#include <span>

#include "rabit_engine/base/error.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren {
namespace {

std::string DescribeElements(const CallTag& tag) {
  const bool known_type = tag.type < kNumDataTypes;
  const bool known_operation = tag.operation < kNumReduceOps;
  const std::string elements = known_type
                                   ? fmt::format("{} {}", tag.count, Name(static_cast<DataType>(tag.type)))
                                   : fmt::format("{} elements of {} bytes", tag.count, tag.element_bytes);
  return fmt::format(
      "{}, {}", elements,
      known_operation ? Name(static_cast<ReduceOp>(tag.operation)) : std::string_view("custom operation"));
}

/// Returns a digest of the slices' lengths, which tells apart divisions of the same total; 0 if all slices
/// have the same length.
std::int32_t DigestOf(std::span<const std::size_t> offsets) {
  std::uint64_t digest = 0;
  bool all_equal = true;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    const std::size_t length = offsets[i] - offsets[i - 1];
    all_equal = all_equal && length == offsets[1];
    digest = (digest ^ length) * 0x9e3779b97f4a7c15;
    digest ^= digest >> 32;
  }
  return all_equal ? 0 : static_cast<std::int32_t>(digest & 0x7fffffff);
}

}  // namespace

CallTag TagOf(const Operation& operation) {
  CallTag tag;
  tag.collective = operation.kind;
  tag.count = operation.count;
  tag.root = operation.root;
  if (operation.kind == Collective::kReduceScatter || operation.kind == Collective::kAllgather) {
    tag.count = operation.receive_offsets.back();
    tag.root = DigestOf(operation.receive_offsets);
  }
  if (CountsAreOfMessages(operation.kind)) tag.count = 0;
  if (!Reduces(operation.kind)) return tag;
  const Reduction& reduction = *operation.reduction;
  tag.element_bytes = static_cast<std::uint32_t>(reduction.element_bytes());
  if (!reduction.is_custom()) {
    tag.type = static_cast<std::uint8_t>(reduction.type());
    tag.operation = static_cast<std::uint8_t>(reduction.operation());
  }
  return tag;
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
    case Collective::kScatter:
      return fmt::format("{} of {} bytes from root {} (call {})", name, tag.count, tag.root, tag.sequence);
    case Collective::kAllgather:
    case Collective::kExchange:
      return fmt::format("{} of {} bytes (call {})", name, tag.count, tag.sequence);
    case Collective::kGather:
      return fmt::format("{} of {} bytes to root {} (call {})", name, tag.count, tag.root, tag.sequence);
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
  // Each word has its own odd constant, so that swapped words change the digest; this suffices to detect
  // mistakes.
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
  const bool may_have_left = theirs.collective == Collective::kBarrier;
  throw Misuse(fmt::format(
      "rank {} calls {} where rank {} calls {}{}. All ranks must make the same calls in the same order.",
      rank, mine_text, peer, their_text,
      may_have_left ? ", as it does when it leaves the job (its communicator() block has ended)" : ""));
}

}  // namespace warren
