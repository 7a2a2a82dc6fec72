// Successive calls of different collectives over links with little capacity: no call may leave data for the
// next one, and the ranks must not deadlock, whichever of them are late.
#include "algorithms.h"
#include "checks.h"
#include "rabit_engine/base/error.h"

namespace warren::testing {
namespace {

template <typename Function>
Function AnyOf(const std::vector<Named<Function>>& algorithms, Random& random) {
  return algorithms[random() % algorithms.size()].function;
}

/// Makes one call, chosen by random numbers that are the same on all ranks.
void CallAnything(Caller& caller, Random& random, std::span<const ReductionCase> cases) {
  const ReductionCase& test = cases[random() % cases.size()];
  const int root = static_cast<int>(random() % caller.size());
  switch (random() % 6) {
    case 0:
      return CheckAllreduce(caller, AnyOf(Allreduces(), random), test);
    case 1:
      return CheckReduce(caller, AnyOf(Reduces(), random), test, root);
    case 2:
      return CheckReduceScatter(caller, AnyOf(ReduceScatters(), random), test,
                                UnevenOffsets(test.count, caller.size()));
    case 3:
      return CheckAllgather(caller, AnyOf(Allgathers(), random), UnevenOffsets(test.count, caller.size()));
    case 4:
      return CheckBroadcast(caller, AnyOf(Broadcasts(), random), test.count, root);
    default:
      return caller.Call(Collective::kBarrier, 1, AnyOf(Barriers(), random));
  }
}

TEST(Sequences, OfAnyCollectivesGiveRightResultsOverLinksThatHoldLittle) {
  constexpr std::size_t kCapacity = 100;
  constexpr int kCalls = 60;
  for (int seed = 0; seed < 12; ++seed) {
    Random random(seed);
    const int size = 2 + static_cast<int>(random() % 12);
    std::vector<ReductionCase> cases;
    for (int i = 0; i < 10; ++i) {
      cases.emplace_back(Samples()[random() % Samples().size()], size, random() % 400);
    }
    MemoryWorld(size, kCapacity, /*frames=*/seed % 2 == 1).Run([&](Transport& transport) {
      Caller caller(transport);
      Random choices(seed);
      for (int call = 0; call < kCalls; ++call) CallAnything(caller, choices, cases);
    });
  }
}

TEST(Sequences, EndInMisuseWhenRanksDisagreeEvenAboutNothing) {
  for (const auto& algorithm : Allreduces()) {
    const auto disagree = [&](Transport& transport) {
      Caller caller(transport);
      const std::size_t count = transport.rank() == 1 ? 0 : 100;
      std::vector<float> values(count);
      caller.set_count(count);
      caller.Call(Collective::kAllreduce, sizeof(float), [&](PeerGroup& group) {
        algorithm.function(group, values.data(), count, Samples()[0].reduction);
      });
    };
    EXPECT_THROW(MemoryWorld(4).Run(disagree), Misuse) << algorithm;
  }
}

}  // namespace
}  // namespace warren::testing
