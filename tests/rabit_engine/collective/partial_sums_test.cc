#include "rabit_engine/collective/partial_sums.h"

#include <gtest/gtest.h>

#include "checks.h"

namespace warren::testing {
namespace {

using collective::PartialSums;

constexpr std::size_t kCount = 50;

/// Absorbs the inputs of all ranks one by one, starting at rank `first` and wrapping around.
PartialSums AbsorbAll(const ReductionCase& test, int first) {
  const int size = static_cast<int>(test.inputs.size());
  PartialSums sums(test.sample.reduction, size, kCount);
  sums.Hold(first, 0, kCount);
  for (int i = 0; i < size; ++i) {
    const int rank = (first + i) % size;
    sums.Absorb({rank, rank + 1}, test.inputs[rank].data());
  }
  return sums;
}

TEST(PartialSums, OfAllRanksFromAnyFirstOneGiveTheTotalOfTheCanonicalOrder) {
  for (int size = 1; size <= 20; ++size) {
    for (const Sample& sample : Samples()) {
      const ReductionCase test(sample, size, kCount);
      for (int first = 0; first < size; ++first) {
        Bytes total(test.expected.size());
        AbsorbAll(test, first).Total(total.data());
        EXPECT_TRUE(total == test.expected) << sample.name << ", " << size << " ranks from " << first;
      }
    }
  }
}

TEST(PartialSums, AreOneForEachMaximalSubtree) {
  const ReductionCase test(Samples()[0], 16, kCount);
  PartialSums sums(test.sample.reduction, 16, kCount);
  for (int first = 0; first < 16; ++first) {
    sums.Hold(first, 0, kCount);
    for (int end = first + 1; end <= 16; ++end) {
      sums.Absorb({end - 1, end}, test.inputs[end - 1].data());
      EXPECT_EQ(sums.values().size(), Decompose(first, end, 16).size() * kCount * sizeof(float));
    }
  }
}

TEST(PartialSums, AreOneWhereTheOrderDoesNotMatter) {
  const ReductionCase test(Samples()[2], 7, kCount);
  EXPECT_EQ(AbsorbAll(test, 3).values().size(), kCount * sizeof(std::int32_t));
}

/// Simulates hosts of consecutive ranks: one rank absorbs the partial sums of all hosts, in host order.
TEST(PartialSums, OfHostsThatCutThroughSubtreesGiveTheTotal) {
  const std::vector<int> hosts{0, 3, 4, 9, 11, 13};
  for (const Sample& sample : Samples()) {
    const ReductionCase test(sample, 13, kCount);
    PartialSums all(sample.reduction, 13, kCount);
    all.Hold(0, 0, kCount);
    for (std::size_t host = 0; host + 1 < hosts.size(); ++host) {
      PartialSums own(sample.reduction, 13, kCount);
      own.Hold(hosts[host], 0, kCount);
      for (int rank = hosts[host]; rank < hosts[host + 1]; ++rank) {
        own.Absorb({rank, rank + 1}, test.inputs[rank].data());
      }
      const std::byte* value = own.values().data();
      const auto subtrees = sample.reduction.order_matters()
                                ? Decompose(hosts[host], hosts[host + 1], 13)
                                : std::vector<Subtree>{{hosts[host], hosts[host + 1]}};
      for (const Subtree subtree : subtrees) {
        all.Absorb(subtree, value);
        value += kCount * sample.reduction.element_bytes();
      }
    }
    Bytes total(test.expected.size());
    all.Total(total.data());
    EXPECT_TRUE(total == test.expected) << sample.name;
  }
}

/// The partial sums of ranks [begin, end), for all elements.
PartialSums SumsOf(const ReductionCase& test, int begin, int end) {
  PartialSums sums(test.sample.reduction, static_cast<int>(test.inputs.size()), kCount);
  sums.Hold(begin, 0, kCount);
  for (int rank = begin; rank < end; ++rank) sums.Absorb({rank, rank + 1}, test.inputs[rank].data());
  return sums;
}

TEST(PartialSums, OfAHalfOfTheElementsGiveAHalfOfTheTotal) {
  const collective::Range kept{20, 33};
  for (const Sample& sample : Samples()) {
    const ReductionCase test(sample, 12, kCount);
    const auto element = sample.reduction.element_bytes();
    PartialSums left = SumsOf(test, 0, 7);
    PartialSums right = SumsOf(test, 7, 12);
    left.Keep(kept);
    right.Keep(kept);
    left.Absorb(right);
    Bytes total(kept.size() * element);
    left.Total(total.data());
    const auto at = [&](std::size_t i) {
      return test.expected.begin() + static_cast<std::ptrdiff_t>(i * element);
    };
    EXPECT_TRUE(total == Bytes(at(kept.begin), at(kept.end))) << sample.name;
  }
}

TEST(PartialSums, TravelAsOnePieceOrEachByItself) {
  const ReductionCase test(Samples()[0], 12, kCount);
  const PartialSums sums = SumsOf(test, 0, 7);  // subtrees {0..3}, {4, 5} and {6}
  EXPECT_EQ(sums.ValuesOf({0, kCount}).size(), 1U);
  const auto pieces = sums.ValuesOf({10, 15});
  ASSERT_EQ(pieces.size(), 3U);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].data(), sums.values().data() + (i * kCount + 10) * sizeof(float));
    EXPECT_EQ(pieces[i].size(), 5 * sizeof(float));
  }
}

}  // namespace
}  // namespace warren::testing
