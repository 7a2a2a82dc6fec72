// The collectives within one host. The members are threads that share one mapping, so that the thread
// sanitizer can check them. tests/rabit_engine/matrix tests bits, types and processes.
#include "rabit_engine/host/host_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "tests/rabit_engine/host/shm_members.h"
#include "tests/random_cases.h"

namespace warren::collective {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::size_t kSmall = 100;
/// Elements of a payload that is too large for a slot but is not sent in rounds.
constexpr std::size_t kStaged = 1000;
/// Slightly more elements than six rounds hold, so that reductions and broadcasts take at least seven
/// rounds, and each stage is reused.
constexpr std::size_t kLarge = 6 * kMostRoundBytes / sizeof(std::int64_t) + 11;

std::int64_t ValueOf(int local, std::size_t i, int turn) {
  return static_cast<std::int64_t>(i) * (local + 1) + 1000 * turn;
}

std::vector<std::int64_t> Fill(int local, std::size_t count, int turn) {
  std::vector<std::int64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = ValueOf(local, i, turn);
  return values;
}

std::int64_t SumOf(int size, std::size_t i, int turn) {
  std::int64_t sum = 0;
  for (int local = 0; local < size; ++local) sum += ValueOf(local, i, turn);
  return sum;
}

std::vector<std::size_t> Offsets(std::size_t count, int size, std::size_t unit) {
  std::vector<std::size_t> offsets;
  for (int local = 0; local <= size; ++local) {
    offsets.push_back(count * static_cast<std::size_t>(local) / static_cast<std::size_t>(size) * unit);
  }
  return offsets;
}

/// One member, which makes calls and checks their results.
class Caller {
 public:
  explicit Caller(HostSegment& segment)
      : host_(segment), me_(segment.local_index()), size_(segment.local_size()) {}

