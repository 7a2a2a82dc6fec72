// A caller's buffer as a vector of elements: locates ranges of it and creates messages for them.
#pragma once

#include <cstddef>

#include "rabit_engine/collective/peer_group.h"
#include "rabit_engine/collective/slices.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::collective {

/// Does not own the buffer.
class VectorView {
 public:
  VectorView(void* buffer, std::size_t element_bytes)
      : bytes_(static_cast<std::byte*>(buffer)), element_bytes_(element_bytes) {}

  std::byte* At(std::size_t element) const { return bytes_ + element * element_bytes_; }
  std::size_t Bytes(Range range) const { return range.size() * element_bytes_; }

  Send SendOf(int peer, Range range) const { return {peer, At(range.begin), Bytes(range)}; }
  Receive ReceiveInto(int peer, Range range) const { return {peer, At(range.begin), Bytes(range), {}}; }

  /// Returns a Receive that combines the peer's data with the range, piece by piece while the pieces are in
  /// the cache. The peer's values are the left operand if `peer_is_left`. The reduction must outlive the
  /// message.
  Receive CombineFrom(int peer, Range range, const Reduction& reduction, bool peer_is_left) const {
    const auto combine = [&reduction, target = At(range.begin), peer_is_left](
                             const std::byte* piece, std::size_t offset, std::size_t bytes) {
      std::byte* own = target + offset;
      const void* left = peer_is_left ? piece : own;
      const void* right = peer_is_left ? own : piece;
      reduction.Combine(own, left, right, bytes / reduction.element_bytes());
    };
    return {peer, nullptr, Bytes(range), combine};
  }

 private:
  std::byte* bytes_;
  std::size_t element_bytes_;
};

}  // namespace warren::collective
