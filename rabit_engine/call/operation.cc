#include "rabit_engine/call/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace warren {
namespace {

constexpr std::size_t kMostBytes = std::numeric_limits<std::ptrdiff_t>::max();

/// Checks the offsets of the ranks' slices.
std::string ComplainOfOffsets(std::span<const std::size_t> offsets, int world_size) {
  const bool is_valid = offsets.size() == static_cast<std::size_t>(world_size) + 1 && offsets.front() == 0 &&
                        std::is_sorted(offsets.begin(), offsets.end());
  if (is_valid) return "";
  return fmt::format("expected the {} offsets of {} slices, ascending from 0", world_size + 1, world_size);
}

std::string ComplainOfBytes(const void* buffer, std::size_t bytes) {
  if (buffer != nullptr || bytes == 0) return "";
  return fmt::format("the buffer of {} bytes is NULL", bytes);
}

std::string ComplainOfSlices(const void* buffer, std::span<const std::size_t> offsets, int world_size) {
  std::string complaint = ComplainOfOffsets(offsets, world_size);
  return complaint.empty() ? ComplainOfBytes(buffer, offsets.back()) : complaint;
}

std::string ComplainOfOwnSlice(std::span<const std::size_t> offsets, int rank, std::size_t bytes) {
  const std::size_t slice = offsets[rank + 1] - offsets[rank];
  if (slice == bytes) return "";
  return fmt::format("this rank's own slice has {} bytes, but its count says {}", bytes, slice);
}

std::string ComplainOfRoot(int root, int world_size) {
  if (root >= 0 && root < world_size) return "";
  return fmt::format("root {} is not a rank; ranks are 0 to {}", root, world_size - 1);
}

/// Checks a reduction of `count` elements. `gets`: the number of result elements that this rank receives.
std::string ComplainOfReduction(const Operation& operation, std::size_t count, std::size_t gets) {
  const std::size_t element = operation.reduction->element_bytes();
  constexpr std::size_t kLargest = std::numeric_limits<std::uint32_t>::max();
  if (element > kLargest) {
    return fmt::format("elements of {} bytes; the largest have {}", element, kLargest);
  }
  if (element != 0 && count > kMostBytes / element) {
    return fmt::format("{} elements of {} bytes are more than memory can hold", count, element);
  }
  if (operation.send == nullptr && count > 0) return fmt::format("the buffer of {} elements is NULL", count);
  if (operation.receive == nullptr && gets > 0) return "the buffer for the result is NULL";
  return "";
}

/// Checks a gather or a scatter. `own`: this rank's slice. `all` and `offsets`: the root's buffer and its
/// slices; checked on the root only.
std::string ComplainOfGather(const Operation& operation, const void* own, const void* all,
                             std::span<const std::size_t> offsets, int rank, int world_size) {
  if (std::string complaint = ComplainOfRoot(operation.root, world_size); !complaint.empty())
    return complaint;
  if (std::string complaint = ComplainOfBytes(own, operation.count); !complaint.empty()) return complaint;
  if (rank != operation.root) return "";
  if (std::string complaint = ComplainOfSlices(all, offsets, world_size); !complaint.empty())
    return complaint;
  return ComplainOfOwnSlice(offsets, rank, operation.count);
}

std::string ComplainOfMessages(const Operation& operation, int rank, int world_size) {
  const auto complain = [&](int peer, const void* data, std::size_t bytes) {
    if (peer >= 0 && peer < world_size) return ComplainOfBytes(data, bytes);
    return fmt::format("{} is not a rank; ranks are 0 to {}", peer, world_size - 1);
  };
  std::vector<std::size_t> to_itself;
  std::vector<std::size_t> from_itself;
  for (const Outbound& out : operation.sends) {
    if (std::string complaint = complain(out.to, out.data, out.bytes); !complaint.empty()) return complaint;
    if (out.to == rank) to_itself.push_back(out.bytes);
  }
  for (const Inbound& in : operation.receives) {
    if (std::string complaint = complain(in.from, in.data, in.bytes); !complaint.empty()) return complaint;
    if (in.from == rank) from_itself.push_back(in.bytes);
  }
  if (to_itself == from_itself) return "";
  return "the messages that this rank sends to itself and receives from itself in one call differ";
}

}  // namespace

