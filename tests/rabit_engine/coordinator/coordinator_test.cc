#include "rabit_engine/coordinator/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/rabit_engine/coordinator/simulated_world.h"

namespace warren::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

void AddToAll(SimulatedWorld& world, const Request& request) {
  for (Participant& rank : world.ranks) rank.Add(request, world.now);
}

Request InGroup(const std::string& name, const std::string& group, std::uint32_t size,
                std::uint64_t count = 10) {
  Request request = Sum(name, count);
  request.group = group;
  request.group_size = size;
  return request;
}

/// Runs `cycles` cycles. Returns the error of each operation that ended, by name; empty if it succeeded.
std::map<std::string, std::string> Ended(SimulatedWorld& world, int cycles = 6) {
  std::map<std::string, std::string> ended;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    for (const Ready& ready : world.Cycle()) {
      EXPECT_TRUE(ended.emplace(ready.request->name, ready.error).second) << ready.request->name << " twice";
    }
  }
  return ended;
}

TEST(Coordinator, RunsWhatIsReadyEverywhereAndNothingElse) {
  SimulatedWorld world({.size = 3});
  AddToAll(world, Sum("a"));
  world.ranks[1].Add(Sum("b"), 0);
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("a"));
  EXPECT_THAT(NamesOf(world.Cycle()), IsEmpty());
  world.ranks[0].Add(Sum("b"), 0);
  EXPECT_THAT(NamesOf(world.Cycle()), IsEmpty());
  world.ranks[2].Add(Sum("b"), 0);
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("b"));
}

TEST(Coordinator, ASteadyTrainingSendsOneWordForEach64Names) {
  SimulatedWorld world({.size = 4, .capacity = 1000});
  for (int step = 0; step < 10; ++step) {
    std::mt19937 random(static_cast<unsigned>(step));
    for (Participant& rank : world.ranks) {
      std::vector<int> order(100);
      for (int i = 0; i < 100; ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (const int i : order) rank.Add(Sum("tensor" + std::to_string(i)), 0);
    }
    EXPECT_EQ(world.Cycle().size(), 100u);
  }
  EXPECT_EQ(world.num_talks, 1);
  EXPECT_EQ(world.most_words, 3u);
}

TEST(Coordinator, OrdersByPriorityThenByWhoCameFirst) {
  SimulatedWorld world({.settings = {0, 0}});
  for (int step = 0; step < 2; ++step) {
    for (const auto& [name, priority] : {std::pair{"c", 0}, {"a", 0}, {"b", 5}}) {
      Request request = Sum(name);
      request.priority = priority;
      AddToAll(world, request);
    }
    EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("b"));
    EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("c"));
    EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("a"));
  }
  EXPECT_EQ(world.num_talks, 1);
}

TEST(Coordinator, APriorityThatChangesIsAskedForAnew) {
  SimulatedWorld world({.settings = {0, 0}});
  const auto add = [&](int a, int b) {
    for (Participant& rank : world.ranks) {
      Request request = Sum("a");
      request.priority = a;
      rank.Add(request, 0);
      request = Sum("b");
      request.priority = b;
      rank.Add(request, 0);
    }
  };
  add(1, 0);
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("a"));
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("b"));
  add(1, 2);
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("b"));
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("a"));
  EXPECT_EQ(world.num_talks, 2);
  add(1, 2);
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("b"));
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("a"));
  EXPECT_EQ(world.num_talks, 2);
}

TEST(Coordinator, DifferentShapesAreAnErrorOfThatNameAlone) {
  SimulatedWorld world({.size = 3});
  for (int step = 0; step < 3; ++step) {
    for (int rank = 0; rank < 3; ++rank) {
      world.ranks[rank].Add(Sum("x", rank == 2 && step == 1 ? 11 : 10), 0);
      world.ranks[rank].Add(Sum("y"), 0);
    }
    std::map<std::string, std::string> errors = Ended(world, 3);
    ASSERT_EQ(errors.size(), 2u) << step;
    EXPECT_EQ(errors["y"], "");
    if (step == 1) {
      EXPECT_THAT(errors["x"], HasSubstr("the name 'x' for different operations"));
      EXPECT_THAT(errors["x"], HasSubstr("on rank 2"));
      EXPECT_THAT(errors["x"], HasSubstr("an allreduce (sum) of 11 elements of float"));
    } else {
      EXPECT_EQ(errors["x"], "");
    }
  }
}

