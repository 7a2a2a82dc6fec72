// The number of bytes that each algorithm sends, compared with the promises in the headers.
#include <numeric>

#include "algorithms.h"
#include "checks.h"
#include "rabit_engine/collective/halving_doubling.h"
#include "rabit_engine/collective/pairwise.h"
#include "rabit_engine/collective/recursive_doubling.h"
#include "rabit_engine/collective/ring.h"
#include "rabit_engine/collective/slices.h"
#include "rabit_engine/collective/tree.h"

namespace warren::testing {
namespace {

constexpr std::size_t kTrafficCount = 40 * 9 * 7;  // divisible by all numbers up to 10
constexpr double kVectorBytes = kTrafficCount * sizeof(std::int32_t);
const Sample& kInts = Samples()[2];
const Sample& kFloats = Samples()[0];

struct Traffic {
  double most = 0;  ///< maximum over members, in units of the vector's size
  double all = 0;   ///< sum over members, in units of the vector's size
};

/// Returns the traffic of one call, without call tags.
template <typename Body>
Traffic Measure(int size, Body body) {
  MemoryWorld world(size);
  world.Run([&](Transport& transport) {
    Caller caller(transport);
    body(caller);
  });
  Traffic traffic;
  for (int rank = 0; rank < size; ++rank) {
    const auto links = static_cast<double>(world.peers(rank).size());
    const double vectors =
        (static_cast<double>(world.bytes_sent(rank)) - links * sizeof(CallTag)) / kVectorBytes;
    traffic.most = std::max(traffic.most, vectors);
    traffic.all += vectors;
  }
  return traffic;
}

Traffic OfAllreduce(collective::AllreduceFunction algorithm, int size, const Sample& sample) {
  const ReductionCase test(sample, size, kTrafficCount);
  return Measure(size, [&](Caller& caller) { CheckAllreduce(caller, algorithm, test); });
}

constexpr double kSlack = 0.01;  // Measure subtracts a tag per link, even if none was sent on it

TEST(Traffic, OfPairwiseAndOfTheRingOfIntegersIsTheLeastThereIs) {
  for (const int size : {2, 3, 4, 5, 7, 8, 9, 10}) {
    const double least = 2.0 * (size - 1) / size;
    EXPECT_NEAR(OfAllreduce(collective::AllreducePairwise, size, kFloats).most, least, kSlack) << size;
    EXPECT_NEAR(OfAllreduce(collective::AllreduceRing, size, kInts).most, least, kSlack) << size;
  }
}

TEST(Traffic, OfAllgathersIsEachSliceOnceToEachMember) {
  for (const auto& algorithm : Allgathers()) {
    for (const int size : {2, 3, 5, 6, 7, 8, 9, 10}) {
      const auto offsets = collective::EvenOffsets(kTrafficCount * sizeof(std::int32_t), size);
      const Traffic traffic =
          Measure(size, [&](Caller& caller) { CheckAllgather(caller, algorithm.function, offsets); });
      EXPECT_NEAR(traffic.most, static_cast<double>(size - 1) / size, kSlack) << algorithm << ", " << size;
    }
  }
}

TEST(Traffic, OfTheRingIsAtMostOnePartialSumALevelWhereTheOrderMatters) {
  for (const int levels : {1, 2, 3, 4}) {
    const int size = 1 << levels;
    const double once_round = static_cast<double>(size - 1) / size;
    const double reduce_scatter = OfAllreduce(collective::AllreduceRing, size, kFloats).most - once_round;
    EXPECT_LE(reduce_scatter, levels * once_round + kSlack) << size;
  }
}

TEST(Traffic, OfHalvingDoublingIsTheLeastForPowersOfTwoAndTwoVectorsOtherwise) {
  for (const int size : {2, 4, 8}) {
    const double least = 2.0 * (size - 1) / size;
    EXPECT_NEAR(OfAllreduce(collective::AllreduceHalvingDoubling, size, kFloats).most, least, kSlack) << size;
  }
  for (const int size : {3, 5, 6, 7, 9, 11, 12, 13}) {
    EXPECT_LE(OfAllreduce(collective::AllreduceHalvingDoubling, size, kFloats).most, 2 + kSlack) << size;
  }
}

TEST(Traffic, OfRecursiveDoublingIsAVectorALevel) {
  for (const int levels : {1, 2, 3}) {
    const Traffic traffic = OfAllreduce(collective::AllreduceRecursiveDoubling, 1 << levels, kFloats);
    EXPECT_NEAR(traffic.most, levels, kSlack);
  }
}

TEST(Traffic, OfATreeIsOneVectorForEachMemberButTheRoot) {
  for (const int size : {2, 3, 6, 8, 11}) {
    for (const int root : {0, size / 2, size - 1}) {
      const ReductionCase test(kFloats, size, kTrafficCount);
      const Traffic reduce =
          Measure(size, [&](Caller& caller) { CheckReduce(caller, collective::ReduceTree, test, root); });
      const Traffic broadcast = Measure(size, [&](Caller& caller) {
        CheckBroadcast(caller, collective::BroadcastTree, kTrafficCount * sizeof(std::int32_t), root);
      });
      EXPECT_NEAR(reduce.most, 1, kSlack);
      EXPECT_NEAR(reduce.all, size - 1, size * kSlack * 4);
      EXPECT_NEAR(broadcast.all, size - 1, size * kSlack * 4);
    }
  }
}

}  // namespace
}  // namespace warren::testing
