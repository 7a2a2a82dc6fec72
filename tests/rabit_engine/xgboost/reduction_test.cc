#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include "rabit_engine/xgboost/coll_reduction.h"

namespace warren::xgboost {
namespace {

constexpr int kNumTypes = 12;
constexpr int kNumOps = 6;

template <typename Element, typename Combine>
void ExpectCombined(int type, int operation, const std::vector<Element>& left,
                    const std::vector<Element>& right, Combine&& combine) {
  const auto reduction = ReductionOf(type, operation);
  ASSERT_TRUE(reduction) << type << " " << operation;
  ASSERT_EQ(reduction->element_bytes(), sizeof(Element));
  // Misaligned by one byte, since operands may lie at any address.
  std::vector<char> memory(left.size() * sizeof(Element) + 1);
  std::memcpy(memory.data() + 1, left.data(), left.size() * sizeof(Element));
  reduction->Combine(memory.data() + 1, memory.data() + 1, right.data(), left.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    Element found;
    std::memcpy(&found, memory.data() + 1 + i * sizeof(Element), sizeof(Element));
    EXPECT_EQ(found, static_cast<Element>(combine(left[i], right[i])))
        << type << " " << operation << " at " << i;
  }
}

/// Checks every operation of a type against std::max, std::min and the C++ operators.
template <typename Element>
void ExpectAll(int type) {
  std::vector<Element> left;
  std::vector<Element> right;
  for (int i = 0; i < 100; ++i) {
    left.push_back(static_cast<Element>(i * 37 - 1000));
    right.push_back(static_cast<Element>(i * i - 50));
  }
  ExpectCombined(type, 0, left, right, [](Element a, Element b) { return std::max(a, b); });
  ExpectCombined(type, 1, left, right, [](Element a, Element b) { return std::min(a, b); });
  ExpectCombined(type, 2, left, right, std::plus<>());
  if constexpr (std::is_integral_v<Element>) {
    ExpectCombined(type, 3, left, right, std::bit_and<>());
    ExpectCombined(type, 4, left, right, std::bit_or<>());
    ExpectCombined(type, 5, left, right, std::bit_xor<>());
  } else {
    for (int operation = 3; operation < kNumOps; ++operation) EXPECT_FALSE(ReductionOf(type, operation));
  }
}

TEST(XgboostReduction, EveryTypeAndOperationIsTheLanguagesOwn) {
  ExpectAll<float>(1);
  ExpectAll<double>(2);
  ExpectAll<long double>(3);
  ExpectAll<std::int8_t>(4);
  ExpectAll<std::int16_t>(5);
  ExpectAll<std::int32_t>(6);
  ExpectAll<std::int64_t>(7);
  ExpectAll<std::uint8_t>(8);
  ExpectAll<std::uint16_t>(9);
  ExpectAll<std::uint32_t>(10);
  ExpectAll<std::uint64_t>(11);
}

TEST(XgboostReduction, WhatItDoesNotKnowIsNothing) {
  for (int operation = 0; operation < kNumOps; ++operation)
    EXPECT_FALSE(ReductionOf(0, operation)) << "half precision";
  for (const int type : {-1, kNumTypes, 127, -128}) EXPECT_FALSE(ReductionOf(type, 2));
  for (const int operation : {-1, kNumOps, 1 << 20}) {
    for (int type = 0; type < kNumTypes; ++type) EXPECT_FALSE(ReductionOf(type, operation));
  }
}

}  // namespace
}  // namespace warren::xgboost
