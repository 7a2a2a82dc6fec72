// Programs of collectives on communicators of every shape, generated from a seed. Each rank runs the same
// program and compares its results with a simple computation over all members' inputs. The programs cover
// every collective, random roots, counts of zero, uneven counts, and splits of splits. If the communicator
// supports asynchronous calls, each rank makes some of its calls asynchronously, at random: several calls are
// under way in one communicator, even in a freed one, and their ends are observed in any order and in all the
// ways that enum Seen lists.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/call/communicator.h"
#include "rabit_engine/call/slices.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::testing {

/// The number of programs that a test runs: `some`, unless WARREN_RANDOM_PROGRAMS sets another number
/// (scripts/nightly).
inline std::uint64_t NumPrograms(std::uint64_t some) {
  const char* wanted = std::getenv("WARREN_RANDOM_PROGRAMS");
  return wanted == nullptr ? some : std::strtoull(wanted, nullptr, 10);
}

/// An asynchronous call. The call is carried out even if this object is destroyed before the call ends.
class BegunCall {
 public:
  virtual ~BegunCall() = default;
  virtual bool Test() = 0;
  /// Waits until the call has ended. Throws its error. No other function may be called after this one.
  virtual void Wait() = 0;
  /// Arranges for `function` to be called exactly once, after the call has ended, with the error or null.
  virtual void WhenDone(std::function<void(const char* error)> function) = 0;
};

/// A communicator with asynchronous calls.
class BeginningCommunicator : public Communicator {
 public:
  /// Runs `make`, whose calls on this communicator do not wait. Returns these calls in order.
  virtual std::vector<std::unique_ptr<BegunCall>> Begin(const std::function<void()>& make) = 0;
};

class RandomProgram {
 public:
  /// `any_order`: the communicator may add floats in any order. The inputs of float sums are then small
  /// integers, so that every order gives the same sum.
  RandomProgram(std::uint64_t seed, Communicator& world, bool any_order = false)
      : random_(seed), seed_(seed), any_order_(any_order) {
    std::vector<int> all(static_cast<std::size_t>(world.world_size()));
    std::iota(all.begin(), all.end(), 0);
    world_rank_ = world.rank();
    begins_ = dynamic_cast<BeginningCommunicator*>(&world) != nullptr;
    own_random_.seed(seed * 1000 + static_cast<std::uint64_t>(world_rank_));
    groups_.push_back({all, &world, nullptr, next_group_++});
  }
  ~RandomProgram() {
    // After an error, calls under way still need their buffers.
    while (!pending_.empty()) {
      try {
        Settle(pending_.begin());
      } catch (const std::exception&) {
        // Only the first error is reported.
      }
    }
  }
  RandomProgram(const RandomProgram&) = delete;
  RandomProgram& operator=(const RandomProgram&) = delete;