TEST(Coordinator, WhoIsMissingIsNamed) {
  SimulatedWorld world({.size = 4, .patience = {60, 0}});
  for (const bool is_known : {false, true}) {
    world.warnings.clear();
    for (const int rank : {0, 2, 3}) world.ranks[rank].Add(Sum("x"), world.now);
    for (int second = 0; second < 59; ++second, world.now += 1) world.Cycle();
    EXPECT_THAT(world.warnings, IsEmpty());
    for (int second = 0; second < 20; ++second, world.now += 1) world.Cycle();
    EXPECT_THAT(
        world.warnings,
        ElementsAre(HasSubstr(
            "'x' (an allreduce (sum) of 10 elements of float) has been ready on ranks 0, 2, 3 but not on rank 1 for")))
        << is_known;
    for (int second = 0; second < 80; ++second, world.now += 1) world.Cycle();
    EXPECT_EQ(world.warnings.size(), 2u);
    world.ranks[1].Add(Sum("x"), world.now);
    EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("x"));
  }
}

TEST(Coordinator, WhatNeverComesIsAnErrorWhereThatIsWanted) {
  SimulatedWorld world({.size = 3, .patience = {60, 5}, .settings = {0, 0, 5}});
  for (const bool is_known : {false, true}) {
    const double begin = world.now;
    world.ranks[1].Add(Sum("x"), world.now);
    std::vector<Ready> ended;
    for (int step = 0; step < 100 && ended.empty(); ++step, world.now += 0.1) ended = world.Cycle();
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_THAT(ended[0].error, HasSubstr("has been ready on rank 1 but not on ranks 0, 2 for "));
    EXPECT_FALSE(world.ranks[1].IsWaiting("x"));
    EXPECT_LT(world.now - begin, is_known ? 6.5 : 5.2);
    AddToAll(world, Sum("x"));
    EXPECT_EQ(world.Cycle().size(), 1u);
  }
}

TEST(Coordinator, AGroupIsRunWholeOrNotAtAll) {
  SimulatedWorld world({.size = 2, .settings = {0, 0}});
  const auto member = [](const std::string& name, std::uint64_t count = 10) {
    return InGroup(name, "g", 3, count);
  };
  for (int step = 0; step < 3; ++step) {
    AddToAll(world, member("a"));
    world.ranks[0].Add(member("b"), 0);
    AddToAll(world, Sum("alone"));
    world.ranks[0].Add(member("c"), 0);
    EXPECT_THAT(Ended(world, 4), ElementsAre(Pair("alone", ""))) << step;
    world.ranks[1].Add(member("c"), 0);
    EXPECT_THAT(NamesOf(world.Cycle()), IsEmpty());
    // If the shape of one member differs between the ranks, all three members fail.
    world.ranks[1].Add(member("b", step == 1 ? 11 : 10), 0);
    const auto errors = Ended(world, 5);
    ASSERT_EQ(errors.size(), 3u) << step;
    for (const auto& [name, error] : errors) EXPECT_EQ(error.empty(), step != 1) << step << " " << name;
  }
}

TEST(Coordinator, RanksThatPutAGroupTogetherDifferentlyAreTold) {
  for (int step = 0; step < 2; ++step) {
    {  // The size of a group differs between the ranks.
      SimulatedWorld world({.size = 2});
      for (const std::uint32_t rank : {1U, 0U}) {
        for (const char* name : {"x", "y"}) world.ranks[rank].Add(InGroup(name, "g", 2 + rank), 0);
      }
      const auto ended = Ended(world);
      ASSERT_EQ(ended.size(), 2u);
      for (const auto& [name, error] : ended)
        EXPECT_THAT(error, HasSubstr("the size of group 'g': on rank 0 it has 2 members, on rank 1 3"));
    }
    {  // An operation is in different groups on the ranks; all members of both groups fail.
      SimulatedWorld world({.size = 2});
      AddToAll(world, InGroup("y", "g", 2));
      AddToAll(world, InGroup("z", "h", 2));
      for (const int rank : {0, 1}) world.ranks[rank].Add(InGroup("x", rank == 0 ? "g" : "h", 2), 0);
      const auto ended = Ended(world);
      ASSERT_EQ(ended.size(), 3u);
      for (const auto& [name, error] : ended) EXPECT_THAT(error, HasSubstr("in group 'g', on rank 1"));
    }
    {  // An operation is in a group on one rank only.
      SimulatedWorld world({.size = 2});
      world.ranks[0].Add(Sum("x"), 0);
      world.ranks[1].Add(InGroup("x", "g", 2), 0);
      AddToAll(world, InGroup("y", "g", 2));
      const auto ended = Ended(world);
      ASSERT_EQ(ended.size(), 2u);
      for (const auto& [name, error] : ended)
        EXPECT_THAT(error, HasSubstr("the name 'x' for different operations"));
    }
    {  // The members of a group disagree on the group's size; each member's request is the same on all ranks.
      SimulatedWorld world({.size = 2});
      AddToAll(world, InGroup("x", "g", 2));
      AddToAll(world, InGroup("y", "g", 3));
      const auto ended = Ended(world);
      ASSERT_EQ(ended.size(), 2u);
      for (const auto& [name, error] : ended) EXPECT_THAT(error, HasSubstr("the size of group 'g'"));
    }
  }
}