  void Allreduce(std::size_t count) {
    std::vector<std::int64_t> values = Fill(me_, count, ++turn_);
    host_.Allreduce(Tag(Collective::kAllreduce, count), values.data(), count, sum_);
    for (std::size_t i = 0; i < count; ++i) Require(values[i] == SumOf(size_, i, turn_), "allreduce", i);
  }
  void Reduce(std::size_t count, int root) {
    std::vector<std::int64_t> values = Fill(me_, count, ++turn_);
    host_.Reduce(Tag(Collective::kReduce, count, root), values.data(), count, sum_, root);
    for (std::size_t i = 0; i < count && me_ == root; ++i)
      Require(values[i] == SumOf(size_, i, turn_), "reduce", i);
  }
  void ReduceScatter(std::size_t count) {
    std::vector<std::int64_t> values = Fill(me_, count, ++turn_);
    const std::vector<std::size_t> offsets = Offsets(count, size_, 1);
    host_.ReduceScatter(Tag(Collective::kReduceScatter, count), values.data(), offsets, sum_);
    for (std::size_t i = offsets[me_]; i < offsets[me_ + 1]; ++i)
      Require(values[i] == SumOf(size_, i, turn_), "reduce-scatter", i);
  }
  /// Reduces the subtrees {0}, {1, 2} and the rest separately (if there are at most 3 members, only {0} and
  /// the rest). With `slices`, each member gets its slice of every sum; otherwise member 0 gets the whole
  /// sums.
  void ReduceScatterSubtrees(std::size_t count, bool slices) {
    const std::vector<std::int64_t> values = Fill(me_, count, ++turn_);
    const std::vector<int> ends = size_ > 3 ? std::vector<int>{1, 3, size_} : std::vector<int>{1, size_};
    std::vector<std::size_t> offsets = Offsets(count, size_, 1);
    if (!slices) std::fill(offsets.begin() + 1, offsets.end(), count);
    const std::size_t own = offsets[me_ + 1] - offsets[me_];
    std::vector<std::int64_t> sums(own * ends.size());
    host_.ReduceScatterSubtrees(Tag(Collective::kReduceScatter, count), values.data(), offsets, sum_, ends,
                                sums.data());
    int begin = 0;
    for (std::size_t group = 0; group < ends.size(); begin = ends[group++]) {
      for (std::size_t i = 0; i < own; ++i) {
        std::int64_t expected = 0;
        for (int local = begin; local < ends[group]; ++local)
          expected += ValueOf(local, offsets[me_] + i, turn_);
        Require(sums[group * own + i] == expected, "reduce-scatter of subtrees", i);
      }
    }
    Require(values == Fill(me_, count, turn_), "input of reduce-scatter of subtrees", 0);
  }
  void Broadcast(std::size_t count, int root) {
    std::vector<std::int64_t> values = Fill(me_, count, ++turn_);
    host_.Broadcast(Tag(Collective::kBroadcast, count, root), values.data(), count * sizeof values[0], root);
    for (std::size_t i = 0; i < count; ++i) Require(values[i] == ValueOf(root, i, turn_), "broadcast", i);
  }
  void Allgather(std::size_t count) {
    std::vector<std::int64_t> values = Fill(me_, count, ++turn_);
    const std::vector<std::size_t> offsets = Offsets(count, size_, sizeof values[0]);
    host_.Allgather(Tag(Collective::kAllgather, count), values.data(), offsets);
    for (int local = 0; local < size_; ++local) {
      for (std::size_t i = offsets[local] / sizeof values[0]; i < offsets[local + 1] / sizeof values[0]; ++i)
        Require(values[i] == ValueOf(local, i, turn_), "allgather", i);
    }
  }
  /// Sends count * (i + 1) / size elements to each member i, so that some slices may be empty.
  void AllToAll(std::size_t count) {
    const std::vector<std::int64_t> values = Fill(me_, count * static_cast<std::size_t>(size_), ++turn_);
    std::vector<std::size_t> sent{0};
    std::vector<std::size_t> received{0};
    const std::size_t own = count * static_cast<std::size_t>(me_ + 1) / static_cast<std::size_t>(size_);
    for (int local = 0; local < size_; ++local) {
      const std::size_t theirs =
          count * static_cast<std::size_t>(local + 1) / static_cast<std::size_t>(size_);
      sent.push_back(sent.back() + theirs * sizeof values[0]);
      received.push_back(received.back() + own * sizeof values[0]);
    }
    std::vector<std::int64_t> got(own * static_cast<std::size_t>(size_));
    host_.AllToAll(Tag(Collective::kAllToAll, 0), values.data(), sent, got.data(), received);
    const std::size_t begin = sent[me_] / sizeof values[0];
    for (std::size_t i = 0; i < got.size(); ++i)
      Require(got[i] == ValueOf(static_cast<int>(i / own), begin + i % own, turn_), "all-to-all", i);
  }
  void Barrier() { host_.Barrier(Tag(Collective::kBarrier, 0)); }

 private:
  CallTag Tag(Collective collective, std::size_t count, int root = 0) {
    CallTag tag;
    tag.sequence = ++calls_;
    tag.collective = collective;
    tag.count = count;
    tag.root = root;
    return tag;
  }
  void Require(bool good, const char* what, std::size_t i) const {
    if (!good) {
      throw EngineError(std::string(what) + ", member " + std::to_string(me_) + ", call " +
                        std::to_string(calls_) + ": element " + std::to_string(i) + " is wrong");
    }
  }

