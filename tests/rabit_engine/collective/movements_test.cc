// The collectives that do not reduce.
#include <atomic>
#include <chrono>
#include <thread>

#include "algorithms.h"
#include "checks.h"
#include "rabit_engine/collective/slices.h"

namespace warren::testing {
namespace {

class Allgather : public ::testing::TestWithParam<Named<collective::AllgatherFunction>> {};
TEST_P(Allgather, GivesAllMembersAllSlicesWhateverTheirLengths) {
  for (const int size : GroupSizes()) {
    MemoryWorld(size, kLinkBytes, /*frames=*/true).Run([&](Transport& transport) {
      Caller caller(transport);
      for (const std::size_t bytes : CountsFor(size)) {
        CheckAllgather(caller, GetParam().function, collective::EvenOffsets(bytes, size));
        CheckAllgather(caller, GetParam().function, UnevenOffsets(bytes, size));
      }
    });
  }
}
INSTANTIATE_TEST_SUITE_P(By, Allgather, ::testing::ValuesIn(Allgathers()),
                         NameOf<collective::AllgatherFunction>());

class Broadcast : public ::testing::TestWithParam<Named<collective::BroadcastFunction>> {};
TEST_P(Broadcast, GivesAllMembersTheBytesOfAnyRoot) {
  for (const int size : GroupSizes()) {
    std::vector<std::size_t> lengths = CountsFor(size);
    lengths.push_back(3 * (128 << 10) + 1);
    MemoryWorld(size, kLinkBytes, /*frames=*/true).Run([&](Transport& transport) {
      Caller caller(transport);
      for (const std::size_t bytes : lengths) {
        for (const int root : RootsFor(size)) CheckBroadcast(caller, GetParam().function, bytes, root);
      }
    });
  }
}
INSTANTIATE_TEST_SUITE_P(By, Broadcast, ::testing::ValuesIn(Broadcasts()),
                         NameOf<collective::BroadcastFunction>());

class Barrier : public ::testing::TestWithParam<Named<collective::BarrierFunction>> {};
TEST_P(Barrier, LetsNobodyOutBeforeEverybodyIsIn) {
  for (const int size : GroupSizes()) {
    std::atomic<int> arrivals = 0;
    MemoryWorld(size, kLinkBytes, /*frames=*/true).Run([&](Transport& transport) {
      Caller caller(transport);
      for (int round = 1; round <= 20; ++round) {
        // A different member is late in each round.
        if (caller.rank() == round % size) std::this_thread::sleep_for(std::chrono::microseconds(200));
        ++arrivals;
        caller.Call(Collective::kBarrier, 1, [](PeerGroup& group) { GetParam().function(group); });
        EXPECT_GE(arrivals, round * size);
      }
    });
  }
}
INSTANTIATE_TEST_SUITE_P(By, Barrier, ::testing::ValuesIn(Barriers()), NameOf<collective::BarrierFunction>());

}  // namespace
}  // namespace warren::testing
