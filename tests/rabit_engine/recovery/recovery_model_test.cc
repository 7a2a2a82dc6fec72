// Explores every course of a small job that a test's Rules allow: ranks compute, wait in calls, complete them
// in any order that the calls allow, and die at any time, even while the other ranks meet. In every course
// the job must be able to end, and every result must be right. The bookkeeping and the plans are the engine's
// own; the network is simulated.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include "rabit_engine/recovery/plan.h"
#include "rabit_engine/recovery/state.h"

namespace warren::recovery {
namespace {

enum class Call { kLoad, kAllreduce, kBroadcastFromFirst, kBroadcastFromLast, kCheckPoint, kFinalize };

// The program of every rank: load; `versions` times all of `calls` and then a checkpoint; finalize.
struct Program {
  int versions = 1;
  std::vector<Call> calls;
};

struct Rules {
  int ranks = 3;
  int deaths = 2;
  int broken_links = 0;  // the number of times that links may break without a death
  Replicas replicas;
  Program program;
  bool local_models = true;
  bool one_at_a_time = false;  // no rank dies before the previous loss is repaired
};

enum class Doing { kComputes, kInCall, kWantsToMeet };

std::byte ResultOf(int version, std::uint64_t call) {
  return static_cast<std::byte>(16 * version + static_cast<int>(call) + 1);
}

struct Rank {
  RecoveryState state;
  Doing doing = Doing::kWantsToMeet;
  std::string received;  // transfers since the last completed meeting; not in any report yet
};

class World {
 public:
  explicit World(const Rules& rules)
      : rules_(&rules), begun_(rules.ranks, kNothing), copied_(rules.ranks, kNothing) {
    for (int rank = 0; rank < rules.ranks; ++rank) ranks_.push_back(Fresh(rank));
  }

  // All worlds that may follow this one.
  std::vector<World> Next() const {
    std::vector<World> next;
    const auto add = [&](auto&& happens) {
      next.push_back(*this);
      happens(next.back());
    };
    for (int rank = 0; rank < rules_->ranks; ++rank) {
      if (ranks_[rank].doing == Doing::kComputes) add([&](World& world) { world.Begin(rank); });
      if (MayCopy(rank)) add([&](World& world) { world.Copy(rank); });
      if (MayComplete(rank)) add([&](World& world) { world.Complete(rank); });
      if (broken_ && ranks_[rank].doing == Doing::kInCall) {
        add([&](World& world) { world.ranks_[rank].doing = Doing::kWantsToMeet; });
      }
      if (deaths_ < rules_->deaths && !(rules_->one_at_a_time && broken_))
        add([&](World& world) { world.Kill(rank); });
    }
    if (!broken_ && broken_links_ < rules_->broken_links) {
      add([](World& world) {
        world.broken_ = true;
        ++world.broken_links_;
      });
    }
    if (AllWantToMeet()) {
      const Plan plan = MakePlan(Reports(), rules_->replicas);
      add([&](World& world) { world.Meet(plan); });
      AddBrokenMeetings(plan, next);
    }
    return next;
  }

  bool HasEnded() const {
    for (const Rank& rank : ranks_) {
      if (rank.doing != Doing::kInCall || At(rank) != Call::kFinalize) return false;
    }
    return true;
  }

  std::string Key() const {
    std::string key = fmt::format("{} {} {} {}", deaths_, broken_links_, broken_, fmt::join(begun_, " "));
    key += fmt::format("/{}", fmt::join(copied_, " "));
    for (Rank rank : ranks_) {
      key += fmt::format("|{} {} ", static_cast<int>(rank.doing), rank.received);
      key += Encode(rank.state.MakeReport(true));
    }
    return key;
  }

 private:
  Rank Fresh(int rank) const {
    return {RecoveryState(rank, rules_->ranks, rules_->replicas, false), Doing::kWantsToMeet, ""};
  }

  Call At(const Rank& rank) const {
    RecoveryState state = rank.state;
    if (!state.loaded()) return Call::kLoad;
    if (state.version() == rules_->program.versions) return Call::kFinalize;
    const std::uint64_t call = state.calls().completed();
    return call < rules_->program.calls.size() ? rules_->program.calls[call] : Call::kCheckPoint;
  }

  int PlaceOf(const Rank& rank) const {
    RecoveryState state = rank.state;
    return state.version() * static_cast<int>(rules_->program.calls.size() + 1) +
           static_cast<int>(state.calls().completed());
  }

