// Programs of collectives on communicators of every shape, made from a seed: each rank runs the same program
// and compares what it gets with what a plain computation over all members' inputs gives. Nothing is left
// out: every collective, roots, counts of zero and ragged ones, splits of splits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "rabit_engine/base/communicator.h"
#include "rabit_engine/base/slices.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::testing {

/// How many there are of each kind: some, or as many as WARREN_RANDOM_PROGRAMS says (scripts/nightly).
inline std::uint64_t NumPrograms(std::uint64_t some) {
  const char* wanted = std::getenv("WARREN_RANDOM_PROGRAMS");
  return wanted == nullptr ? some : std::strtoull(wanted, nullptr, 10);
}

class RandomProgram {
 public:
  /// `any_order`: the communicator does not say in which order it adds up floats.
  RandomProgram(std::uint64_t seed, Communicator& world, bool any_order = false)
      : random_(seed), seed_(seed), any_order_(any_order) {
    std::vector<int> all(static_cast<std::size_t>(world.world_size()));
    std::iota(all.begin(), all.end(), 0);
    world_rank_ = world.rank();
    groups_.push_back({all, &world, nullptr});
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      step_ = step;
      Group& group = groups_[Draw(groups_.size())];
      switch (Draw(12)) {
        case 0:
          Split(group);
          break;
        case 1:
          Free();
          break;
        case 2:
          Allreduce(group);
          break;
        case 3:
          Reduce(group);
          break;
        case 4:
          ReduceScatter(group);
          break;
        case 5:
          Broadcast(group);
          break;
        case 6:
          Allgather(group);
          break;
        case 7:
          Gather(group);
          break;
        case 8:
          Scatter(group);
          break;
        case 9:
          AllToAll(group);
          break;
        case 10:
          SendReceive(group);
          break;
        default:
          if (group.communicator != nullptr) group.communicator->Barrier();
      }
    }
  }

 private:
  using Bytes = std::vector<std::uint8_t>;
  struct Group {
    std::vector<int> members;  // ranks of the world
    Communicator* communicator = nullptr;
    std::unique_ptr<Communicator> owned;
    int size() const { return static_cast<int>(members.size()); }
  };

  std::size_t Draw(std::size_t below) { return random_() % below; }
  std::size_t DrawCount() {
    switch (Draw(8)) {
      case 0:
        return 0;
      case 1:
        return Draw(40'000);
      case 2:
        return Draw(4) == 0 ? Draw(300'000) : 1;
      default:
        return Draw(300);
    }
  }
  std::vector<std::size_t> DrawCounts(const Group& group) {
    std::vector<std::size_t> counts;
    for (int i = 0; i < group.size(); ++i) counts.push_back(Draw(3) == 0 ? 0 : DrawCount());
    return counts;
  }
  static std::vector<std::size_t> OffsetsOf(const std::vector<std::size_t>& counts, std::size_t unit = 1) {
    std::vector<std::size_t> offsets{0};
    for (const std::size_t count : counts) offsets.push_back(offsets.back() + count * unit);
    return offsets;
  }

  /// What a rank brings in this step. Any bytes are floats, too; those that are none, or infinite, are not
  /// among them.
  Bytes Input(int rank, std::size_t bytes, int what = 0) const {
    std::uint64_t state = seed_ * 7919 + static_cast<std::uint64_t>(step_) * 104729 +
                          static_cast<std::uint64_t>(rank) * 613 + static_cast<std::uint64_t>(what) * 17 + 1;
    Bytes input((bytes + 7) / 8 * 8);
    for (std::size_t at = 0; at < input.size(); at += 8) {
      state = state * 6364136223846793005 + 1442695040888963407;  // Knuth's, of MMIX
      const std::uint64_t word = (state ^ state >> 29) & 0xbfbf'bfbf'bfbf'bfbf;
      std::memcpy(input.data() + at, &word, sizeof(word));
    }
    input.resize(bytes);
    return input;
  }

  struct Kind {
    DataType type;
    Operation operation;
  };
  Kind DrawKind() {
    constexpr Kind kKinds[] = {{DataType::kFloat, Operation::kSum},   {DataType::kDouble, Operation::kSum},
                               {DataType::kFloat16, Operation::kSum}, {DataType::kBFloat16, Operation::kMax},
                               {DataType::kInt, Operation::kSum},     {DataType::kUChar, Operation::kBitOr},
                               {DataType::kLong, Operation::kMin},    {DataType::kUInt, Operation::kBitXor}};
    const Kind drawn = kKinds[Draw(std::size(kKinds))];
    const bool is_sum_of_floats = drawn.operation == Operation::kSum && drawn.type != DataType::kInt;
    return any_order_ && is_sum_of_floats ? Kind{DataType::kLong, Operation::kSum} : drawn;
  }
  /// The engine's order is that of one CombineAll over the members.
  Bytes Reduced(const Group& group, const Reduction& reduction, std::size_t count) const {
    std::vector<Bytes> inputs;
    std::vector<const void*> pointers;
    for (const int member : group.members) inputs.push_back(Input(member, count * reduction.element_bytes()));
    for (const Bytes& input : inputs) pointers.push_back(input.data());
    Bytes result(count * reduction.element_bytes());
    reduction.CombineAll(result.data(), pointers, count);
    return result;
  }
  void ExpectSame(const Bytes& expected, const Bytes& got, const char* what) const {
    EXPECT_TRUE(expected == got) << what << ", step " << step_ << " of program " << seed_ << ", rank "
                                 << world_rank_ << ", " << expected.size() << " bytes";
  }
  static Bytes Part(const Bytes& all, std::size_t begin, std::size_t end) {
    return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  void Split(Group& group) {
    if (groups_.size() >= kMostGroups) return;
    const int colors = 1 + static_cast<int>(Draw(3));
    std::vector<std::pair<int, int>> wishes;  // color and key of each member
    for (int i = 0; i < group.size(); ++i) {
      wishes.emplace_back(static_cast<int>(Draw(colors + 1)) - 1, static_cast<int>(Draw(4)));
    }
    std::unique_ptr<Communicator> own;
    const auto me =
        std::find(group.members.begin(), group.members.end(), world_rank_) - group.members.begin();
    if (group.communicator != nullptr) own = group.communicator->Split(wishes[me].first, wishes[me].second);
    const Group parent{group.members, nullptr, nullptr};  // `group` moves when others are added
    for (int color = 0; color < colors; ++color) {
      std::vector<int> order;
      for (int i = 0; i < parent.size(); ++i) {
        if (wishes[i].first == color) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](int a, int b) { return wishes[a].second < wishes[b].second; });
      if (order.empty()) continue;
      Group made;
      for (const int index : order) made.members.push_back(parent.members[index]);
      const auto place = std::find(made.members.begin(), made.members.end(), world_rank_);
      if (place != made.members.end()) {
        ASSERT_NE(own, nullptr);
        EXPECT_EQ(own->world_size(), made.size());
        EXPECT_EQ(own->rank(), place - made.members.begin());
        for (int i = 0; i < made.size(); ++i) EXPECT_EQ(own->rank_in_job(i), made.members[i]);
        made.owned = std::move(own);
        made.communicator = made.owned.get();
      }
      groups_.push_back(std::move(made));
    }
    EXPECT_EQ(own, nullptr);
  }

  void Free() {
    if (groups_.size() < 2) return;
    groups_.erase(groups_.begin() + 1 + static_cast<std::ptrdiff_t>(Draw(groups_.size() - 1)));
  }

  void Allreduce(Group& group) {
    const Kind kind = DrawKind();
    const std::size_t count = DrawCount();
    if (group.communicator == nullptr) return;
    const Reduction reduction = Reduction::Typed(kind.type, kind.operation);
    Bytes buffer = Input(world_rank_, count * reduction.element_bytes());
    group.communicator->Allreduce(buffer.data(), count, reduction);
    ExpectSame(Reduced(group, reduction, count), buffer, "allreduce");
  }

  void Reduce(Group& group) {
    const Kind kind = DrawKind();
    const std::size_t count = DrawCount();
    const int root = static_cast<int>(Draw(group.size()));
    if (group.communicator == nullptr) return;
    const Reduction reduction = Reduction::Typed(kind.type, kind.operation);
    Bytes buffer = Input(world_rank_, count * reduction.element_bytes());
    group.communicator->Reduce(buffer.data(), count, reduction, root);
    if (group.communicator->rank() == root) ExpectSame(Reduced(group, reduction, count), buffer, "reduce");
  }

  void ReduceScatter(Group& group) {
    const Kind kind = DrawKind();
    const std::vector<std::size_t> offsets = OffsetsOf(DrawCounts(group));
    if (group.communicator == nullptr) return;
    const Reduction reduction = Reduction::Typed(kind.type, kind.operation);
    Bytes buffer = Input(world_rank_, offsets.back() * reduction.element_bytes());
    group.communicator->ReduceScatter(buffer.data(), offsets, reduction);
    const std::size_t begin = offsets[group.communicator->rank()] * reduction.element_bytes();
    const std::size_t end = offsets[group.communicator->rank() + 1] * reduction.element_bytes();
    ExpectSame(Part(Reduced(group, reduction, offsets.back()), begin, end), Part(buffer, begin, end),
               "reduce-scatter");
  }

  void Broadcast(Group& group) {
    const std::size_t bytes = DrawCount();
    const int root = static_cast<int>(Draw(group.size()));
    if (group.communicator == nullptr) return;
    Bytes buffer = Input(world_rank_, bytes);
    group.communicator->Broadcast(buffer.data(), bytes, root);
    ExpectSame(Input(group.members[root], bytes), buffer, "broadcast");
  }

  void Allgather(Group& group) {
    const std::vector<std::size_t> counts = DrawCounts(group);
    if (group.communicator == nullptr) return;
    ExpectSame(Joined(group, counts),
               Gathered(group, counts,
                        [&](Bytes& all, const auto& offsets) {
                          group.communicator->Allgather(all.data(), offsets);
                        }),
               "allgather");
  }

  /// All members' inputs of these lengths.
  Bytes Joined(const Group& group, const std::vector<std::size_t>& counts) const {
    Bytes all;
    for (int i = 0; i < group.size(); ++i) {
      const Bytes input = Input(group.members[i], counts[i]);
      all.insert(all.end(), input.begin(), input.end());
    }
    return all;
  }
  template <typename Run>
  Bytes Gathered(const Group& group, const std::vector<std::size_t>& counts, Run&& run) const {
    const std::vector<std::size_t> offsets = OffsetsOf(counts);
    Bytes all(offsets.back());
    const int me = group.communicator->rank();
    const Bytes own = Input(world_rank_, counts[me]);
    std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(offsets[me]));
    run(all, offsets);
    return all;
  }

  void Gather(Group& group) {
    const std::vector<std::size_t> counts = DrawCounts(group);
    const int root = static_cast<int>(Draw(group.size()));
    if (group.communicator == nullptr) return;
    const int me = group.communicator->rank();
    const Bytes own = Input(world_rank_, counts[me]);
    const std::vector<std::size_t> offsets = me == root ? OffsetsOf(counts) : std::vector<std::size_t>();
    Bytes all(me == root ? offsets.back() : 0);
    group.communicator->Gather(own.data(), own.size(), all.data(), offsets, root);
    if (me == root) ExpectSame(Joined(group, counts), all, "gather");
  }

  void Scatter(Group& group) {
    const std::vector<std::size_t> counts = DrawCounts(group);
    const int root = static_cast<int>(Draw(group.size()));
    if (group.communicator == nullptr) return;
    const int me = group.communicator->rank();
    const std::vector<std::size_t> offsets = OffsetsOf(counts);
    const Bytes all = Input(group.members[root], offsets.back());
    Bytes own(counts[me]);
    if (me == root) {
      group.communicator->Scatter(all.data(), offsets, own.data(), own.size(), root);
    } else {
      group.communicator->Scatter(nullptr, {}, own.data(), own.size(), root);
    }
    ExpectSame(Part(all, offsets[me], offsets[me + 1]), own, "scatter");
  }

  void AllToAll(Group& group) {
    std::vector<std::vector<std::size_t>> counts;  // [from][to]
    for (int i = 0; i < group.size(); ++i) counts.push_back(DrawCounts(group));
    if (group.communicator == nullptr) return;
    const int me = group.communicator->rank();
    std::vector<std::size_t> in;
    Bytes expected;
    for (int from = 0; from < group.size(); ++from) {
      in.push_back(counts[from][me]);
      const std::vector<std::size_t> offsets = OffsetsOf(counts[from]);
      const Bytes part = Part(Input(group.members[from], offsets.back()), offsets[me], offsets[me + 1]);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    const std::vector<std::size_t> sent = OffsetsOf(counts[me]);
    const std::vector<std::size_t> received = OffsetsOf(in);
    const Bytes from = Input(world_rank_, sent.back());
    Bytes to(received.back());
    group.communicator->AllToAll(from.data(), sent, to.data(), received);
    ExpectSame(expected, to, "all-to-all");
  }

  /// Everybody sends to some, himself at times, and receives what is for him.
  void SendReceive(Group& group) {
    struct Message {
      int from;
      int to;
      std::size_t bytes;
    };
    std::vector<Message> messages;
    for (std::size_t i = Draw(2 * group.size() + 1); i > 0; --i) {
      messages.push_back(
          {static_cast<int>(Draw(group.size())), static_cast<int>(Draw(group.size())), DrawCount()});
    }
    if (group.communicator == nullptr) return;
    const int me = group.communicator->rank();
    std::vector<Bytes> contents(messages.size());
    std::vector<Outbound> sends;
    std::vector<Inbound> receives;
    std::vector<Bytes> got(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      contents[i] = Input(group.members[messages[i].from], messages[i].bytes, static_cast<int>(i));
      got[i].resize(messages[i].bytes);
      if (messages[i].from == me) sends.push_back({messages[i].to, contents[i].data(), contents[i].size()});
      if (messages[i].to == me) receives.push_back({messages[i].from, got[i].data(), got[i].size()});
    }
    group.communicator->SendReceive(sends, receives);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].to == me) ExpectSame(contents[i], got[i], "message");
    }
  }

  static constexpr std::size_t kMostGroups = 12;

  std::mt19937_64 random_;
  std::uint64_t seed_;
  bool any_order_;
  int world_rank_ = 0;
  int step_ = 0;
  std::vector<Group> groups_;
};

}  // namespace warren::testing
