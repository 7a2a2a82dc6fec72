// Named operations, which each rank submits from several threads. The ranks share this process, so that the
// thread sanitizer can find races. tests/rabit_engine/coordinator/ tests how the ranks agree on what to run,
// and tests/rabit_engine/matrix/ tests whole programs.
#include "rabit_engine/api/named_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/recovery/recoverable_communicator.h"
#include "rabit_engine/reduce/reduction.h"
#include "tests/rabit_engine/api/fake_world.h"
#include "tests/rabit_engine/engine/thread_world.h"

namespace warren::api {
namespace {

using coordinator::Request;

constexpr Call kCall{"a named call"};

std::shared_ptr<Session> SessionOver(NativeCommunicator& world) {
  return std::make_shared<Session>(
      std::make_unique<recovery::RecoverableCommunicator>(world.Split(0, world.rank())));
}

/// Submits an in-place sum of `numbers`, for which `run` is called if given.
std::shared_ptr<PendingCall> Give(NamedCalls& named, const std::string& name, std::vector<int>& numbers,
                                  std::function<void()> run = nullptr) {
  const Reduction sum = Reduction::Typed(DataType::kInt, ReduceOp::kSum);
  Request request;
  request.name = name;
  request.signature.type = static_cast<std::uint8_t>(sum.type());
  request.signature.operation = static_cast<std::uint8_t>(sum.operation());
  request.signature.element_bytes = sum.element_bytes();
  request.signature.count = numbers.size();
  if (!run) {
    run = [&named, &numbers, sum] {
      named.session().Allreduce(kCall, numbers.data(), numbers.size(), sum, {});
    };
  }
  return named.Add(kCall, request, {run, numbers.data(), numbers.data()});
}

void RunWorld(int size, const std::function<void(Session&)>& function) {
  testing::ThreadWorld(size).Run(Settings{},
                                 [&](NativeCommunicator& world) { function(*SessionOver(world)); });
}

TEST(NamedCalls, GivenByManyThreadsInAnyOrderAreRight) {
  for (const std::size_t fusion_bytes : {std::size_t{0}, std::size_t{1} << 20}) {
    RunWorld(3, [&](Session& session) {
      NamedCallOptions options;
      options.fusion_bytes = fusion_bytes;
      const auto named = NamedCalls::Make(kCall, session, options);
      for (int round = 0; round < 5; ++round) {
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 3; ++thread) {
          threads.emplace_back([&, thread] {
            std::mt19937 random(static_cast<unsigned>(session.rank() * 100 + thread));
            std::vector<std::vector<int>> all(20, std::vector<int>(50, session.rank() + 1));
            std::vector<std::size_t> order(all.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::shuffle(order.begin(), order.end(), random);
            std::vector<std::shared_ptr<PendingCall>> pending;
            for (const std::size_t i : order) {
              pending.push_back(Give(*named, std::to_string(thread * 100 + static_cast<int>(i)), all[i]));
            }
            for (const auto& call : pending) call->Wait();
            for (const auto& numbers : all) EXPECT_THAT(numbers, ::testing::Each(6));
          });
        }
        for (std::thread& thread : threads) thread.join();
      }
      const int last = named->Join(kCall);
      EXPECT_TRUE(last >= 0 && last < session.world_size());
      named->Close();
    });
  }
}

TEST(NamedCalls, EndWithAnErrorWhenARankEndsThem) {
  RunWorld(2, [](Session& session) {
    const auto named = NamedCalls::Make(kCall, session, {});
    std::vector<int> numbers(10, 1);
    std::atomic<int> called{0};
    if (session.rank() == 0) {
      const auto pending = Give(*named, "never", numbers);
      pending->WhenEnded([&](const std::exception_ptr& error) { called = error ? 1 : 2; });
      std::thread other([&] { EXPECT_THROW(pending->Wait(), EngineError); });
      other.join();
      while (called == 0) std::this_thread::yield();
      EXPECT_EQ(called, 1);
      EXPECT_THROW(Give(*named, "late", numbers), EngineError);
    }
    named->Close();
    named->Close();
  });
}

TEST(NamedCalls, WaitForRanksForeverUnlessATimeIsGivenEvenIfOtherCallsHaveATimeout) {
  FakeWorld world(1);
  for (const auto& [fails_after, expected_ms] : {std::pair{0.0, 1'000'000'000'000}, {2.5, 2500}}) {
    auto fake = std::make_unique<FakeCommunicator>(&world, 0);
    FakeCommunicator* const communicator = fake.get();
    NamedCallOptions options;
    options.fails_after = fails_after;
    const NamedCalls named(
        std::make_shared<Session>(std::make_unique<recovery::RecoverableCommunicator>(std::move(fake))),
        options);
    // 0 would mean the timeout of the settings, which rabit_timeout=1 sets.
    EXPECT_EQ(communicator->call_timeout.count(), expected_ms);
  }
}

#ifdef __GLIBCXX__
TEST(NamedCalls, EndWithAnErrorWhenTheThreadThatRunsThemIsEnded) {
  RunWorld(1, [](Session& session) {
    const auto named = NamedCalls::Make(kCall, session, {});
    std::vector<int> numbers(10, 1);
    const auto pending = Give(*named, "ends", numbers, [] { pthread_exit(nullptr); });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!pending->HasEnded() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ASSERT_TRUE(pending->HasEnded());
    EXPECT_THROW(pending->Wait(), EngineError);
    EXPECT_THROW(Give(*named, "late", numbers), EngineError);
    named->Close();
  });
}
#endif

TEST(NamedCalls, GivenWhileOthersCloseEndAllTheSame) {
  RunWorld(2, [](Session& session) {
    for (int round = 0; round < 10; ++round) {
      const auto named = NamedCalls::Make(kCall, session, {});
      std::thread giver([&] {
        std::vector<std::vector<int>> all(200, std::vector<int>(5, 1));
        std::vector<std::shared_ptr<PendingCall>> pending;
        try {
          for (std::size_t i = 0; i < all.size(); ++i)
            pending.push_back(Give(*named, std::to_string(i), all[i]));
        } catch (const EngineError&) {
          // The named operations are closed.
        }
        for (const auto& call : pending) {
          try {
            call->Wait();
          } catch (const EngineError&) {
            // Operations submitted earlier may fail as well.
          }
          EXPECT_TRUE(call->HasEnded());
        }
      });
      if (session.rank() == round % 2) named->Close();
      giver.join();
      named->Close();
    }
  });
}

}  // namespace
}  // namespace warren::api
