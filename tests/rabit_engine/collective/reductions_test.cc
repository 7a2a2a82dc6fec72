// The collectives that reduce: for each of GroupSizes(), each algorithm gives the bits of the canonical
// order.
#include "algorithms.h"
#include "checks.h"

namespace warren::testing {
namespace {

/// All cases for one group size. Vectors with an odd count are misaligned by one byte, except those of custom
/// reductions.
std::vector<ReductionCase> CasesFor(int size) {
  std::vector<ReductionCase> cases;
  for (const std::size_t count : CountsFor(size)) {
    for (const Sample& sample : Samples()) {
      cases.emplace_back(sample, size, count, sample.reduction.is_custom() ? 0 : count % 2);
    }
  }
  cases.emplace_back(HugeElements(), size, 1);
  cases.emplace_back(HugeElements(), size, 3);
  return cases;
}

/// For each group size, runs `body` for every case, in order, on every rank of a world of that size. Links
/// have frames; worlds of up to 5 ranks also run without frames.
template <typename Body>
void ForAllCases(Body body) {
  for (const int size : GroupSizes()) {
    const std::vector<ReductionCase> cases = CasesFor(size);
    for (const bool frames : {true, false}) {
      if (!frames && size > 5) continue;
      MemoryWorld(size, kLinkBytes, frames).Run([&](Transport& transport) {
        Caller caller(transport);
        for (const ReductionCase& test : cases) body(caller, test);
      });
    }
  }
}

class Allreduce : public ::testing::TestWithParam<Named<collective::AllreduceFunction>> {};
TEST_P(Allreduce, GivesAllMembersTheBitsOfTheCanonicalOrder) {
  ForAllCases(
      [](Caller& caller, const ReductionCase& test) { CheckAllreduce(caller, GetParam().function, test); });
}
INSTANTIATE_TEST_SUITE_P(By, Allreduce, ::testing::ValuesIn(Allreduces()),
                         NameOf<collective::AllreduceFunction>());

class Reduce : public ::testing::TestWithParam<Named<collective::ReduceFunction>> {};
TEST_P(Reduce, GivesAnyRootTheBitsOfTheCanonicalOrder) {
  ForAllCases([](Caller& caller, const ReductionCase& test) {
    if (test.count > 1000 && caller.size() > 4) return;
    for (const int root : RootsFor(caller.size())) CheckReduce(caller, GetParam().function, test, root);
  });
}
INSTANTIATE_TEST_SUITE_P(By, Reduce, ::testing::ValuesIn(Reduces()), NameOf<collective::ReduceFunction>());

class ReduceScatter : public ::testing::TestWithParam<Named<collective::ReduceScatterFunction>> {};
TEST_P(ReduceScatter, GivesEachMemberTheBitsOfTheCanonicalOrderInItsSlice) {
  ForAllCases([](Caller& caller, const ReductionCase& test) {
    const auto offsets = UnevenOffsets(test.count, caller.size());
    CheckReduceScatter(caller, GetParam().function, test, offsets);
  });
}
INSTANTIATE_TEST_SUITE_P(By, ReduceScatter, ::testing::ValuesIn(ReduceScatters()),
                         NameOf<collective::ReduceScatterFunction>());

TEST(Samples, ShowADifferentOrderOfOperands) {
  for (const Sample& sample : Samples()) {
    if (!sample.reduction.order_matters()) continue;
    const ReductionCase test(sample, 4, 1000);
    Bytes from_left_to_right = test.inputs[0];
    for (int rank = 1; rank < 4; ++rank) {
      sample.reduction.Combine(from_left_to_right.data(), from_left_to_right.data(), test.inputs[rank].data(),
                               test.count);
    }
    EXPECT_FALSE(from_left_to_right == test.expected) << sample.name;
  }
}

}  // namespace
}  // namespace warren::testing
