#include "rabit_engine/api/call_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace warren::api {
namespace {

std::shared_ptr<CallQueue> MakeQueue() {
  return std::make_shared<CallQueue>();
}

std::string ErrorOf(PendingCall& call) {
  try {
    call.Wait();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

TEST(CallQueue, RunsCallsInTheOrderInWhichTheyWereGiven) {
  const auto queue = MakeQueue();
  std::vector<int> order;
  std::vector<std::shared_ptr<PendingCall>> calls;
  for (int i = 0; i < 100; ++i) calls.push_back(queue->Add([&order, i] { order.push_back(i); }));
  calls[50]->Wait();
  calls[99]->Wait();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(order[i], i);
}

TEST(CallQueue, CallsThatNobodyWaitsForAreRunAllTheSame) {
  for (int round = 0; round < 3; ++round) {
    std::promise<void> done;
    MakeQueue()->Add([&] { done.set_value(); });
    done.get_future().wait();
  }
}

TEST(CallQueue, ACallRunsOneAtATime) {
  const auto queue = MakeQueue();
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto call = queue->Add([&] {
          most = std::max(most.load(), ++running);
          --running;
        });
        if (i % 3 == 0) call->Wait();
        if (i % 7 == 0) queue->Drain();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  queue->Drain();
  EXPECT_EQ(most, 1);
}

TEST(CallQueue, AnErrorComesWithItsCallAndTheNextIsRun) {
  const auto queue = MakeQueue();
  const auto bad = queue->Add([] { throw std::runtime_error("bad"); });
  const auto good = queue->Add([] {});
  EXPECT_EQ(ErrorOf(*good), "none");
  EXPECT_EQ(ErrorOf(*bad), "bad");
  EXPECT_EQ(ErrorOf(*bad), "bad");  // the error is kept
}

TEST(CallQueue, WhoeverAsksToBeToldIsToldOnce) {
  const auto queue = MakeQueue();
  std::atomic<int> told = 0;
  std::promise<void> may_end;
  const auto call = queue->Add([&] { may_end.get_future().wait(); });
  call->WhenEnded([&](const std::exception_ptr& error) { told += error ? 100 : 1; });
  EXPECT_EQ(told, 0);
  may_end.set_value();
  queue->Drain();
  while (told == 0) std::this_thread::yield();
  EXPECT_EQ(told, 1);
  call->WhenEnded([&](const std::exception_ptr& error) { told += error ? 100 : 10; });
  EXPECT_EQ(told, 11);
}

TEST(CallQueue, WhatACallHeldIsFreeWhenItHasEnded) {
  const auto queue = MakeQueue();
  const auto held = std::make_shared<int>(7);
  const auto call = queue->Add([held] { EXPECT_EQ(*held, 7); });
  call->Wait();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(CallQueue, ACallMayDrainItsOwnQueue) {
  const auto queue = MakeQueue();
  bool ran = false;
  queue->Add([&] {
    queue->Drain();
    ran = true;
  });
  queue->Drain();
  EXPECT_TRUE(ran);
}

TEST(CallQueue, HasEndedSaysSoWithoutWaiting) {
  const auto queue = MakeQueue();
  std::promise<void> may_end;
  const auto call = queue->Add([&] { may_end.get_future().wait(); });
  EXPECT_FALSE(call->HasEnded());
  may_end.set_value();
  call->Wait();
  EXPECT_TRUE(call->HasEnded());
}

}  // namespace
}  // namespace warren::api
