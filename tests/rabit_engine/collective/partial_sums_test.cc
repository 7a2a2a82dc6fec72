#include "rabit_engine/collective/partial_sums.h"

#include <gtest/gtest.h>

#include "checks.h"

namespace warren::testing {
namespace {

using collective::PartialSums;

constexpr std::size_t kCount = 50;

/// Absorbs the ranks one by one from `first` on, round to where it began.
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

/// Hosts of consecutive ranks: each sends its partial sums to one that absorbs them in turn.
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

}  // namespace
}  // namespace warren::testing
