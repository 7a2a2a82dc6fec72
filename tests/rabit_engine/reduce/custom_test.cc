// The caller's functions: which operand comes first, where results may go, and what the function may rely on.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/reduce/reduction.h"
#include "tests/rabit_engine/reduce/reference.h"

namespace warren {
namespace {

using reference::Pointers;

/// Identifies the inputs that went into an element, in order, so that a swapped, lost or duplicated operand
/// shows. `shape` also hashes the tree, so that a different bracketing shows. 24 bytes.
struct Trace {
  std::uint32_t first;
  std::uint32_t last;
  std::uint64_t order;
  std::uint64_t shape;
  friend bool operator==(const Trace&, const Trace&) = default;
};
static_assert(sizeof(Trace) == 24);

Trace Leaf(std::uint32_t rank, std::size_t element) {
  return {rank, rank, rank + 1, 31 * element + rank};
}

Trace Join(const Trace& left, const Trace& right) {
  std::uint64_t power = 1;
  for (std::uint32_t i = right.first; i <= right.last; ++i) power *= 1'000'003;
  return {left.first, right.last, left.order * power + right.order,
          (left.shape * 0x9e37'79b9'7f4a'7c15u + 7) ^ (right.shape * 0xc2b2'ae3d'27d4'eb4fu >> 3)};
}

struct Calls {
  int number = 0;
  bool aligned = true;
};

void JoinFunction(const void* src, void* dst, std::size_t count, void* context) {
  auto* const calls = static_cast<Calls*>(context);
  ++calls->number;
  calls->aligned &= reinterpret_cast<std::uintptr_t>(src) % alignof(Trace) == 0 &&
                    reinterpret_cast<std::uintptr_t>(dst) % alignof(Trace) == 0;
  for (std::size_t i = 0; i < count; ++i) {
    Trace& left = static_cast<Trace*>(dst)[i];
    left = Join(left, static_cast<const Trace*>(src)[i]);
  }
}

std::vector<std::vector<Trace>> Leaves(std::size_t world, std::size_t count) {
  std::vector<std::vector<Trace>> inputs(world);
  for (std::size_t rank = 0; rank < world; ++rank) {
    for (std::size_t i = 0; i < count; ++i) inputs[rank].push_back(Leaf(static_cast<std::uint32_t>(rank), i));
  }
  return inputs;
}

std::vector<Trace> Wanted(std::vector<std::vector<Trace>> round) {
  const std::size_t world = round.size();
  for (std::size_t width = 1; width < world; width *= 2) {
    for (std::size_t left = 0; left + width < world; left += 2 * width) {
      for (std::size_t i = 0; i < round[0].size(); ++i)
        round[left][i] = Join(round[left][i], round[left + width][i]);
    }
  }
  return round[0];
}

// Zero, one and a few elements; as many as fit into 2 KiB, and one more; as many as fit into a block of 64
// KiB, and one more; several blocks with a remainder.
constexpr std::size_t kCustomCounts[] = {0, 1, 3, 85, 86, 2730, 2731, 9001};

TEST(Custom, TheLowerRanksAreTheLeftOperandWhereverTheResultGoes) {
  for (const std::size_t count : kCustomCounts) {
    const auto inputs = Leaves(2, count);
    const auto wanted = Wanted(inputs);
    Calls calls;
    const Reduction reduction = Reduction::Custom(JoinFunction, &calls, sizeof(Trace));

    std::vector<Trace> out(count);
    reduction.Combine(out.data(), inputs[0].data(), inputs[1].data(), count);
    EXPECT_EQ(out, wanted);
    auto left = inputs[0];
    reduction.Combine(left.data(), left.data(), inputs[1].data(), count);
    EXPECT_EQ(left, wanted) << "out is left";
    auto right = inputs[1];
    reduction.Combine(right.data(), inputs[0].data(), right.data(), count);
    EXPECT_EQ(right, wanted) << "out is right";
    EXPECT_TRUE(calls.aligned);
  }
}

TEST(Custom, AFunctionIsCalledOnceWhenTheResultIsTheLeftOperandAndNeverForNoElements) {
  auto inputs = Leaves(2, 100'000);
  Calls calls;
  const Reduction reduction = Reduction::Custom(JoinFunction, &calls, sizeof(Trace));
  reduction.Combine(inputs[0].data(), inputs[0].data(), inputs[1].data(), 0);
  EXPECT_EQ(calls.number, 0);
  reduction.Combine(inputs[0].data(), inputs[0].data(), inputs[1].data(), 100'000);
  EXPECT_EQ(calls.number, 1);
}

TEST(Custom, CombineAllFollowsTheEnginesOrderWhereverTheResultGoes) {
  for (const std::size_t world : reference::kWorlds) {
    for (const std::size_t count : {1, 86, 2731}) {
      const auto inputs = Leaves(world, count);
      const auto wanted = Wanted(inputs);
      Calls calls;
      const Reduction reduction = Reduction::Custom(JoinFunction, &calls, sizeof(Trace));
      std::vector<Trace> out(count);
      reduction.CombineAll(out.data(), Pointers(inputs), count);
      EXPECT_EQ(out, wanted) << world << " inputs, " << count << " elements";
      for (std::size_t target = 0; target < world; ++target) {
        auto copies = inputs;
        reduction.CombineAll(copies[target].data(), Pointers(copies), count);
        for (std::size_t rank = 0; rank < world; ++rank) {
          ASSERT_EQ(copies[rank], rank == target ? wanted : inputs[rank])
              << "out is input " << target << " of " << world << ", " << count << " elements, looking at "
              << rank;
        }
      }
      EXPECT_TRUE(calls.aligned);
    }
  }
}

// Affine maps x -> a x + b under composition: associative but not commutative, larger than any block.
constexpr std::size_t kLargeElements = 3;
struct Large {
  std::array<std::uint64_t, 10'000> slope;
  std::array<std::uint64_t, 10'000> offset;
};
static_assert(sizeof(Large) > 128 << 10);

void Compose(const void* src, void* dst, std::size_t count, void* /*context*/) {
  for (std::size_t i = 0; i < count; ++i) {
    const Large& right = static_cast<const Large*>(src)[i];
    Large& left = static_cast<Large*>(dst)[i];
    for (std::size_t j = 0; j < left.slope.size(); ++j) {
      left.offset[j] = left.slope[j] * right.offset[j] + left.offset[j];
      left.slope[j] *= right.slope[j];
    }
  }
}

TEST(Custom, ElementsMayBeLargerThanABlock) {
  for (const std::size_t world : {2, 3, 5, 8}) {
    std::vector<std::vector<Large>> inputs(world, std::vector<Large>(kLargeElements));
    std::uint64_t next = 1;
    for (auto& input : inputs) {
      for (auto& element : input) {
        for (auto& value : element.slope)
          value = next = next * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
        for (auto& value : element.offset) value = next = next * 6'364'136'223'846'793'005u + 1;
      }
    }
    auto wanted = inputs[0];
    for (std::size_t rank = 1; rank < world; ++rank)
      Compose(inputs[rank].data(), wanted.data(), kLargeElements, nullptr);
    const Reduction reduction = Reduction::Custom(Compose, nullptr, sizeof(Large));
    for (std::size_t target = 0; target < world; ++target) {
      auto copies = inputs;
      reduction.CombineAll(copies[target].data(), Pointers(copies), kLargeElements);
      EXPECT_EQ(std::memcmp(copies[target].data(), wanted.data(), kLargeElements * sizeof(Large)), 0)
          << "out is input " << target << " of " << world;
    }
  }
}

TEST(Custom, TemporariesAreAlignedForAnyVectorType) {
  struct alignas(64) Wide {
    std::array<float, 16> values;
  };
  const auto add = [](const void* src, void* dst, std::size_t count, void* context) {
    *static_cast<bool*>(context) &= reinterpret_cast<std::uintptr_t>(src) % 64 == 0;
    *static_cast<bool*>(context) &= reinterpret_cast<std::uintptr_t>(dst) % 64 == 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < 16; ++j)
        static_cast<Wide*>(dst)[i].values[j] += static_cast<const Wide*>(src)[i].values[j];
    }
  };
  bool aligned = true;
  const Reduction reduction = Reduction::Custom(add, &aligned, sizeof(Wide));
  for (const std::size_t count : {1, 5, 1024, 1025, 3000}) {
    std::vector<std::vector<Wide>> inputs(7, std::vector<Wide>(count));
    reduction.CombineAll(inputs[4].data(), Pointers(inputs), count);
    reduction.Combine(inputs[1].data(), inputs[0].data(), inputs[1].data(), count);
  }
  EXPECT_TRUE(aligned);
}

TEST(Custom, WhatTheFunctionThrowsReachesTheCaller) {
  const auto fail = [](const void*, void*, std::size_t, void*) { throw std::runtime_error("no"); };
  const Reduction reduction = Reduction::Custom(fail, nullptr, 8);
  std::vector<std::vector<std::uint64_t>> inputs(5, std::vector<std::uint64_t>(1000));
  EXPECT_THROW(reduction.CombineAll(inputs[4].data(), Pointers(inputs), 1000), std::runtime_error);
}

TEST(Custom, NeedsAFunctionAndElementsOfAtLeastOneByte) {
  EXPECT_THROW(Reduction::Custom(nullptr, nullptr, 8), Misuse);
  EXPECT_THROW(Reduction::Custom(JoinFunction, nullptr, 0), Misuse);
}

}  // namespace
}  // namespace warren