TEST(Coordinator, AGroupMayGetOtherMembers) {
  SimulatedWorld world({.size = 2});
  const auto run = [&](const std::vector<std::pair<std::string, std::string>>& members) {
    for (const auto& [name, group] : members) AddToAll(world, InGroup(name, group, 2));
    const auto ended = Ended(world);
    EXPECT_EQ(ended.size(), members.size());
    for (const auto& [name, error] : ended) EXPECT_EQ(error, "") << name;
  };
  for (int step = 0; step < 3; ++step) {
    run({{"a", "g"}, {"b", "g"}, {"c", "h"}, {"d", "h"}});
    run({{"a", "g"}, {"c", "g"}});
    // Two groups of the same name at the same time: members are taken two at a time.
    run({{"a", "g"}, {"b", "g"}, {"c", "g"}, {"d", "g"}});
    run({{"a", "g"}, {"b", "g"}, {"c", "g"}, {"d", "g"}});
  }
}

TEST(Coordinator, AGroupMayBeUsedForSeveralAtOnce) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    SimulatedWorld world({.size = 3, .settings = {random() % 2 * 1000, 0}});
    for (int step = 0; step < 6; ++step) {
      std::vector<std::vector<std::string>> to_add(3, {"a", "b", "c", "d", "e", "f"});
      for (auto& names : to_add) std::shuffle(names.begin(), names.end(), random);
      std::set<std::string> ended;
      for (int cycle = 0; cycle < 200 && ended.size() < 6; ++cycle) {
        for (int rank = 0; rank < 3; ++rank) {
          if (to_add[rank].empty() || random() % 3 == 0) continue;
          world.ranks[rank].Add(InGroup(to_add[rank].back(), "g", 2), 0);
          to_add[rank].pop_back();
        }
        for (const Ready& ready : world.Cycle()) {
          EXPECT_EQ(ready.error, "");
          ended.insert(ready.request->name);
        }
      }
      ASSERT_EQ(ended.size(), 6u) << "seed " << seed << ", step " << step;
    }
  }
}

TEST(Coordinator, CountsOfAnAllToAllHaveToAgree) {
  SimulatedWorld world({.size = 2});
  const auto add = [&](int rank, std::vector<std::uint64_t> sent, std::vector<std::uint64_t> received) {
    Request request;
    request.name = "x";
    request.signature.kind = Collective::kAllToAll;
    request.sent = std::move(sent);
    request.received = std::move(received);
    world.ranks[rank].Add(request, 0);
  };
  for (int step = 0; step < 2; ++step) {
    for (int again = 0; again < 2; ++again) {
      add(0, {1, 2}, {1, 3});
      add(1, {3, 4}, {2, 4});
      EXPECT_THAT(Ended(world, 3), ElementsAre(Pair("x", "")));
    }
    EXPECT_EQ(world.num_talks, 1 + step * 3);
    add(0, {1, 2}, {1, 3});
    add(1, {3, 4}, {8, 4});
    EXPECT_THAT(Ended(world, 3),
                ElementsAre(Pair("x", HasSubstr("rank 0 has 2 bytes for rank 1, which expects 8"))));
  }
}