  void Run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      step_ = step;
      Group& group = groups_[Draw(groups_.size())];
      using Step = void (RandomProgram::*)(Group&);
      constexpr Step kSteps[] = {
          &RandomProgram::Split,     &RandomProgram::Free,          &RandomProgram::Allreduce,
          &RandomProgram::Reduce,    &RandomProgram::ReduceScatter, &RandomProgram::Broadcast,
          &RandomProgram::Allgather, &RandomProgram::Gather,        &RandomProgram::Scatter,
          &RandomProgram::AllToAll,  &RandomProgram::SendReceive,   &RandomProgram::Barrier};
      (this->*kSteps[Draw(std::size(kSteps))])(group);
      if (pending_.size() > kMostPending || (!pending_.empty() && DrawOwn(4) == 0)) SettleAny();
    }
    while (!pending_.empty()) SettleAny();
  }

  /// A digest of all results of this rank. It does not depend on the order in which the calls end.
  std::uint64_t digest() const { return digest_; }

 private:
  using Bytes = std::vector<std::uint8_t>;
  struct Group {
    std::vector<int> members;  // ranks of the world
    Communicator* communicator = nullptr;
    std::unique_ptr<Communicator> owned;
    int id = 0;
    int size() const { return static_cast<int>(members.size()); }
  };

  using Buffer = std::shared_ptr<Bytes>;  // kept until its call has ended

  /// The expected contents of a buffer after its call.
  struct Result {
    const char* what;
    Bytes expected;
    Buffer buffer;
    std::size_t begin = 0;  // offset in the buffer
  };
  /// The way in which the end of an asynchronous call is observed.
  enum class Seen { kByWaiting, kByTesting, kByFunction, kBehindAnother };
  struct Ends {
    std::atomic<int> well{0};
    std::atomic<int> with_error{0};
  };
  struct Pending {
    int step;
    int group;
    Seen seen;
    std::vector<std::unique_ptr<BegunCall>> calls;
    std::size_t num_calls;
    std::shared_ptr<Ends> ends;
    std::vector<Result> results;
    std::vector<Buffer> sent;
  };

  /// Makes the calls of a step with `make`, then waits for them or leaves them under way. `sent`: other
  /// buffers that the calls use.
  template <typename Calls>
  void Make(Group& group, std::vector<Result> results, Calls&& make, std::vector<Buffer> sent = {}) {
    if (!begins_ || DrawOwn(2) == 0) {
      make();
      for (const Result& result : results) ExpectSame(result, step_);
      SettleBehind(group.id);
      return;
    }
    Pending pending{step_, group.id, static_cast<Seen>(DrawOwn(4)), {}, 0, nullptr, {}, std::move(sent)};
    pending.results = std::move(results);
    pending.calls = static_cast<BeginningCommunicator&>(*group.communicator).Begin(make);
    pending.num_calls = pending.calls.size();
    if (pending.seen == Seen::kByFunction) {
      pending.ends = std::make_shared<Ends>();
      for (const auto& call : pending.calls) {
        call->WhenDone([ends = pending.ends](const char* error) {
          ++(error == nullptr ? ends->well : ends->with_error);
        });
      }
      pending.calls.clear();
    }
    pending_.push_back(std::move(pending));
  }

  void SettleAny() { Settle(pending_.begin() + static_cast<std::ptrdiff_t>(DrawOwn(pending_.size()))); }

  /// Called when a call on this communicator has ended: all earlier asynchronous calls on it must have ended,
  /// too. Checks this for the calls with Seen::kBehindAnother.
  void SettleBehind(int group) {
    for (auto each = pending_.begin(); each != pending_.end();) {
      if (each->group != group || each->seen != Seen::kBehindAnother) {
        ++each;
        continue;
      }
      for (const auto& call : each->calls) {
        EXPECT_TRUE(call->Test()) << "step " << each->step << " of program " << seed_
                                  << " is still under way behind step " << step_;
      }
      for (const Result& result : each->results) ExpectSame(result, each->step);
      each = pending_.erase(each);
    }
  }

  void Settle(std::vector<Pending>::iterator which) {
    Pending pending = std::move(*which);
    pending_.erase(which);
    std::shuffle(pending.calls.begin(), pending.calls.end(), own_random_);
    for (const auto& call : pending.calls) {
      while (pending.seen == Seen::kByTesting && !call->Test()) std::this_thread::yield();
      call->Wait();
    }
    if (pending.ends) {
      const auto num_ended = [&] { return pending.ends->well + pending.ends->with_error; };
      while (num_ended() < static_cast<int>(pending.num_calls)) std::this_thread::yield();
      EXPECT_EQ(pending.ends->with_error, 0) << "step " << pending.step << " of program " << seed_;
    }
    for (const Result& result : pending.results) ExpectSame(result, pending.step);
  }

  std::size_t Draw(std::size_t below) { return random_() % below; }
  /// A random number that may differ between ranks. If the communicator has no asynchronous calls, always 1.
  std::size_t DrawOwn(std::size_t below) { return begins_ ? own_random_() % below : 1; }
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

  /// A rank's input in this step. Read as floating-point numbers, the bytes contain no NaN and no infinity.
  Bytes Input(int rank, std::size_t bytes, int what = 0) const {
    std::uint64_t state = seed_ * 7919 + static_cast<std::uint64_t>(step_) * 104729 +
                          static_cast<std::uint64_t>(rank) * 613 + static_cast<std::uint64_t>(what) * 17 + 1;
    Bytes input((bytes + 7) / 8 * 8);
    for (std::size_t at = 0; at < input.size(); at += 8) {
      // Knuth's linear congruential generator for MMIX
      state = state * 6364136223846793005 + 1442695040888963407;
      const std::uint64_t word = (state ^ state >> 29) & 0xbfbf'bfbf'bfbf'bfbf;
      std::memcpy(input.data() + at, &word, sizeof(word));
    }
    input.resize(bytes);
    return input;
  }

  Reduction DrawReduction() {
    constexpr std::pair<DataType, ReduceOp> kKinds[] = {
        {DataType::kFloat, ReduceOp::kSum},   {DataType::kDouble, ReduceOp::kSum},
        {DataType::kFloat16, ReduceOp::kSum}, {DataType::kBFloat16, ReduceOp::kMax},
        {DataType::kInt, ReduceOp::kSum},     {DataType::kUChar, ReduceOp::kBitOr},
        {DataType::kLong, ReduceOp::kMin},    {DataType::kUInt, ReduceOp::kBitXor}};
    const auto [type, operation] = kKinds[Draw(std::size(kKinds))];
    return Reduction::Typed(type, operation);
  }
  /// A rank's input to a reduction.
  Bytes Input(int rank, std::size_t count, const Reduction& reduction) const {
    const bool is_float = !IsDefined(reduction.type(), ReduceOp::kBitOr);
    if (!any_order_ || !is_float || reduction.operation() != ReduceOp::kSum)
      return Input(rank, count * reduction.element_bytes());
    std::vector<float> small;
    for (const std::uint8_t byte : Input(rank, count)) small.push_back(static_cast<float>(byte % 16) - 5.0F);
    Bytes input(count * reduction.element_bytes());
    if (reduction.rounds()) {
      reduction.Narrow(input.data(), small.data(), count);
    } else if (reduction.type() == DataType::kDouble) {
      const std::vector<double> wide(small.begin(), small.end());
      if (count > 0) std::memcpy(input.data(), wide.data(), input.size());
    } else if (count > 0) {
      std::memcpy(input.data(), small.data(), input.size());
    }
    return input;
  }
  /// The expected result of a reduction: the engine reduces in the order of one CombineAll over the members.
  Bytes Reduced(const Group& group, const Reduction& reduction, std::size_t count) const {
    std::vector<Bytes> inputs;
    std::vector<const void*> pointers;
    for (const int member : group.members) inputs.push_back(Input(member, count, reduction));
    for (const Bytes& input : inputs) pointers.push_back(input.data());
    Bytes result(count * reduction.element_bytes());
    reduction.CombineAll(result.data(), pointers, count);
    return result;
  }
  void ExpectSame(const Result& result, int step) {
    const Bytes got = Part(*result.buffer, result.begin, result.begin + result.expected.size());
    EXPECT_TRUE(result.expected == got) << result.what << ", step " << step << " of program " << seed_
                                        << ", rank " << world_rank_ << ", " << got.size() << " bytes";
    std::uint64_t digest = static_cast<std::uint64_t>(step) + 1;
    for (std::size_t at = 0; at < got.size(); at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, got.data() + at, std::min<std::size_t>(8, got.size() - at));
      digest = (digest ^ word) * 0x9e3779b97f4a7c15;
      digest ^= digest >> 29;
    }
    digest_ += (digest ^ got.size()) * 0x9e3779b97f4a7c15;
  }
  static Buffer Shared(Bytes bytes) { return std::make_shared<Bytes>(std::move(bytes)); }
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
    if (group.communicator != nullptr) {
      own = group.communicator->Split(wishes[me].first, wishes[me].second);
      SettleBehind(group.id);
    }
    const Group parent{group.members, nullptr, nullptr, group.id};  // adding groups invalidates `group`
    for (int color = 0; color < colors; ++color) {
      std::vector<int> order;
      for (int i = 0; i < parent.size(); ++i) {
        if (wishes[i].first == color) order.push_back(i);
      }
      std::ranges::stable_sort(order, {}, [&](int i) { return wishes[i].second; });
      if (order.empty()) continue;
      Group made;
      made.id = next_group_++;
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

  /// Frees any communicator but the world.
  void Free(Group& /*group*/) {
    if (groups_.size() < 2) return;
    groups_.erase(groups_.begin() + 1 + static_cast<std::ptrdiff_t>(Draw(groups_.size() - 1)));
  }

  void Barrier(Group& group) {
    if (group.communicator != nullptr) Make(group, {}, [&] { group.communicator->Barrier(); });
  }

  void Allreduce(Group& group) {
    const Reduction reduction = DrawReduction();
    const std::size_t count = DrawCount();
    if (group.communicator == nullptr) return;
    const Buffer buffer = Shared(Input(world_rank_, count, reduction));
    Make(group, {{"allreduce", Reduced(group, reduction, count), buffer}},
         [&] { group.communicator->Allreduce(buffer->data(), count, reduction); });
  }

  void Reduce(Group& group) {
    const Reduction reduction = DrawReduction();
    const std::size_t count = DrawCount();
    const int root = static_cast<int>(Draw(group.size()));
    if (group.communicator == nullptr) return;
    const Buffer buffer = Shared(Input(world_rank_, count, reduction));
    std::vector<Result> results;
    if (group.communicator->rank() == root)
      results.push_back({"reduce", Reduced(group, reduction, count), buffer});
    Make(group, std::move(results),
         [&] { group.communicator->Reduce(buffer->data(), count, reduction, root); }, {buffer});
  }

  void ReduceScatter(Group& group) {
    const Reduction reduction = DrawReduction();
    const std::vector<std::size_t> offsets = OffsetsOf(DrawCounts(group));
    if (group.communicator == nullptr) return;
    const Buffer buffer = Shared(Input(world_rank_, offsets.back(), reduction));
    const std::size_t begin = offsets[group.communicator->rank()] * reduction.element_bytes();
    const std::size_t end = offsets[group.communicator->rank() + 1] * reduction.element_bytes();
    Make(group,
         {{"reduce-scatter", Part(Reduced(group, reduction, offsets.back()), begin, end), buffer, begin}},
         [&] { group.communicator->ReduceScatter(buffer->data(), offsets, reduction); });
  }

  void Broadcast(Group& group) {
    const std::size_t bytes = DrawCount();
    const int root = static_cast<int>(Draw(group.size()));
    if (group.communicator == nullptr) return;
    const Buffer buffer = Shared(Input(world_rank_, bytes));
    Make(group, {{"broadcast", Input(group.members[root], bytes), buffer}},
         [&] { group.communicator->Broadcast(buffer->data(), bytes, root); });
  }

  void Allgather(Group& group) {
    const std::vector<std::size_t> counts = DrawCounts(group);
    if (group.communicator == nullptr) return;
    const std::vector<std::size_t> offsets = OffsetsOf(counts);
    const int me = group.communicator->rank();
    const Bytes own = Input(world_rank_, counts[me]);
    const Buffer all = Shared(Bytes(offsets.back()));
    std::copy(own.begin(), own.end(), all->begin() + static_cast<std::ptrdiff_t>(offsets[me]));
    Make(group, {{"allgather", Joined(group, counts), all}},
         [&] { group.communicator->Allgather(all->data(), offsets); });
  }

  /// The concatenated inputs of all members; `counts` holds their lengths.
  Bytes Joined(const Group& group, const std::vector<std::size_t>& counts) const {
    Bytes all;
    for (int i = 0; i < group.size(); ++i) {
      const Bytes input = Input(group.members[i], counts[i]);
      all.insert(all.end(), input.begin(), input.end());
    }
    return all;
  }

  void Gather(Group& group) {
    const std::vector<std::size_t> counts = DrawCounts(group);
    const int root = static_cast<int>(Draw(group.size()));
    if (group.communicator == nullptr) return;
    const int me = group.communicator->rank();
    const Buffer own = Shared(Input(world_rank_, counts[me]));
    const std::vector<std::size_t> offsets = me == root ? OffsetsOf(counts) : std::vector<std::size_t>();
    const Buffer all = Shared(Bytes(me == root ? offsets.back() : 0));
    std::vector<Result> results;
    if (me == root) results.push_back({"gather", Joined(group, counts), all});
    Make(group, std::move(results),
         [&] { group.communicator->Gather(own->data(), own->size(), all->data(), offsets, root); },
         {own, all});
  }

  void Scatter(Group& group) {
    const std::vector<std::size_t> counts = DrawCounts(group);
    const int root = static_cast<int>(Draw(group.size()));
    if (group.communicator == nullptr) return;
    const int me = group.communicator->rank();
    const std::vector<std::size_t> offsets = OffsetsOf(counts);
    const Buffer all = Shared(Input(group.members[root], offsets.back()));
    const Buffer own = Shared(Bytes(counts[me]));
    Make(group, {{"scatter", Part(*all, offsets[me], offsets[me + 1]), own}},
         [&] {
           if (me == root) {
             group.communicator->Scatter(all->data(), offsets, own->data(), own->size(), root);
           } else {
             group.communicator->Scatter(nullptr, {}, own->data(), own->size(), root);
           }
         },
         {all});
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
    const Buffer from = Shared(Input(world_rank_, sent.back()));
    const Buffer to = Shared(Bytes(received.back()));
    Make(group, {{"all-to-all", std::move(expected), to}},
         [&] { group.communicator->AllToAll(from->data(), sent, to->data(), received); }, {from});
  }

  /// Each rank sends to some ranks, at times to itself, and receives the messages sent to it, all in one call
  /// or, if calls are asynchronous, in one call per message.
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
    std::vector<Result> results;
    std::vector<Buffer> contents;
    std::vector<Outbound> sends;
    std::vector<Inbound> receives;
    // For each message, the numbers of sends and receives up to and including the message.
    std::vector<std::pair<std::size_t, std::size_t>> ends;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Message& message = messages[i];
      const Buffer sent = Shared(Input(group.members[message.from], message.bytes, static_cast<int>(i)));
      const Buffer got = Shared(Bytes(message.bytes));
      if (message.from == me) {
        sends.push_back({message.to, sent->data(), sent->size()});
        contents.push_back(sent);
      }
      if (message.to == me) {
        receives.push_back({message.from, got->data(), got->size()});
        results.push_back({"message", *sent, got});
      }
      ends.emplace_back(sends.size(), receives.size());
    }
    if (begins_ && sends.empty() && receives.empty()) return;
    Make(
        group, std::move(results),
        [&] {
          if (!begins_) return group.communicator->SendReceive(sends, receives);
          std::pair<std::size_t, std::size_t> begin{0, 0};
          for (const auto& end : ends) {
            if (begin != end) {
              group.communicator->SendReceive(
                  std::span(sends).subspan(begin.first, end.first - begin.first),
                  std::span(receives).subspan(begin.second, end.second - begin.second));
            }
            begin = end;
          }
        },
        std::move(contents));
  }

  static constexpr std::size_t kMostGroups = 12;
  static constexpr std::size_t kMostPending = 8;

  std::mt19937_64 random_;
  std::mt19937_64 own_random_;
  std::uint64_t seed_;
  bool any_order_;
  bool begins_ = false;
  int world_rank_ = 0;
  int step_ = 0;
  int next_group_ = 0;
  std::uint64_t digest_ = 0;
  std::vector<Group> groups_;
  std::vector<Pending> pending_;
};

}  // namespace warren::testing