  HostCollectives host_;
  const int me_;
  const int size_;
  const Reduction sum_ = Reduction::Typed(DataType::kLong, ReduceOp::kSum);
  std::uint32_t calls_ = 0;
  int turn_ = 0;
};

void OnMembers(int size, const std::function<void(Caller&)>& calls,
               const HostCores& cores = Members::kSmallCaches, bool are_far = false) {
  Members members(size, cores);
  members.OnAll([&](int local) {
    for (int other = 0; other < size; ++other) members[local].lines(local).far[other].store(are_far ? 1 : 0);
    Caller caller(members[local]);
    try {
      calls(caller);
    } catch (const EngineError&) {
      members[local].Abort(Members::RankOf(local));
      throw;
    }
    caller.Barrier();  // no member leaves while another is in a call
    // No collective may write to the rings, which follow the stages in memory.
    const std::byte* const ring = members[local].ring_bytes(0, 0);
    EXPECT_EQ(members[local].ring(0, 0).written.load(), 0U);
    EXPECT_TRUE(std::all_of(ring, ring + members[local].ring_capacity(),
                            [](std::byte b) { return b == std::byte{0}; }));
  });
}

TEST(HostCollectives, EachOfThemSmallAndLarge) {
  for (const int size : {2, 3, 5}) {
    OnMembers(size, [size](Caller& caller) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kSmall, kStaged, kLarge}) {
        caller.Allreduce(count);
        caller.AllToAll(count);
        caller.ReduceScatter(count);
        caller.Allgather(count);
        caller.ReduceScatterSubtrees(count, true);
        caller.ReduceScatterSubtrees(count, false);
        for (int root = 0; root < size; ++root) caller.Reduce(count, root);
        for (int root = 0; root < size; ++root) caller.Broadcast(count, root);
      }
    });
  }
}

TEST(HostCollectives, VectorsThatNoCacheHolds) {
  // The buffers of all members together are large enough for non-temporal stores. The 3 extra values keep
  // buffers from ending at a cache line boundary.
  constexpr std::size_t kBytes = std::size_t{80} << 20;
  for (const int size : {2, 4}) {
    OnMembers(size, [size](Caller& caller) {
      const std::size_t count = kBytes / sizeof(std::int64_t) / static_cast<std::size_t>(size) + 3;
      caller.Allreduce(count);
      caller.Allgather(count);
      caller.Broadcast(count, 1);
    });
  }
}

TEST(HostCollectives, AMemberThatNeedsNobodyDoesNotRunAway) {
  // The root of a broadcast waits for no member, and in a reduce only the root waits. Even so, slots and
  // stages must not be reused before all members have read them.
  OnMembers(4, [](Caller& caller) {
    for (int turn = 0; turn < 200; ++turn) caller.Broadcast(kSmall, 0);
    for (int turn = 0; turn < 200; ++turn) caller.Reduce(kSmall, 1);
    for (int turn = 0; turn < 400; ++turn) caller.Broadcast(kStaged, 0);
    for (int turn = 0; turn < 400; ++turn) caller.Reduce(kStaged, 1);
    for (int turn = 0; turn < 6; ++turn) caller.Broadcast(kLarge, 2);
    for (int turn = 0; turn < 6; ++turn) caller.Reduce(kLarge, 3);
    for (int turn = 0; turn < 4; ++turn) caller.Allgather(kLarge);
    for (int turn = 0; turn < 200; ++turn) caller.Broadcast(kSmall, turn % 4);
  });
}

TEST(HostCollectives, SmallAndLargeInTurn) {
  OnMembers(3, [](Caller& caller) {
    for (int turn = 0; turn < 20; ++turn) {
      caller.Allreduce(kSmall);
      caller.Broadcast(kLarge / 4, turn % 3);
      caller.Reduce(kSmall, (turn + 1) % 3);
      caller.Allreduce(kLarge / 4);
      caller.Barrier();
      caller.ReduceScatter(kSmall);
    }
  });
}