TEST(Coordinator, AJoinEndsBehindWhatWasAgreedOnBefore) {
  SimulatedWorld world({.size = 2, .settings = {0, 0}});
  for (const char* name : {"a", "b", "c"}) AddToAll(world, Sum(name));
  for (Participant& rank : world.ranks) rank.Join();
  for (int left = 2; left >= 0; --left) {
    EXPECT_EQ(world.Cycle().size(), 1u);
    for (Participant& rank : world.ranks) EXPECT_EQ(rank.TakeLastJoined().has_value(), left == 0) << left;
  }
}

TEST(Coordinator, WhoHasLeftStaysAway) {
  SimulatedWorld world({.size = 2, .settings = {0, 0}});
  for (const char* name : {"a", "b", "c"}) AddToAll(world, Sum(name));
  world.ranks[0].Leave();
  world.Cycle();
  world.ranks[1].Add(Sum("new"), 0);
  EXPECT_EQ(world.Cycle().size(), 1u);
  for (const Participant& rank : world.ranks) EXPECT_EQ(rank.left(), 0);
}

TEST(Coordinator, RanksThatHaveJoinedTakePartUntilAllHave) {
  SimulatedWorld world({.size = 3});
  AddToAll(world, Sum("x"));
  EXPECT_EQ(world.Cycle().size(), 1u);
  world.ranks[1].Join();
  world.Cycle();
  for (const int rank : {0, 2}) {
    world.ranks[rank].Add(Sum("x"), 0);  // "x" is known to all ranks
    world.ranks[rank].Add(Sum("new"), 0);
    Request broadcast = Sum("b");
    broadcast.signature.kind = Collective::kBroadcast;
    world.ranks[rank].Add(broadcast, 0);
  }
  std::map<std::string, std::string> errors = Ended(world, 4);
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors["x"] + errors["new"], "");
  EXPECT_THAT(errors["b"], HasSubstr("rank 1 can no longer take part"));
  world.ranks[2].Join();
  world.Cycle();
  world.ranks[0].Add(Sum("x"), 0);
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("x"));
  EXPECT_EQ(world.ranks[0].TakeLastJoined(), std::nullopt);
  world.ranks[0].Join();
  EXPECT_THAT(NamesOf(world.Cycle()), IsEmpty());
  for (Participant& rank : world.ranks) EXPECT_EQ(rank.TakeLastJoined(), 0);
  // Then all ranks start over.
  world.ranks[0].Add(Sum("x"), 0);
  EXPECT_THAT(NamesOf(world.Cycle()), IsEmpty());
  for (const int rank : {1, 2}) world.ranks[rank].Add(Sum("x"), 0);
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("x"));
}

TEST(Coordinator, ARankThatJoinsWaitsForItsOwnFirst) {
  SimulatedWorld world({.size = 2});
  world.ranks[1].Add(Sum("x"), 0);
  world.ranks[1].Join();
  world.Cycle();
  world.ranks[0].Add(Sum("x"), 0);
  EXPECT_THAT(NamesOf(world.Cycle()), ElementsAre("x"));
  world.ranks[0].Join();
  world.Cycle();
  EXPECT_EQ(world.ranks[0].TakeLastJoined(), 1);
}

TEST(Coordinator, WhoLeavesEndsItForAll) {
  SimulatedWorld world({.size = 3});
  world.ranks[2].Leave();
  world.Cycle();
  for (const Participant& rank : world.ranks) EXPECT_EQ(rank.left(), 2);
}

TEST(Coordinator, NewSettingsReachAll) {
  SimulatedWorld world({.size = 2});
  world.coordinator().Propose({123, 45});
  world.Cycle();
  for (const Participant& rank : world.ranks) EXPECT_EQ(rank.settings(), (Settings{123, 45}));
  world.coordinator().Propose({123, 45});
  const int talks = world.num_talks;
  world.Cycle();
  EXPECT_EQ(world.num_talks, talks);
}

TEST(Coordinator, IdleRanksAreKnownToBe) {
  SimulatedWorld world({.size = 2});
  world.Cycle();
  EXPECT_TRUE(world.ranks[0].all_are_idle());
  world.ranks[1].Add(Sum("x"), 0);
  world.Cycle();
  EXPECT_FALSE(world.ranks[0].all_are_idle());
}