  void Begin(int number) {
    Rank& rank = ranks_[number];
    const Call call = At(rank);
    if (call == Call::kLoad) return rank.state.Load();
    if (const Buffer* result = rank.state.calls().Replay()) {
      EXPECT_EQ(*result->data(), ResultOf(rank.state.version(), rank.state.calls().completed()));
      return rank.state.calls().Step();
    }
    if (call == Call::kCheckPoint) {
      Models models;
      const std::string global = fmt::format("{}", rank.state.version() + 1);
      if (rules_->local_models) {
        models.global = global;
        models.locals[number] = fmt::format("{} of {}", global, number);
      } else {
        models.serialize = [global] { return global; };
      }
      rank.state.BeginEnding(std::move(models));
    }
    begun_[number] = PlaceOf(rank);
    rank.doing = Doing::kInCall;
  }

  bool HasBegun(int number, int place) const { return begun_[number] >= place; }

  bool AllHaveBegun(int place) const {
    return std::all_of(begun_.begin(), begun_.end(), [place](int begun) { return begun >= place; });
  }

  // Whether a rank may receive the copies of local models that it keeps. This is the first part of a
  // checkpoint; in the second, the ranks wait until all have their copies.
  bool MayCopy(int number) const {
    const Rank& rank = ranks_[number];
    return rules_->local_models && rank.doing == Doing::kInCall && At(rank) == Call::kCheckPoint &&
           copied_[number] < PlaceOf(rank) && AllHaveBegun(PlaceOf(rank));
  }

  void Copy(int number) {
    Rank& rank = ranks_[number];
    for (int owner = 0; owner < rules_->ranks; ++owner) {
      if (KeepsLocal(number, rules_->ranks, owner, rules_->replicas.locals)) {
        rank.state.next().locals[owner] = fmt::format("{} of {}", rank.state.version() + 1, owner);
      }
    }
    copied_[number] = PlaceOf(rank);
  }

  // Whether all data that the call needs may have arrived, including data from ranks that have died since.
  bool MayComplete(int number) const {
    const Rank& rank = ranks_[number];
    if (rank.doing != Doing::kInCall) return false;
    const int place = PlaceOf(rank);
    switch (At(rank)) {
      case Call::kBroadcastFromFirst:
        return HasBegun(0, place);
      case Call::kBroadcastFromLast:
        return HasBegun(rules_->ranks - 1, place);
      case Call::kFinalize:
        return false;
      case Call::kCheckPoint:
        if (!rules_->local_models) break;
        return std::all_of(copied_.begin(), copied_.end(), [place](int copied) { return copied >= place; });
      default:
        break;
    }
    return AllHaveBegun(place);
  }

  void Complete(int number) {
    Rank& rank = ranks_[number];
    const Call call = At(rank);
    rank.doing = Doing::kComputes;
    if (call == Call::kCheckPoint) return rank.state.End();
    const std::byte result = ResultOf(rank.state.version(), rank.state.calls().completed());
    rank.state.calls().Append(Buffer(&result, 1), call == Call::kAllreduce ? Meets::kAll : Meets::kNobody,
                              rank.state.stock());
  }

  void Kill(int number) {
    ranks_[number] = Fresh(number);
    broken_ = true;
    ++deaths_;
  }

  bool AllWantToMeet() const {
    for (const Rank& rank : ranks_) {
      if (rank.doing != Doing::kWantsToMeet) return false;
    }
    return true;
  }

  std::vector<Report> Reports() const {
    std::vector<Report> reports;
    const bool any_fresh =
        std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.state.fresh(); });
    for (Rank rank : ranks_) reports.push_back(Decode(Encode(rank.state.MakeReport(any_fresh))));
    return reports;
  }

  void Move(const Transfer& transfer) {
    const auto part = ranks_[transfer.from].state.Part(transfer);
    EXPECT_EQ(part.size(), transfer.bytes);
    ranks_[transfer.to].state.Take(transfer, Buffer(part.data(), part.size()));
    if (ranks_[transfer.to].state.fresh()) {
      ranks_[transfer.to].received += fmt::format("{}:{} ", static_cast<int>(transfer.what), transfer.number);
    }
  }

  void Meet(const Plan& plan) {
    for (Rank& rank : ranks_) rank.state.Follow(plan);
    for (const Transfer& transfer : plan.transfers) Move(transfer);
    for (int number = 0; number < rules_->ranks; ++number) {
      Rank& rank = ranks_[number];
      rank.state.Met();
      rank.received.clear();
      rank.doing = Doing::kComputes;
      begun_[number] = copied_[number] = kNothing;
      if (plan.version == 0) continue;
      if (!rank.state.models().is_gone) {
        EXPECT_EQ(rank.state.models().Global(), fmt::format("{}", plan.version));
      }
      if (rules_->local_models) {
        EXPECT_EQ(rank.state.models().locals.at(number), fmt::format("{} of {}", plan.version, number));
      }
    }
    broken_ = false;
  }

