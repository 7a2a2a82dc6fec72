// The engine's algorithms in simulated worlds: they finish, send the messages and bytes that their headers
// document, and take the time calculated by hand from the model.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <stdexcept>
#include <string>

#include "bench/simulation/allreduce.h"
#include "bench/simulation/world.h"

namespace warren::simulation {
namespace {

constexpr std::size_t kTagBytes = 32;

/// A model with round numbers, different enough to tell the parameters apart.
Model RoundModel() {
  Model model;
  model.between.send_overhead = 2'000'000;
  model.between.receive_overhead = 700'000;
  model.between.send_ps_per_byte = 150;
  model.between.receive_ps_per_byte = 110;
  model.between.miss = 300'000;
  model.between.latency = 10'000'000;
  model.between.gap_ps_per_byte = 800;
  model.inside = model.between;
  model.inside.latency = 0;
  model.poll = 500'000;
  model.turn = 1'300'000;
  model.combine_ps_per_byte = 20;
  return model;
}

Setting Of(int ranks, std::size_t bytes, bool order_matters = true) {
  Setting setting;
  setting.model = RoundModel();
  setting.ranks = ranks;
  setting.bytes = bytes;
  setting.order_matters = order_matters;
  return setting;
}

TEST(Simulation, EveryAlgorithmEndsWithAnyNumberOfRanks) {
  for (int ranks = 1; ranks <= 33; ++ranks) {
    for (const bool order_matters : {true, false}) {
      const Setting setting = Of(ranks, 3000, order_matters);
      for (const std::string& algorithm : AllreduceAlgorithms(setting)) {
        const double seconds = SimulateAllreduce(algorithm, setting).seconds;
        EXPECT_EQ(seconds > 0, ranks > 1) << algorithm << " with " << ranks;
      }
    }
  }
}

TEST(Simulation, EveryAlgorithmEndsWithTwoHundredRanksAndOneElement) {
  const Setting setting = Of(200, 4);
  for (const std::string& algorithm : AllreduceAlgorithms(setting)) {
    EXPECT_GT(SimulateAllreduce(algorithm, setting).seconds, 0) << algorithm;
  }
}

TEST(Simulation, EveryAlgorithmEndsWhereRanksShareCores) {
  Setting setting = Of(12, 100'000);
  setting.ranks_of_host = 12;
  setting.model.cores_of_host = 2;
  for (const std::string& algorithm : AllreduceAlgorithms(setting)) {
    EXPECT_GT(SimulateAllreduce(algorithm, setting).seconds, 0) << algorithm;
  }
}

TEST(Simulation, HostsOfSeveralRanksMayReduceFirst) {
  Setting setting = Of(48, 1 << 20);
  setting.ranks_of_host = 8;
  setting.model.cores_of_host = 8;
  EXPECT_EQ(ChosenAllreduce(setting), "hierarchical");
  const Outcome levels = SimulateAllreduce("hierarchical", setting);
  EXPECT_LT(levels.all_bytes, SimulateAllreduce("halving_doubling", setting).all_bytes);
  Setting with_stages = setting;
  with_stages.host_stages.latency = 1000;
  EXPECT_NEAR(SimulateAllreduce("hierarchical", with_stages).seconds, levels.seconds + 2 * 7 * 1e-9, 1e-12);
}

Setting OfHosts(int hosts, int ranks_of_host, std::size_t bytes) {
  Setting setting = Of(hosts * ranks_of_host, bytes);
  setting.ranks_of_host = ranks_of_host;
  setting.model.cores_of_host = ranks_of_host;
  return setting;
}

TEST(Simulation, HostsThatAreNoSubtreesSendOneMessageALevelEach) {
  for (const int each : {3, 6, 7}) {
    for (const int levels : {1, 2, 4, 8}) {
      const int hosts = 1 << levels;
      const Setting setting = OfHosts(hosts, each, 8);
      EXPECT_EQ(ChosenAllreduce(setting), "hierarchical_subtrees");
      const Outcome outcome = SimulateAllreduce("hierarchical_subtrees", setting);
      EXPECT_EQ(outcome.most_messages, levels) << hosts << " of " << each;
      EXPECT_EQ(outcome.all_messages, levels * hosts) << "nobody but the leaders sends";
    }
  }
}

TEST(Simulation, HostsThatAreNoSubtreesSendASumForEachSubtree) {
  const auto bytes_of = [](int each) {
    return SimulateAllreduce("hierarchical_subtrees", OfHosts(16, each, 8)).most_bytes - 4 * kTagBytes;
  };
  EXPECT_EQ(bytes_of(4), 4 * 8) << "one sum for hosts of four";
  EXPECT_GT(bytes_of(3), 4 * 8);
  EXPECT_LE(bytes_of(3), 2 * 4 * 8) << "two at most for runs of three hosts' ranks";
}

TEST(Simulation, HostsThatAreNoSubtreesSendLongVectorsAtMostThreeTimes) {
  constexpr std::size_t kBytes = std::size_t{6} << 18;
  for (const int each : {3, 6}) {
    const Setting setting = OfHosts(16, each, kBytes);
    const Outcome outcome = SimulateAllreduce("hierarchical_subtrees", setting);
    EXPECT_LE(outcome.all_bytes, 16 * (3 * kBytes + kBytes / 50)) << "two sums there and one back";
    EXPECT_LE(outcome.most_bytes * each, 3 * kBytes + kBytes / 50) << "all ranks of a host take part";
    EXPECT_LT(outcome.seconds, SimulateAllreduce("halving_doubling", setting).seconds);
  }
}

TEST(Simulation, RecursiveDoublingSendsAMessageALevel) {
  for (const int levels : {1, 2, 3, 5, 8}) {
    const Outcome outcome = SimulateAllreduce("recursive_doubling", Of(1 << levels, 8));
    EXPECT_EQ(outcome.most_messages, levels);
    EXPECT_EQ(outcome.most_bytes, levels * (8 + kTagBytes));
  }
}

TEST(Simulation, HalvingDoublingSendsTwoMessagesALevelAndTheLeastBytes) {
  for (const int levels : {1, 3, 6}) {
    const int ranks = 1 << levels;
    const std::size_t bytes = std::size_t{4096} * ranks;
    const Outcome outcome = SimulateAllreduce("halving_doubling", Of(ranks, bytes));
    EXPECT_EQ(outcome.most_messages, 2 * levels);
    EXPECT_EQ(outcome.most_bytes, 2 * (bytes - 4096) + levels * kTagBytes);
  }
}

TEST(Simulation, TheRingOfIntegersSendsASliceAStep) {
  for (const int ranks : {2, 3, 7, 32}) {
    const std::size_t bytes = std::size_t{4096} * ranks;
    const Outcome outcome = SimulateAllreduce("ring", Of(ranks, bytes, /*order_matters=*/false));
    EXPECT_EQ(outcome.most_messages, 2 * (ranks - 1));
    EXPECT_EQ(outcome.most_bytes, 2 * (bytes - 4096) + kTagBytes);
  }
}

TEST(Simulation, PairwiseSendsEachOtherMemberTwoMessages) {
  const Outcome outcome = SimulateAllreduce("pairwise", Of(9, 9 * 4096));
  EXPECT_EQ(outcome.most_messages, 2 * 8);
  EXPECT_EQ(outcome.all_bytes, 9 * 8 * (2 * 4096 + kTagBytes));
}

TEST(Simulation, ATreeSendsTwoMessagesForEachRankButOne) {
  for (const int ranks : {2, 5, 16, 33}) {
    EXPECT_EQ(SimulateAllreduce("tree", Of(ranks, 8)).all_messages, 2 * (ranks - 1));
  }
}

TEST(Simulation, ADoubleTreeSendsNoMoreThanTwoVectorsARank) {
  for (const int ranks : {2, 3, 8, 13}) {
    const std::size_t bytes = std::size_t{1} << 20;
    const Outcome outcome = SimulateAllreduce("double_tree", Of(ranks, bytes));
    EXPECT_LE(outcome.most_bytes, 2 * bytes + 6 * kTagBytes) << ranks;
    EXPECT_EQ(outcome.all_bytes / bytes, 2 * (ranks - 1)) << ranks;
  }
}

TEST(Simulation, StepsGrowWithTheLogarithmAndTheRingsWithTheRanks) {
  const auto growth = [](const char* algorithm, bool order_matters) {
    return SimulateAllreduce(algorithm, Of(256, 4096, order_matters)).seconds /
           SimulateAllreduce(algorithm, Of(16, 4096, order_matters)).seconds;
  };
  EXPECT_NEAR(growth("recursive_doubling", true), 2, 0.01);
  EXPECT_NEAR(growth("tree", true), 2, 0.1);
  EXPECT_GT(growth("ring", false), 15);
}

TEST(Simulation, AnExchangeOfTwoRanksTakesWhatTheModelGivesByHand) {
  // The send, the latency, the arrival of the last byte at the other host, the end of the wait, one read of
  // tag and element, and the sum.
  const Time by_hand =
      2'000'000 + 40 * 150 + 10'000'000 + 40 * 800 + 500'000 + 700'000 + 40 * 110 + 2 * 8 * 20;
  EXPECT_DOUBLE_EQ(SimulateAllreduce("recursive_doubling", Of(2, 8)).seconds,
                   static_cast<double>(by_hand) * 1e-12);
}

TEST(Simulation, OperationsInARowTakeAsLongEach) {
  Setting setting = Of(2, 8);
  const Outcome once = SimulateAllreduce("recursive_doubling", setting);
  setting.operations = 10;
  const Outcome ten = SimulateAllreduce("recursive_doubling", setting);
  EXPECT_DOUBLE_EQ(ten.seconds, once.seconds);
  EXPECT_EQ(ten.most_messages, once.most_messages);
}

TEST(Simulation, IsTheSameEveryTime) {
  Setting setting = Of(37, 300'000);
  setting.ranks_of_host = 5;
  setting.model.cores_of_host = 2;
  for (const std::string& algorithm : AllreduceAlgorithms(setting)) {
    const Outcome first = SimulateAllreduce(algorithm, setting);
    const Outcome second = SimulateAllreduce(algorithm, setting);
    EXPECT_EQ(first.seconds, second.seconds) << algorithm;
    EXPECT_EQ(first.events, second.events) << algorithm;
  }
}

TEST(Simulation, TooManyEventsEndIt) {
  Setting setting = Of(16, 8);
  setting.most_events = 10;
  EXPECT_THROW(SimulateAllreduce("tree", setting), TooLong);
}

/// The time in which rank 0 receives `bytes` bytes from each other rank.
Time Gather(const Model& model, int ranks, int ranks_of_host, std::size_t bytes) {
  World world(model, ranks, ranks_of_host);
  std::array<std::byte, 1> memory{};
  world.Run([&](Transport& transport) {
    if (transport.rank() > 0) {
      const int root = 0;
      transport.Connect({&root, 1});
      std::size_t sent = 0;
      while (sent < bytes) sent += transport.To(0).TrySend(memory.data(), bytes - sent);
      return;
    }
    std::size_t left = bytes * static_cast<std::size_t>(ranks - 1);
    for (int peer = 1; peer < ranks; ++peer) transport.Connect({&peer, 1});
    while (left > 0) {
      for (int peer = 1; peer < ranks; ++peer) left -= transport.To(peer).TryReceive(memory.data(), left);
    }
  });
  return world.ended();
}

TEST(World, RanksOfAHostShareItsInterface) {
  Model model = RoundModel();
  model.cores_of_host = 8;
  model.between.buffer_bytes = 1 << 24;
  constexpr std::size_t kBytes = 1'000'000;
  const double one = static_cast<double>(Gather(model, 2, 1, kBytes));
  EXPECT_NEAR(static_cast<double>(Gather(model, 5, 1, kBytes)) / one, 4, 0.2) << "into the root's host";
}

TEST(World, RanksThatShareACoreTakeTurns) {
  for (const int ranks : {1, 2, 4, 6}) {
    Model model = RoundModel();
    model.cores_of_host = 2;
    model.turn = 0;
    World world(model, ranks, ranks);
    world.Run([](Transport&) { World::Work(kMicrosecond); });
    EXPECT_EQ(world.ended(), (ranks + 1) / 2 * kMicrosecond) << ranks;
  }
}

TEST(World, SaysThatRanksWaitForEachOther) {
  World world(RoundModel(), 2);
  EXPECT_THROW(world.Run([](Transport& transport) {
    const Interest interest{1 - transport.rank(), /*to_send=*/false, /*to_receive=*/true};
    transport.Connect({&interest.peer, 1});
    transport.Wait({&interest, 1}, kNoDeadline);
  }),
               std::logic_error);
}

}  // namespace
}  // namespace warren::simulation
