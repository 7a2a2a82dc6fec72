// The collectives within one host. The members are threads that share one mapping, so that the thread
// sanitizer can check them. tests/rabit_engine/matrix tests bits, types and processes.
#include "rabit_engine/host/host_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "tests/rabit_engine/host/shm_members.h"

namespace warren::collective {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::size_t kSmall = 100;
/// Slightly more elements than six entries hold, so that reductions and broadcasts take at least seven
/// rounds, and each rank's four entries are reused.
constexpr std::size_t kLarge = 6 * kEntryBytes / sizeof(std::int64_t) + 11;

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

void OnMembers(int size, const std::function<void(Caller&)>& calls) {
  Members members(size);
  members.OnAll([&](int local) {
    Caller caller(members[local]);
    try {
      calls(caller);
    } catch (const EngineError&) {
      members[local].Abort(Members::RankOf(local));
      throw;
    }
    caller.Barrier();  // no member leaves while another is in a call
  });
}

TEST(HostCollectives, EachOfThemSmallAndLarge) {
  for (const int size : {2, 3, 5}) {
    OnMembers(size, [size](Caller& caller) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kSmall, kLarge}) {
        caller.Allreduce(count);
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
  // The buffers of all members together: large enough to be copied past the caches. The 3 extra values keep
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
  // The root of a broadcast waits for no member, and in a reduce only the root waits. Slots and entries must
  // still not be reused before all members have read them.
  OnMembers(4, [](Caller& caller) {
    for (int turn = 0; turn < 200; ++turn) caller.Broadcast(kSmall, 0);
    for (int turn = 0; turn < 200; ++turn) caller.Reduce(kSmall, 1);
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

TEST(HostCollectives, MembersThatCallDifferentThingsAreToldBoth) {
  Members members(2);
  std::vector<std::string> told(2);
  members.OnAll([&](int local) {
    Caller caller(members[local]);
    caller.Barrier();
    try {
      local == 0 ? caller.Allreduce(kSmall) : caller.Allgather(kSmall);
    } catch (const EngineError& error) {
      told[local] = error.what();
      members[local].Abort(Members::RankOf(local));
    }
  });
  EXPECT_THAT(told, Each(Not(IsEmpty())));
  EXPECT_THAT(told, Contains(AllOf(HasSubstr("calls allreduce"), HasSubstr("calls allgather"))));
}

}  // namespace
}  // namespace warren::collective