std::string Complaint(const Operation& operation, int rank, int world_size) {
  switch (operation.kind) {
    case Collective::kAllreduce:
      return ComplainOfReduction(operation, operation.count, operation.count);
    case Collective::kReduce: {
      std::string complaint = ComplainOfRoot(operation.root, world_size);
      if (!complaint.empty()) return complaint;
      return ComplainOfReduction(operation, operation.count, rank == operation.root ? operation.count : 0);
    }
    case Collective::kReduceScatter: {
      const auto offsets = operation.receive_offsets;
      std::string complaint = ComplainOfOffsets(offsets, world_size);
      if (!complaint.empty()) return complaint;
      return ComplainOfReduction(operation, offsets.back(), offsets[rank + 1] - offsets[rank]);
    }
    case Collective::kBroadcast: {
      std::string complaint = ComplainOfRoot(operation.root, world_size);
      return complaint.empty() ? ComplainOfBytes(operation.receive, operation.count) : complaint;
    }
    case Collective::kAllgather:
      if (!operation.without_offsets) {
        return ComplainOfSlices(operation.receive, operation.receive_offsets, world_size);
      }
      if (operation.begin > operation.end || operation.end > operation.count) {
        return fmt::format("the slice [{}, {}) is not within {} bytes", operation.begin, operation.end,
                           operation.count);
      }
      return ComplainOfBytes(operation.receive, operation.count);
    case Collective::kGather:
      return ComplainOfGather(operation, operation.send, operation.receive, operation.receive_offsets, rank,
                              world_size);
    case Collective::kScatter:
      return ComplainOfGather(operation, operation.receive, operation.send, operation.send_offsets, rank,
                              world_size);
    case Collective::kAllToAll: {
      std::string complaint = ComplainOfSlices(operation.send, operation.send_offsets, world_size);
      if (complaint.empty()) {
        complaint = ComplainOfSlices(operation.receive, operation.receive_offsets, world_size);
      }
      if (!complaint.empty()) return complaint;
      return ComplainOfOwnSlice(operation.receive_offsets, rank,
                                operation.send_offsets[rank + 1] - operation.send_offsets[rank]);
    }
    case Collective::kSendReceive:
      return ComplainOfMessages(operation, rank, world_size);
    case Collective::kBarrier:
      return "";
    case Collective::kExchange:
    case Collective::kSplit:
      break;
  }
  return fmt::format("{} is not a call of a program", Name(operation.kind));
}

std::string EngineComplaint(const Operation& operation, int rank, int world_size) {
  if (operation.average) return "an average, which only the APIs compute";
  if (Reduces(operation.kind) && operation.kind != Collective::kAllreduce && !operation.in_place) {
    return "it is not in place";
  }
  return Complaint(operation, rank, world_size);
}

std::size_t BytesOf(const Operation& operation, int rank) {
  switch (operation.kind) {
    case Collective::kAllreduce:
    case Collective::kReduce:
      return operation.count * operation.reduction->element_bytes();
    case Collective::kReduceScatter:
      return operation.receive_offsets.back() * operation.reduction->element_bytes();
    case Collective::kBroadcast:
      return operation.count;
    case Collective::kAllgather:
      return operation.without_offsets ? operation.count : operation.receive_offsets.back();
    case Collective::kGather:
      return rank == operation.root ? operation.receive_offsets.back() : operation.count;
    case Collective::kScatter:
      return rank == operation.root ? operation.send_offsets.back() : operation.count;
    case Collective::kAllToAll:
      return operation.send_offsets.back();
    case Collective::kSendReceive: {
      std::size_t bytes = 0;
      for (const Outbound& out : operation.sends) bytes += out.to == rank ? 0 : out.bytes;
      for (const Inbound& in : operation.receives) bytes += in.from == rank ? 0 : in.bytes;
      return bytes;
    }
    case Collective::kBarrier:
    case Collective::kExchange:
    case Collective::kSplit:
      break;
  }
  return 0;
}

void CopyOwnSlice(const Operation& operation, int rank) {
  const auto copy = [](void* to, std::size_t to_offset, const void* from, std::size_t from_offset,
                       std::size_t bytes) {
    if (bytes == 0) return;
    std::byte* const target = static_cast<std::byte*>(to) + to_offset;
    const std::byte* const source = static_cast<const std::byte*>(from) + from_offset;
    if (target != source) std::memmove(target, source, bytes);
  };
  const void* const send = operation.send;
  void* const receive = operation.receive;
  switch (operation.kind) {
    case Collective::kAllgather:
      if (send == nullptr) return;
      return copy(receive, operation.receive_offsets[rank], send, 0,
                  operation.receive_offsets[rank + 1] - operation.receive_offsets[rank]);
    case Collective::kGather:
      if (rank != operation.root) return;
      return copy(receive, operation.receive_offsets[rank], send, 0, operation.count);
    case Collective::kScatter:
      if (rank != operation.root) return;
      return copy(receive, 0, send, operation.send_offsets[rank], operation.count);
    case Collective::kAllToAll:
      return copy(receive, operation.receive_offsets[rank], send, operation.send_offsets[rank],
                  operation.send_offsets[rank + 1] - operation.send_offsets[rank]);
    case Collective::kSendReceive: {
      auto in = operation.receives.begin();
      for (const Outbound& out : operation.sends) {
        if (out.to != rank) continue;
        while (in->from != rank) ++in;
        copy(in->data, 0, out.data, 0, out.bytes);
        ++in;
      }
      return;
    }
    default:
      return;
  }
}

}  // namespace warren
