// Session, on which all APIs are built: argument checks, errors, threads, checkpoints and timeouts. Ranks are
// threads.
#include "rabit_engine/api/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"
#include "tests/rabit_engine/api/fake_world.h"

namespace warren::api {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::unique_ptr<recovery::RecoverableCommunicator> Over(std::unique_ptr<Communicator> communicator) {
  return std::make_unique<recovery::RecoverableCommunicator>(std::move(communicator));
}

constexpr Call kCall{"rabit::Something", "train.cc", 12, "Train"};

/// One rank of a world, whose other ranks are not there.
struct OneRank {
  explicit OneRank(int world_size, int rank = 0, bool has_timeouts = false)
      : world(world_size),
        communicator(new FakeCommunicator(&world, rank, has_timeouts)),
        session(Over(std::unique_ptr<Communicator>(communicator))) {}

  FakeWorld world;
  FakeCommunicator* communicator;  ///< owned by the session
  Session session;
};

Reduction Sum() {
  return Reduction::Typed(DataType::kInt, ReduceOp::kSum);
}

/// A slice as a caller passes it: its begin, followed by its size or its end.
using Stated = std::pair<std::size_t, std::size_t>;

/// Runs AllgatherSlice on all ranks. `stated`: each rank's arguments; `offsets`: the slices' true bounds in
/// the buffer of ints. Returns each rank's buffer or error.
std::vector<std::string> Gather(const std::vector<Stated>& stated, const std::vector<std::size_t>& offsets) {
  const std::size_t total = offsets.back();
  FakeWorld world(static_cast<int>(stated.size()));
  std::vector<std::string> results(stated.size());
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < stated.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      Session session(Over(std::make_unique<FakeCommunicator>(&world, static_cast<int>(rank))));
      std::vector<int> buffer(total, -1);
      std::fill(buffer.begin() + static_cast<long>(offsets[rank]),
                buffer.begin() + static_cast<long>(offsets[rank + 1]), static_cast<int>(rank));
      try {
        session.AllgatherSlice(kCall, buffer.data(), sizeof(int), total, stated[rank].first,
                               stated[rank].second);
        for (const int value : buffer) results[rank] += std::to_string(value);
      } catch (const Misuse& error) {
        results[rank] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return results;
}

TEST(AllgatherSlice, TakesTheFourthArgumentForASizeWhenSizesMeet) {
  EXPECT_THAT(Gather({{0, 2}, {2, 2}, {4, 2}}, {0, 2, 4, 6}), testing::Each("001122"));
  EXPECT_THAT(Gather({{0, 1}, {1, 3}, {4, 2}}, {0, 1, 4, 6}), testing::Each("011122"));
}

TEST(AllgatherSlice, TakesTheFourthArgumentForAnEndWhenEndsMeet) {
  EXPECT_THAT(Gather({{0, 2}, {2, 4}, {4, 6}}, {0, 2, 4, 6}), testing::Each("001122"));
  EXPECT_THAT(Gather({{0, 1}, {1, 4}, {4, 6}}, {0, 1, 4, 6}), testing::Each("011122"));
}

TEST(AllgatherSlice, AcceptsEmptySlicesInBothReadings) {
  EXPECT_THAT(Gather({{0, 0}, {0, 3}, {3, 0}}, {0, 0, 3, 3}), testing::Each("111"));
  EXPECT_THAT(Gather({{0, 0}, {0, 3}, {3, 3}}, {0, 0, 3, 3}), testing::Each("111"));
  EXPECT_THAT(Gather({{0, 0}, {0, 0}, {0, 2}}, {0, 0, 0, 2}), testing::Each("22"));
  EXPECT_THAT(Gather({{0, 0}, {0, 0}}, {0, 0, 0}), testing::Each(""));
}

TEST(AllgatherSlice, RefusesInAllRanksWhenNeitherReadingMeets) {
  // In this order: a gap, a mixture of sizes and ends, more than the buffer holds, a sum that wraps around.
  for (const auto& stated : std::vector<std::vector<Stated>>{{{0, 1}, {2, 2}, {4, 2}},
                                                             {{0, 2}, {2, 4}, {4, 2}},
                                                             {{0, 2}, {2, 2}, {4, 3}},
                                                             {{0, 2}, {2, ~std::size_t{0}}, {1, 5}}}) {
    EXPECT_THAT(Gather(stated, {0, 2, 4, 6}), testing::Each(HasSubstr("the slices are not contiguous")));
  }
}

TEST(SessionErrors, SayRankCallAndPlace) {
  OneRank rank(3, 2);
  EXPECT_THAT([&] { rank.session.Run(kCall, Operation::Broadcast(nullptr, 8, 1)); },
              ThrowsMessage<Misuse>(testing::StrEq(
                  "rank 2: rabit::Something (train.cc:12 in Train): the buffer of 8 bytes is NULL")));
}

TEST(SessionErrors, KeepTheirKindAndEndTheJobForThisRank) {
  OneRank rank(3);
  rank.communicator->on_allreduce = [](void*, std::size_t, const Reduction&) {
    throw LostPeer(1, "rank 1 is gone");
  };
  int value = 0;
  try {
    rank.session.Allreduce(kCall, &value, 1, Sum(), {});
    FAIL();
  } catch (const LostPeer& error) {
    EXPECT_EQ(error.rank(), 1);
    EXPECT_THAT(error.what(), HasSubstr("rank 0: rabit::Something (train.cc:12 in Train): rank 1 is gone"));
  }
  EXPECT_THAT([&] { rank.session.Run(kCall, Operation::Broadcast(&value, sizeof(value), 0)); },
              ThrowsMessage<EngineError>(
                  testing::AllOf(HasSubstr("an earlier call has failed"), HasSubstr("rank 1 is gone"))));
}

TEST(SessionErrors, ThatNoOtherRankHasAreToldToTheOthers) {
  for (const bool is_standard : {true, false}) {
    OneRank rank(2);
    rank.communicator->on_allreduce = [&](void*, std::size_t, const Reduction&) {
      if (is_standard) throw std::bad_alloc();
      throw 7;
    };
    int value = 0;
    EXPECT_ANY_THROW(rank.session.Allreduce(kCall, &value, 1, Sum(), {}));
    EXPECT_EQ(rank.communicator->times_given_up, 1);
    EXPECT_THROW(rank.session.Allreduce(kCall, &value, 1, Sum(), {}), EngineError);
    EXPECT_EQ(rank.communicator->times_given_up, 1);
  }
}

TEST(SessionErrors, OfArgumentsLeaveTheJobAsItWas) {
  OneRank rank(2);
  int value = 0;
  EXPECT_THROW(rank.session.Run(kCall, Operation::Broadcast(&value, sizeof(value), 2)), Misuse);
  EXPECT_NO_THROW(rank.session.Run(kCall, Operation::Broadcast(&value, sizeof(value), 1)));
}

TEST(SessionThreads, RefuseASecondThreadWhileOneIsInACall) {
  OneRank rank(2);
  bool is_tried = false;
  rank.communicator->on_allreduce = [&](void*, std::size_t, const Reduction&) {
    is_tried = true;
    std::thread([&] {
      EXPECT_THAT([&] { rank.session.TrackerPrint(kCall, "hello"); },
                  ThrowsMessage<Misuse>(HasSubstr("another thread is in a call of this rank")));
    }).join();
  };
  int value = 0;
  rank.session.Allreduce(kCall, &value, 1, Sum(), {});
  EXPECT_TRUE(is_tried);
  EXPECT_NO_THROW(rank.session.TrackerPrint(kCall, "hello"));
}

TEST(SessionThreads, RefuseACallThatAFunctionOfAnotherCallMakesEvenOnceCallsHaveBeenEnqueued) {
  OneRank rank(2);
  int refused = 0;
  rank.communicator->on_allreduce = [&](void* buffer, std::size_t, const Reduction&) {
    EXPECT_THAT([&] { rank.session.Run(kCall, Operation::Broadcast(buffer, sizeof(int), 1)); },
                ThrowsMessage<Misuse>(HasSubstr("from a function that another call")));
    ++refused;
  };
  int value = 0;
  const auto allreduce = [&] { rank.session.Allreduce(kCall, &value, 1, Sum(), {}); };
  rank.session.Enqueue(kCall, allreduce)->Wait();
  allreduce();
  EXPECT_EQ(refused, 2);
  EXPECT_NO_THROW(rank.session.Run(kCall, Operation::Broadcast(&value, sizeof(value), 1)));
}

TEST(SessionPrepare, RunsAfterTheCallsThatWereEnqueuedBefore) {
  constexpr int kCalls = 20;
  OneRank rank(1);
  struct Argument {
    std::atomic<int> ended = 0;
    int seen = -1;
  } argument;
  for (int i = 0; i < kCalls; ++i) {
    rank.session.Enqueue(kCall, [&argument] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++argument.ended;
    });
  }
  int value = 0;
  rank.session.Allreduce(kCall, &value, 1, Sum(),
                         {[](void* pointer) {
                            auto& self = *static_cast<Argument*>(pointer);
                            self.seen = self.ended;
                          },
                          &argument});
  EXPECT_EQ(argument.seen, kCalls);
}

TEST(SessionPrepare, RunsBeforeTheReductionAndMayUseTheSession) {
  OneRank rank(2);
  int seen = 0;
  rank.communicator->on_allreduce = [&](void* buffer, std::size_t, const Reduction&) {
    seen = *static_cast<int*>(buffer);
  };
  struct Argument {
    Session* session;
    int value;
  } argument{&rank.session, 0};
  rank.session.Allreduce(kCall, &argument.value, 1, Sum(),
                         {[](void* pointer) {
                            auto& self = *static_cast<Argument*>(pointer);
                            self.session->Run(kCall,
                                              Operation::Broadcast(&self.value, sizeof(self.value), 1));
                            self.value = 7;
                          },
                          &argument});
  EXPECT_EQ(seen, 7);
}

TEST(SessionPrepare, ThatThrowsEndsTheJobForThisRankAndTellsTheOthers) {
  for (const bool is_standard : {true, false}) {
    OneRank rank(2);
    int reductions = 0;
    rank.communicator->on_allreduce = [&](void*, std::size_t, const Reduction&) { ++reductions; };
    bool throws_standard = is_standard;
    int value = 0;
    const Prepare prepare{[](void* pointer) {
                            if (*static_cast<bool*>(pointer)) throw std::invalid_argument("bad batch");
                            throw 7;
                          },
                          &throws_standard};
    const auto allreduce = [&] { rank.session.Allreduce(kCall, &value, 1, Sum(), prepare); };
    if (is_standard) {
      EXPECT_THAT(allreduce, ThrowsMessage<std::invalid_argument>(testing::StrEq("bad batch")));
    } else {
      EXPECT_THROW(allreduce(), int);
    }
    EXPECT_EQ(rank.communicator->times_given_up, 1);
    EXPECT_THAT([&] { rank.session.Allreduce(kCall, &value, 1, Sum(), {}); },
                ThrowsMessage<EngineError>(
                    testing::AllOf(HasSubstr("an earlier call has failed"),
                                   HasSubstr("(train.cc:12 in Train): the prepare function threw"))));
    EXPECT_EQ(reductions, 0);
  }
}

TEST(SessionPrepare, IsNotCalledForInvalidArgumentsWhichLeaveTheJobAsItWas) {
  OneRank rank(2);
  int value = 0;
  const Prepare prepare{[](void*) { throw 7; }, nullptr};
  EXPECT_THROW(rank.session.Allreduce(kCall, nullptr, 1, Sum(), prepare), Misuse);
  EXPECT_EQ(rank.communicator->times_given_up, 0);
  EXPECT_NO_THROW(rank.session.Allreduce(kCall, &value, 1, Sum(), {}));
}

TEST(SessionCheckpoints, AreOfferedOnlyWithTheModelsTheyHave) {
  OneRank rank(1);
  EXPECT_FALSE(rank.session.LoadCheckPoint(kCall, true, false));
  rank.session.CheckPoint(kCall, "global", std::nullopt);
  EXPECT_EQ(*rank.session.LoadCheckPoint(kCall, true, false)->global, "global");
  EXPECT_THROW(rank.session.LoadCheckPoint(kCall, true, true), Misuse);
  rank.session.CheckPoint(kCall, std::nullopt, std::nullopt);
  EXPECT_THROW(rank.session.LoadCheckPoint(kCall, true, false), Misuse);
}

TEST(CallOptions, ATimeoutIsThatOfOneCallWhetherItFailsOrNot) {
  OneRank rank(1, 0, true);
  Session& session = rank.session;
  std::vector<std::chrono::milliseconds> during;
  rank.communicator->on_allreduce = [&](void*, std::size_t count, const Reduction&) {
    during.push_back(rank.communicator->call_timeout);
    if (count > 1) throw Refused("two are too many");
  };
  CallOptions options{"gradients", std::chrono::milliseconds(0)};
  Call call{"Allreduce"};
  call.options = &options;
  options.timeout = session.Timeout(call, 0.3);
  std::array<double, 2> values{};
  session.Allreduce(call, values.data(), 1, session.TypedReduction(call, 7, 2), {});
  EXPECT_EQ(rank.communicator->call_timeout.count(), 0);
  EXPECT_THROW(session.Allreduce(call, values.data(), 2, session.TypedReduction(call, 7, 2), {}), Misuse);
  EXPECT_EQ(rank.communicator->call_timeout.count(), 0);
  session.Allreduce(Call{"Allreduce"}, values.data(), 1, session.TypedReduction(call, 7, 2), {});
  EXPECT_THAT(during, testing::ElementsAre(std::chrono::milliseconds(300), std::chrono::milliseconds(300),
                                           std::chrono::milliseconds(0)));
}

TEST(CallOptions, ATimeoutIsSecondsFromZeroOn) {
  const OneRank rank(1, 0, true);
  const Session& session = rank.session;
  const CallOptions options{"gradients", std::chrono::milliseconds(0)};
  Call call{"Allreduce"};
  call.options = &options;
  EXPECT_EQ(session.Timeout(call, 0).count(), 0);
  EXPECT_EQ(session.Timeout(call, 1e-9).count(), 1);
  EXPECT_EQ(session.Timeout(call, 2.5).count(), 2'500);
  EXPECT_GT(session.Timeout(call, std::numeric_limits<double>::infinity()).count(), 1'000'000'000);
  for (const double wrong : {-0.5, -std::numeric_limits<double>::infinity(), std::nan("")}) {
    const auto give = [&] { return session.Timeout(call, wrong); };
    EXPECT_THAT(give, ThrowsMessage<Misuse>(HasSubstr("rank 0: Allreduce 'gradients': a timeout of ")));
  }
}

TEST(CallOptions, ATimeoutIsRefusedWhereTheEngineHasNone) {
  const OneRank rank(1);
  EXPECT_EQ(rank.session.Timeout(kCall, 0).count(), 0);
  EXPECT_THAT([&] { return rank.session.Timeout(kCall, 1); },
              ThrowsMessage<Misuse>(HasSubstr("this engine has no timeouts; set WARREN_ENGINE=native")));
}

}  // namespace
}  // namespace warren::api