/// Names that each rank submits once per round, in its own order and over several cycles. Some names have
/// different shapes on different ranks, some are in groups, and in some rounds the ranks join.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed)
      : random_(seed),
        world_({.size = Below(7) + 1,
                .capacity = static_cast<std::size_t>(Below(3) == 0 ? Below(6) : 40),
                .settings = {static_cast<std::uint64_t>(Below(3) * 100), 0}}) {}

  void Run() {
    const int rounds = 2 + Below(4);
    for (int round = 0; round < rounds; ++round) {
      Round();
      if (testing::Test::HasFailure()) return;
    }
  }

 private:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  void Round() {
    const int num_names = 1 + Below(12);
    const int grouped = Below(2) == 0 ? 0 : Below(num_names + 1);
    const std::string group = Below(2) == 0 ? "g" : "h";
    std::vector<std::vector<Request>> to_add(world_.ranks.size());
    std::set<std::size_t> joining;
    if (Below(4) == 0) {
      for (std::size_t rank = 0; rank < world_.ranks.size(); ++rank) {
        if (Below(3) == 0 && joining.size() + 1 < world_.ranks.size()) joining.insert(rank);
      }
    }
    // The counts with which each name is submitted. An operation must fail if there are several.
    std::map<std::string, std::set<std::uint64_t>> shapes;
    for (int i = 0; i < num_names; ++i) {
      Request request =
          Sum("n" + std::to_string(Below(3) == 0 ? i + 100 : i), 1 + static_cast<std::uint64_t>(Below(3)));
      request.priority = Below(8) == 0 ? Below(3) : 0;
      if (i < grouped) {
        request.group = group;
        request.group_size = static_cast<std::uint32_t>(grouped);
      }
      for (std::size_t rank = 0; rank < world_.ranks.size(); ++rank) {
        if (joining.contains(rank)) continue;
        Request own = request;
        if (Below(30) == 0) own.signature.count += 7;
        to_add[rank].push_back(own);
        shapes[own.name].insert(own.signature.count);
      }
    }
    const auto in_group = [&](const std::string& name) { return std::stoi(name.substr(1)) % 100 < grouped; };
    const bool group_is_wrong = std::any_of(shapes.begin(), shapes.end(), [&](const auto& shape) {
      return in_group(shape.first) && shape.second.size() > 1;
    });
    for (auto& requests : to_add) std::shuffle(requests.begin(), requests.end(), random_);
    const bool all_join = !joining.empty();
    for (const std::size_t rank : joining) world_.ranks[rank].Join();
    std::map<std::string, std::string> ended;
    std::set<std::size_t> late_joins;
    int quiet = 0;
    while (quiet < 6) {
      bool adds = false;
      for (std::size_t rank = 0; rank < world_.ranks.size(); ++rank) {
        for (int n = Below(4); n > 0 && !to_add[rank].empty(); --n) {
          world_.ranks[rank].Add(to_add[rank].back(), world_.now);
          to_add[rank].pop_back();
        }
        adds = adds || !to_add[rank].empty();
        if (to_add[rank].empty() && all_join && !joining.contains(rank) && late_joins.insert(rank).second) {
          world_.ranks[rank].Join();
          adds = true;
        }
      }
      const std::vector<Ready> batch = world_.Cycle();
      for (const Ready& ready : batch) {
        EXPECT_TRUE(ended.emplace(ready.request->name, ready.error).second)
            << ready.request->name << " twice";
      }
      quiet = adds || !batch.empty() ? 0 : quiet + 1;
      for (const auto& [name, counts] : shapes) {
        for (const Participant& rank : world_.ranks) EXPECT_EQ(rank.Knows(name), world_.ranks[0].Knows(name));
      }
    }
    EXPECT_EQ(ended.size(), shapes.size());
    for (const auto& [name, error] : ended) {
      EXPECT_EQ(!error.empty(), in_group(name) ? group_is_wrong : shapes[name].size() > 1)
          << name << " " << error;
    }
    for (Participant& rank : world_.ranks) {
      EXPECT_EQ(rank.TakeLastJoined().has_value(), all_join);
      for (const auto& [name, counts] : shapes) EXPECT_FALSE(rank.IsWaiting(name)) << name;
    }
  }

  std::mt19937 random_;
  SimulatedWorld world_;
};

TEST(Coordinator, RandomProgramsEndAlikeOnAllRanks) {
#ifdef NDEBUG
  constexpr unsigned kPrograms = 10'000;
#else
  constexpr unsigned kPrograms = 300;  // debug builds are slow
#endif
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    RandomProgram(seed).Run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace warren::coordinator
