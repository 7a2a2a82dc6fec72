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
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"
#include "tests/rabit_engine/api/fake_world.h"

namespace warren::api {
namespace {

using testing::HasSubstr;

std::unique_ptr<recovery::RecoverableCommunicator> Over(std::unique_ptr<Communicator> communicator) {
  return std::make_unique<recovery::RecoverableCommunicator>(std::move(communicator));
}

constexpr Call kCall{"rabit::Something", "train.cc", 12, "Train"};

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
  FakeWorld world(3);
  Session session(Over(std::make_unique<FakeCommunicator>(&world, 2)));
  try {
    session.Run(kCall, Operation::Broadcast(nullptr, 8, 1));
    FAIL();
  } catch (const Misuse& error) {
    EXPECT_STREQ(error.what(),
                 "rank 2: rabit::Something (train.cc:12 in Train): the buffer of 8 bytes is NULL");
  }
}

TEST(SessionErrors, KeepTheirKindAndEndTheJobForThisRank) {
  FakeWorld world(3);
  auto communicator = std::make_unique<FakeCommunicator>(&world, 0);
  communicator->on_allreduce = [](void*, std::size_t, const Reduction&) {
    throw LostPeer(1, "rank 1 is gone");
  };
  Session session(Over(std::move(communicator)));
  const Reduction sum = Reduction::Typed(DataType::kInt, ReduceOp::kSum);
  int value = 0;
  try {
    session.Allreduce(kCall, &value, 1, sum, {});
    FAIL();
  } catch (const LostPeer& error) {
    EXPECT_EQ(error.rank(), 1);
    EXPECT_THAT(error.what(), HasSubstr("rank 0: rabit::Something (train.cc:12 in Train): rank 1 is gone"));
  }
  try {
    session.Run(kCall, Operation::Broadcast(&value, sizeof(value), 0));
    FAIL();
  } catch (const EngineError& error) {
    EXPECT_THAT(error.what(), HasSubstr("an earlier call has failed"));
    EXPECT_THAT(error.what(), HasSubstr("rank 1 is gone"));
  }
}

TEST(SessionErrors, ThatNoOtherRankHasAreToldToTheOthers) {
  FakeWorld world(2);
  for (const bool is_standard : {true, false}) {
    auto fake = std::make_unique<FakeCommunicator>(&world, 0);
    FakeCommunicator* const communicator = fake.get();
    communicator->on_allreduce = [&](void*, std::size_t, const Reduction&) {
      if (is_standard) throw std::bad_alloc();
      throw 7;
    };
    Session session(Over(std::move(fake)));
    const Reduction sum = Reduction::Typed(DataType::kInt, ReduceOp::kSum);
    int value = 0;
    EXPECT_ANY_THROW(session.Allreduce(kCall, &value, 1, sum, {}));
    EXPECT_EQ(communicator->times_given_up, 1);
    EXPECT_THROW(session.Allreduce(kCall, &value, 1, sum, {}), EngineError);
    EXPECT_EQ(communicator->times_given_up, 1);
  }
}

TEST(SessionErrors, OfArgumentsLeaveTheJobAsItWas) {
  FakeWorld world(2);
  Session session(Over(std::make_unique<FakeCommunicator>(&world, 0)));
  int value = 0;
  EXPECT_THROW(session.Run(kCall, Operation::Broadcast(&value, sizeof(value), 2)), Misuse);
  EXPECT_NO_THROW(session.Run(kCall, Operation::Broadcast(&value, sizeof(value), 1)));
}

TEST(SessionThreads, RefuseASecondThreadWhileOneIsInACall) {
  FakeWorld world(2);
  auto communicator = std::make_unique<FakeCommunicator>(&world, 0);
  Session* session_pointer = nullptr;
  std::string message;
  communicator->on_allreduce = [&](void*, std::size_t, const Reduction&) {
    std::thread other([&] {
      try {
        session_pointer->TrackerPrint(kCall, "hello");
      } catch (const Misuse& error) {
        message = error.what();
      }
    });
    other.join();
  };
  Session session(Over(std::move(communicator)));
  session_pointer = &session;
  int value = 0;
  session.Allreduce(kCall, &value, 1, Reduction::Typed(DataType::kInt, ReduceOp::kSum), {});
  EXPECT_THAT(message, HasSubstr("another thread is in a call of this rank"));
  EXPECT_NO_THROW(session.TrackerPrint(kCall, "hello"));
}

TEST(SessionThreads, RefuseACallThatAFunctionOfAnotherCallMakesEvenOnceCallsHaveBeenEnqueued) {
  FakeWorld world(2);
  auto communicator = std::make_unique<FakeCommunicator>(&world, 0);
  Session* session_pointer = nullptr;
  std::vector<std::string> messages;
  communicator->on_allreduce = [&](void* buffer, std::size_t, const Reduction&) {
    try {
      session_pointer->Run(kCall, Operation::Broadcast(buffer, sizeof(int), 1));
      messages.emplace_back("no error");
    } catch (const Misuse& error) {
      messages.emplace_back(error.what());
    }
  };
  Session session(Over(std::move(communicator)));
  session_pointer = &session;
  int value = 0;
  const auto allreduce = [&] {
    session.Allreduce(kCall, &value, 1, Reduction::Typed(DataType::kInt, ReduceOp::kSum), {});
  };
  session.Enqueue(kCall, allreduce)->Wait();
  allreduce();
  EXPECT_THAT(messages, testing::ElementsAre(HasSubstr("from a function that another call"),
                                             HasSubstr("from a function that another call")));
  EXPECT_NO_THROW(session.Run(kCall, Operation::Broadcast(&value, sizeof(value), 1)));
}

TEST(SessionPrepare, RunsAfterTheCallsThatWereEnqueuedBefore) {
  constexpr int kCalls = 20;
  FakeWorld world(1);
  Session session(Over(std::make_unique<FakeCommunicator>(&world, 0)));
  struct Argument {
    std::atomic<int> ended = 0;
    int seen = -1;
  } argument;
  for (int i = 0; i < kCalls; ++i) {
    session.Enqueue(kCall, [&argument] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++argument.ended;
    });
  }
  int value = 0;
  session.Allreduce(kCall, &value, 1, Reduction::Typed(DataType::kInt, ReduceOp::kSum),
                    {[](void* pointer) {
                       auto& self = *static_cast<Argument*>(pointer);
                       self.seen = self.ended;
                     },
                     &argument});
  EXPECT_EQ(argument.seen, kCalls);
}