  // Adds the worlds in which a rank dies while the ranks meet: some ranks have followed the plan, and some
  // transfers are done.
  void AddBrokenMeetings(const Plan& plan, std::vector<World>& next) const {
    if (deaths_ == rules_->deaths || rules_->one_at_a_time) return;
    for (int victim = 0; victim < rules_->ranks; ++victim) {
      for (unsigned followed = 0; followed < 1U << rules_->ranks; ++followed) {
        for (std::size_t moved = 0; moved <= plan.transfers.size(); ++moved) {
          World world = *this;
          const auto has_followed = [&](int rank) { return (followed >> rank & 1U) != 0; };
          for (int rank = 0; rank < rules_->ranks; ++rank) {
            if (has_followed(rank)) world.ranks_[rank].state.Follow(plan);
          }
          for (std::size_t i = 0; i < moved; ++i) {
            const Transfer& transfer = plan.transfers[i];
            if (has_followed(transfer.from) && has_followed(transfer.to)) world.Move(transfer);
          }
          // If all ranks have followed the plan and all transfers are done, some ranks (here, those with even
          // numbers) may have completed the meeting before the death.
          for (int rank = 0; rank < rules_->ranks && moved == plan.transfers.size(); ++rank) {
            if (followed != (1U << rules_->ranks) - 1 || rank % 2 != 0) continue;
            world.ranks_[rank].state.Met();
            world.ranks_[rank].received.clear();
          }
          world.Kill(victim);
          next.push_back(std::move(world));
        }
      }
    }
  }

  static constexpr int kNothing = -1;

  const Rules* rules_;
  std::vector<Rank> ranks_;
  // For each rank, since the links were made: the last call that it has begun, and the last checkpoint for
  // which it has received all copies. Both are positions in the program.
  std::vector<int> begun_;
  std::vector<int> copied_;
  int deaths_ = 0;
  int broken_links_ = 0;
  bool broken_ = false;
};

// Explores all worlds that the rules allow. Returns their number.
std::size_t Explore(const Rules& rules) {
  std::unordered_set<std::string> seen;
  std::deque<World> open;
  std::size_t ends = 0;
  const auto visit = [&](World world) {
    if (seen.insert(world.Key()).second) open.push_back(std::move(world));
  };
  visit(World(rules));
  while (!open.empty() && !testing::Test::HasFailure()) {
    const World world = std::move(open.back());
    open.pop_back();
    const std::vector<World> next = world.Next();
    if (world.HasEnded()) ++ends;
    EXPECT_TRUE(world.HasEnded() || !next.empty()) << "stuck: " << world.Key();
    for (const World& follower : next) visit(follower);
  }
  EXPECT_GT(ends, 0U);
  return seen.size();
}

TEST(RecoveryModel, TwoDeathsOfThreeRanksLoseNothing) {
  Rules rules;
  rules.program = {2, {Call::kAllreduce, Call::kBroadcastFromFirst, Call::kAllreduce}};
  const std::size_t worlds = Explore(rules);
  RecordProperty("worlds", static_cast<int>(worlds));
  EXPECT_GT(worlds, 10'000U);
}

TEST(RecoveryModel, LazyCheckpointsNeedNoOldModelOnceItHasChanged) {
  Rules rules;
  rules.local_models = false;
  rules.program = {2, {Call::kAllreduce, Call::kBroadcastFromFirst}};
  EXPECT_GT(Explore(rules), 5'000U);
}

TEST(RecoveryModel, BrokenLinksAreNoLoss) {
  for (const bool local_models : {true, false}) {
    Rules rules;
    rules.deaths = 1;
    rules.broken_links = 2;
    rules.local_models = local_models;
    rules.program = {2, {Call::kAllreduce}};
    EXPECT_GT(Explore(rules), 1'000U);
  }
}

TEST(RecoveryModel, RunsOfBroadcastsLeaveRanksFarBehind) {
  Rules rules;
  rules.program = {1, {Call::kBroadcastFromFirst, Call::kBroadcastFromFirst, Call::kBroadcastFromLast}};
  EXPECT_GT(Explore(rules), 1'000U);
}

TEST(RecoveryModel, CopiesThatDiedWithTheirKeeperAreMadeAgain) {
  Rules rules;
  rules.replicas = {2, 2};
  rules.deaths = 3;
  rules.one_at_a_time = true;
  rules.program = {2, {Call::kAllreduce}};
  EXPECT_GT(Explore(rules), 1'000U);
}

TEST(RecoveryModel, OneDeathIsHealedWhereTwoKeepEachResult) {
  Rules rules;
  rules.ranks = 4;
  rules.deaths = 1;
  rules.replicas = {2, 2};
  rules.program = {1,
                   {Call::kBroadcastFromFirst, Call::kAllreduce, Call::kBroadcastFromLast, Call::kAllreduce}};
  EXPECT_GT(Explore(rules), 10'000U);
}

}  // namespace
}  // namespace warren::recovery
