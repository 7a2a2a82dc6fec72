// Calls an algorithm the way the engine does, with a group of all ranks and a tag with the call's number, on
// a buffer that detects writes beyond its ends.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <vector>

#include "memory_world.h"
#include "rabit_engine/collective/peer_group.h"
#include "samples.h"

namespace warren::testing {

/// A caller's buffer at any misalignment, between guard bytes that must not change.
class GuardedBuffer {
 public:
  GuardedBuffer(const Bytes& values, std::size_t misalignment)
      : begin_(kGuardBytes + misalignment), size_(values.size()) {
    memory_.resize(begin_ + size_ + kGuardBytes, kGuard);
    std::copy(values.begin(), values.end(), memory_.begin() + begin_);
  }
  std::byte* data() { return memory_.data() + begin_; }
  Bytes Part(std::size_t begin, std::size_t end) { return {data() + begin, data() + end}; }
  Bytes All() { return Part(0, size_); }
  bool GuardsHold() {
    const auto is_guard = [](std::byte value) { return value == kGuard; };
    return std::all_of(memory_.begin(), memory_.begin() + begin_, is_guard) &&
           std::all_of(memory_.begin() + begin_ + size_, memory_.end(), is_guard);
  }

 private:
  static constexpr std::size_t kGuardBytes = 64;
  static constexpr std::byte kGuard{0xa5};
  std::size_t begin_;
  std::size_t size_;
  Bytes memory_;
};

/// One rank of a world, which makes successive collective calls.
class Caller {
 public:
  explicit Caller(Transport& transport) : transport_(transport), members_(transport.world_size()) {
    std::iota(members_.begin(), members_.end(), 0);
  }
  int rank() const { return transport_.rank(); }
  int size() const { return transport_.world_size(); }

  /// Sets the call tag's count, on which peers must agree.
  void set_count(std::size_t count) { count_ = count; }
  void Call(Collective collective, std::size_t element_bytes, const std::function<void(PeerGroup&)>& body) {
    CallTag tag;
    tag.sequence = calls_++;
    tag.collective = collective;
    tag.count = count_;
    tag.element_bytes = static_cast<std::uint32_t>(element_bytes);
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    PeerGroup group(transport_, members_, transport_.rank(), tag, deadline);
    body(group);
  }

 private:
  Transport& transport_;
  std::vector<int> members_;
  std::uint32_t calls_ = 0;
  std::size_t count_ = 0;
};

/// Group sizes to test: all up to 9, and some larger ones, including a power of two.
inline std::vector<int> GroupSizes() {
  return {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17};
}

/// Element counts from 0 to 1000, including those around the group size. For some group sizes, also a count
/// large enough for several chunks.
inline std::vector<std::size_t> CountsFor(int size) {
  const auto n = static_cast<std::size_t>(size);
  std::vector<std::size_t> counts{0, 1, 2, 3, 5, n - 1, n, n + 1, 1000};
  if (size == 2 || size == 5 || size == 12) counts.push_back(65537);
  if (size == 3 || size == 7) counts.push_back(200001);
  return counts;
}

inline std::vector<int> RootsFor(int size) {
  std::vector<int> roots(size);
  std::iota(roots.begin(), roots.end(), 0);
  if (size > 9) roots = {0, 1, size / 2, size - 1};
  return roots;
}

}  // namespace warren::testing