TEST(SessionPrepare, RunsBeforeTheReductionAndMayUseTheSession) {
  FakeWorld world(2);
  auto communicator = std::make_unique<FakeCommunicator>(&world, 0);
  int seen = 0;
  communicator->on_allreduce = [&](void* buffer, std::size_t, const Reduction&) {
    seen = *static_cast<int*>(buffer);
  };
  Session session(Over(std::move(communicator)));
  struct Argument {
    Session* session;
    int value;
  } argument{&session, 0};
  session.Allreduce(kCall, &argument.value, 1, Reduction::Typed(DataType::kInt, ReduceOp::kSum),
                    {[](void* pointer) {
                       auto& self = *static_cast<Argument*>(pointer);
                       self.session->Run(kCall, Operation::Broadcast(&self.value, sizeof(self.value), 1));
                       self.value = 7;
                     },
                     &argument});
  EXPECT_EQ(seen, 7);
}

TEST(SessionCheckpoints, AreOfferedOnlyWithTheModelsTheyHave) {
  FakeWorld world(1);
  Session session(Over(std::make_unique<FakeCommunicator>(&world, 0)));
  EXPECT_FALSE(session.LoadCheckPoint(kCall, true, true));
  session.CheckPoint(kCall, "global", std::nullopt);
  EXPECT_EQ(*session.LoadCheckPoint(kCall, true, false)->global, "global");
  EXPECT_THROW(session.LoadCheckPoint(kCall, true, true), Misuse);
  session.CheckPoint(kCall, std::nullopt, std::nullopt);
  EXPECT_THROW(session.LoadCheckPoint(kCall, true, false), Misuse);
}

TEST(CallOptions, ATimeoutIsThatOfOneCallWhetherItFailsOrNot) {
  FakeWorld world(1);
  auto fake = std::make_unique<FakeCommunicator>(&world, 0);
  FakeCommunicator* const communicator = fake.get();
  communicator->times_out = true;
  std::vector<std::chrono::milliseconds> during;
  communicator->on_allreduce = [&](void*, std::size_t count, const Reduction&) {
    during.push_back(communicator->call_timeout);
    if (count > 1) throw Refused("two are too many");
  };
  Session session(Over(std::move(fake)));
  CallOptions options{"gradients", std::chrono::milliseconds(0)};
  Call call{"Allreduce"};
  call.options = &options;
  options.timeout = session.Timeout(call, 0.3);
  std::array<double, 2> values{};
  session.Allreduce(call, values.data(), 1, session.TypedReduction(call, 7, 2), {});
  EXPECT_EQ(communicator->call_timeout.count(), 0);
  EXPECT_THROW(session.Allreduce(call, values.data(), 2, session.TypedReduction(call, 7, 2), {}), Misuse);
  EXPECT_EQ(communicator->call_timeout.count(), 0);
  session.Allreduce(Call{"Allreduce"}, values.data(), 1, session.TypedReduction(call, 7, 2), {});
  EXPECT_THAT(during, testing::ElementsAre(std::chrono::milliseconds(300), std::chrono::milliseconds(300),
                                           std::chrono::milliseconds(0)));
}

TEST(CallOptions, ATimeoutIsSecondsFromZeroOn) {
  FakeWorld world(1);
  auto fake = std::make_unique<FakeCommunicator>(&world, 0);
  fake->times_out = true;
  const Session session(Over(std::move(fake)));
  const CallOptions options{"gradients", std::chrono::milliseconds(0)};
  Call call{"Allreduce"};
  call.options = &options;
  EXPECT_EQ(session.Timeout(call, 0).count(), 0);
  EXPECT_EQ(session.Timeout(call, 1e-9).count(), 1);
  EXPECT_EQ(session.Timeout(call, 2.5).count(), 2'500);
  EXPECT_GT(session.Timeout(call, std::numeric_limits<double>::infinity()).count(), 1'000'000'000);
  for (const double wrong : {-0.5, -std::numeric_limits<double>::infinity(), std::nan("")}) {
    const auto give = [&] { return session.Timeout(call, wrong); };
    EXPECT_THAT(give,
                testing::ThrowsMessage<Misuse>(HasSubstr("rank 0: Allreduce 'gradients': a timeout of ")));
  }
}

TEST(CallOptions, ATimeoutIsRefusedWhereTheEngineHasNone) {
  FakeWorld world(1);
  const Session session(Over(std::make_unique<FakeCommunicator>(&world, 0)));
  EXPECT_EQ(session.Timeout(kCall, 0).count(), 0);
  EXPECT_THAT(
      [&] { return session.Timeout(kCall, 1); },
      testing::ThrowsMessage<Misuse>(HasSubstr("this engine has no timeouts; set WARREN_ENGINE=native")));
}

}  // namespace
}  // namespace warren::api