/// Makes a random call of a random size; equal generators choose equal calls.
void CallSomething(Caller& caller, int size, std::mt19937& random) {
  constexpr std::array<std::size_t, 4> kMost{200, 2'100, 20'000, 200'000};
  const std::size_t count = random() % kMost[random() % kMost.size()];
  const int root = static_cast<int>(random() % static_cast<unsigned>(size));
  switch (random() % 7) {
    case 0:
      return caller.Allreduce(count);
    case 1:
      return caller.ReduceScatter(count);
    case 2:
      return caller.ReduceScatterSubtrees(count, root % 2 == 0);
    case 3:
      return caller.Reduce(count, root);
    case 4:
      return caller.Broadcast(count, root);
    case 5:
      return caller.Allgather(count);
    default:
      return caller.AllToAll(count / static_cast<std::size_t>(size));
  }
}

TEST(HostCollectives, RandomCallsOnEveryKindOfHost) {
  const HostCores large_caches{.cache_bytes = std::size_t{2} << 20};
  const HostCores crowded{.is_crowded = true};
  for (const HostCores& cores : {Members::kSmallCaches, large_caches, crowded}) {
    for (const int size : {2, 3, 4, 9}) {
      for (const bool are_far : {false, true}) {
        OnMembers(
            size,
            [size](Caller& caller) {
              std::mt19937 random(static_cast<unsigned>(size));
              for (unsigned turn = 0; turn < RandomCases(60); ++turn) CallSomething(caller, size, random);
            },
            cores, are_far);
      }
    }
  }
}

TEST(HostCores, StagesAreLargerThanTheCachesOfTwoCoresIfThereIsRoom) {
  for (const std::size_t cache : {std::size_t{256} << 10, std::size_t{1} << 20, std::size_t{2} << 20}) {
    const HostCores cores{.cache_bytes = cache};
    EXPECT_GT(cores.StageBytes(2), 2 * cache);
    for (std::size_t ranks = 1; ranks <= kMaxLocalRanks; ++ranks) {
      const std::size_t bytes = cores.StageBytes(ranks);
      EXPECT_GE(bytes, 4 * kMostRoundBytes) << ranks;
      EXPECT_EQ(bytes % kCacheLine, 0U) << ranks;
      EXPECT_LE(bytes * ranks, std::max(8 * cache, ranks * kLeastStageBytes)) << ranks;
      EXPECT_EQ((HostCores{cache, true}.StageBytes(ranks)), kLeastStageBytes) << ranks;
    }
  }
}

/// Makes the call on two members. Returns each member's error, or an empty string if it has none.
std::vector<std::string> ErrorsOfTwo(const std::function<void(int local, Caller& caller)>& call) {
  Members members(2);
  std::vector<std::string> told(2);
  members.OnAll([&](int local) {
    Caller caller(members[local]);
    caller.Barrier();
    try {
      call(local, caller);
    } catch (const EngineError& error) {
      told[local] = error.what();
      members[local].Abort(Members::RankOf(local));
    }
  });
  return told;
}

TEST(HostCollectives, MembersThatCallDifferentThingsAreToldBoth) {
  const std::vector<std::string> told = ErrorsOfTwo(
      [](int local, Caller& caller) { local == 0 ? caller.Allreduce(kSmall) : caller.Allgather(kSmall); });
  EXPECT_THAT(told, Each(Not(IsEmpty())));
  EXPECT_THAT(told, Contains(AllOf(HasSubstr("calls allreduce"), HasSubstr("calls allgather"))));
}

TEST(HostCollectives, MembersWhoseLargeCallsDifferInLengthAreToldBoth) {
  // In the stages, the data of the shorter call ends before the data of the longer call.
  for (const std::size_t other : {kLarge / 40, kLarge / 2}) {
    const std::vector<std::string> told = ErrorsOfTwo([other](int local, Caller& caller) {
      caller.Broadcast(local == 0 ? kLarge : other, 1);
      caller.Barrier();
    });
    EXPECT_THAT(told[0], AllOf(HasSubstr("calls broadcast"), HasSubstr(std::to_string(other)))) << other;
  }
}

TEST(HostCollectives, EitherOfTwoMembersMayMeasureTheirDistance) {
  Members members(2);
  EXPECT_EQ(members[0].ReaderAt(1), Reader::kNear);
  for (int i = 0; i < 10; ++i) members[0].NoteRead(1, 300);
  EXPECT_EQ(members[0].ReaderAt(1), Reader::kFar);
  EXPECT_EQ(members[1].ReaderAt(0), Reader::kFar);
}

}  // namespace
}  // namespace warren::collective
