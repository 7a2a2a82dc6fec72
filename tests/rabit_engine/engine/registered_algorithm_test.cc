// Algorithms defined only in this file: they are registered, selected by name, and run by the engine.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "rabit_engine/collective/registry.h"
#include "rabit_engine/collective/vector_view.h"
#include "tests/rabit_engine/engine/thread_world.h"

namespace warren {
namespace {

/// The number of times that each collective's function has run, over all ranks.
std::array<std::atomic<int>, 8> runs;
void Count(Collective collective) {
  ++runs[static_cast<std::size_t>(collective)];
}
int TakeRuns(Collective collective) {
  return runs[static_cast<std::size_t>(collective)].exchange(0);
}

// --- the algorithm: all data goes through one member, the root or member 0 ---

void SendTo(PeerGroup& group, int peer, const void* data, std::size_t bytes) {
  const Send send{peer, data, bytes};
  group.Exchange({&send, 1}, {});
}

void ReceiveFrom(PeerGroup& group, int peer, void* data, std::size_t bytes) {
  const Receive receive{peer, data, bytes, {}};
  group.Exchange({}, {&receive, 1});
}

void ConnectStar(PeerGroup& group, int center) {
  group.Connect(group.index() == center ? group.Others() : std::vector<int>{center});
}

void BroadcastStar(PeerGroup& group, void* buffer, std::size_t bytes, int root) {
  Count(Collective::kBroadcast);
  ConnectStar(group, root);
  if (group.index() != root) return ReceiveFrom(group, root, buffer, bytes);
  for (const int peer : group.Others()) SendTo(group, peer, buffer, bytes);
}

void ReduceToCenter(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction,
                    int center) {
  ConnectStar(group, center);
  const collective::VectorView vector(buffer, reduction.element_bytes());
  const collective::Range all{0, count};
  if (group.index() != center) return SendTo(group, center, buffer, vector.Bytes(all));
  for (const int peer : group.Others()) {
    const Receive receive = vector.CombineFrom(peer, all, reduction, peer < center);
    group.Exchange({}, {&receive, 1});
  }
}

void ShareFromCenter(PeerGroup& group, void* buffer, std::size_t bytes) {
  if (group.index() != 0) return ReceiveFrom(group, 0, buffer, bytes);
  for (const int peer : group.Others()) SendTo(group, peer, buffer, bytes);
}

void AllreduceStar(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction) {
  Count(Collective::kAllreduce);
  ReduceToCenter(group, buffer, count, reduction, 0);
  ShareFromCenter(group, buffer, count * reduction.element_bytes());
}

void ReduceStar(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction, int root) {
  Count(Collective::kReduce);
  ReduceToCenter(group, buffer, count, reduction, root);
}

void ReduceScatterStar(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets,
                       const Reduction& reduction) {
  Count(Collective::kReduceScatter);
  ReduceToCenter(group, buffer, offsets.back(), reduction, 0);
  ShareFromCenter(group, buffer, offsets.back() * reduction.element_bytes());
}

void AllgatherStar(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets) {
  Count(Collective::kAllgather);
  ConnectStar(group, 0);
  auto* bytes = static_cast<std::byte*>(buffer);
  const auto own = static_cast<std::size_t>(group.index());
  if (group.index() != 0) {
    SendTo(group, 0, bytes + offsets[own], offsets[own + 1] - offsets[own]);
  } else {
    for (std::size_t peer = 1; peer + 1 < offsets.size(); ++peer) {
      ReceiveFrom(group, static_cast<int>(peer), bytes + offsets[peer], offsets[peer + 1] - offsets[peer]);
    }
  }
  ShareFromCenter(group, buffer, offsets.back());
}

void BarrierStar(PeerGroup& group) {
  Count(Collective::kBarrier);
  char nothing = 0;
  ConnectStar(group, 0);
  if (group.index() != 0) {
    SendTo(group, 0, &nothing, 0);
  } else {
    for (const int peer : group.Others()) ReceiveFrom(group, peer, &nothing, 0);
  }
  ShareFromCenter(group, &nothing, 0);
}

constexpr collective::Algorithm kStar{
    .name = "star",
    .allreduce = AllreduceStar,
    .reduce = ReduceStar,
    .reduce_scatter = ReduceScatterStar,
    .allgather = AllgatherStar,
    .broadcast = BroadcastStar,
    .barrier = BarrierStar,
};

/// Provides one collective; the engine still chooses its own algorithms for the others.
constexpr collective::Algorithm kStarBroadcast{.name = "star_broadcast", .broadcast = BroadcastStar};

// --- the tests ---

constexpr int kRanks = 5;

void RunWith(const std::string& algorithm, const std::function<void(NativeCommunicator&)>& function) {
  static const bool registered = [] {
    collective::Register(kStar);
    collective::Register(kStarBroadcast);
    return true;
  }();
  ASSERT_TRUE(registered);
  Settings settings;
  settings.algorithm = algorithm;
  settings.shared_memory = SharedMemory::kOff;
  testing::ThreadWorld(kRanks).Run(settings, function);
}

TEST(RegisteredAlgorithm, IsTheOneThatRunsForEveryCollectiveThatItServes) {
  RunWith("star", [](NativeCommunicator& engine) {
    const Reduction sum = Reduction::Typed(DataType::kInt, ReduceOp::kSum);
    const int rank = engine.rank();
    std::vector<std::int32_t> values{rank, 10 * rank};
    engine.Allreduce(values.data(), values.size(), sum);
    EXPECT_EQ(values, (std::vector<std::int32_t>{10, 100}));

    values = {rank, 1};
    engine.Reduce(values.data(), values.size(), sum, 3);
    if (rank == 3) {
      EXPECT_EQ(values, (std::vector<std::int32_t>{10, kRanks}));
    }

    std::vector<std::int32_t> slices(kRanks, rank);
    std::vector<std::size_t> offsets;
    for (std::size_t i = 0; i <= kRanks; ++i) offsets.push_back(i);
    engine.ReduceScatter(slices.data(), offsets, sum);
    EXPECT_EQ(slices[static_cast<std::size_t>(rank)], 10);

    for (std::size_t& offset : offsets) offset *= sizeof(std::int32_t);
    slices[static_cast<std::size_t>(rank)] = 100 + rank;
    engine.Allgather(slices.data(), offsets);
    EXPECT_EQ(slices, (std::vector<std::int32_t>{100, 101, 102, 103, 104}));

    std::string word = rank == 2 ? "word" : "????";
    engine.Broadcast(word.data(), word.size(), 2);
    EXPECT_EQ(word, "word");
    engine.Barrier();
  });
  EXPECT_EQ(TakeRuns(Collective::kAllreduce), kRanks);
  EXPECT_EQ(TakeRuns(Collective::kReduce), kRanks);
  EXPECT_EQ(TakeRuns(Collective::kReduceScatter), kRanks);
  EXPECT_EQ(TakeRuns(Collective::kAllgather), kRanks);
  EXPECT_EQ(TakeRuns(Collective::kBroadcast), kRanks);
  EXPECT_EQ(TakeRuns(Collective::kBarrier), 2 * kRanks) << "one is Finalize's";
}

TEST(RegisteredAlgorithm, RunsForNothingElse) {
  RunWith("star_broadcast", [](NativeCommunicator& engine) {
    const Reduction sum = Reduction::Typed(DataType::kInt, ReduceOp::kSum);
    std::int32_t value = 1;
    engine.Allreduce(&value, 1, sum);
    EXPECT_EQ(value, kRanks);
    engine.Barrier();
    engine.Broadcast(&value, sizeof value, 0);
  });
  EXPECT_EQ(TakeRuns(Collective::kBroadcast), kRanks);
  for (const Collective collective : {Collective::kAllreduce, Collective::kBarrier}) {
    EXPECT_EQ(TakeRuns(collective), 0) << Name(collective);
  }
}

TEST(RegisteredAlgorithm, DoesNotRunUnlessAskedFor) {
  RunWith("", [](NativeCommunicator& engine) {
    std::int32_t value = 1;
    engine.Allreduce(&value, 1, Reduction::Typed(DataType::kInt, ReduceOp::kSum));
    engine.Broadcast(&value, sizeof value, 0);
  });
  for (const auto& count : runs) EXPECT_EQ(count.load(), 0);
}

}  // namespace
}  // namespace warren
