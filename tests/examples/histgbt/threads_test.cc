#include "examples/histgbt/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace warren::histgbt {
namespace {

TEST(Threads, EachTaskIsDoneOnce) {
  for (const int count : {1, 2, 5}) {
    Threads threads(count);
    EXPECT_EQ(threads.count(), count);
    for (const std::size_t tasks : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> done(tasks);
      threads.ForEach(tasks, [&](std::size_t index, int thread) {
        EXPECT_LT(thread, count);
        ++done[index];
      });
      for (const auto& one : done) EXPECT_EQ(one, 1);
    }
  }
}

TEST(Threads, RangesTogetherAreAll) {
  Threads threads(3);
  for (const std::size_t size : {0, 1, 99, 100, 101, 5000}) {
    std::vector<std::atomic<int>> done(size);
    threads.ForRanges(size, 100, [&](std::size_t begin, std::size_t end, int /*thread*/) {
      EXPECT_LT(begin, end);
      EXPECT_TRUE(end == size || end - begin >= 100);
      for (std::size_t i = begin; i < end; ++i) ++done[i];
    });
    for (const auto& one : done) EXPECT_EQ(one, 1);
  }
}

TEST(Threads, WhatATaskThrowsArrives) {
  Threads threads(3);
  EXPECT_THROW(threads.ForEach(50,
                               [](std::size_t index, int) {
                                 if (index == 7) throw std::runtime_error("seven");
                               }),
               std::runtime_error);
  std::atomic<int> done = 0;
  threads.ForEach(50, [&](std::size_t, int) { ++done; });
  EXPECT_EQ(done, 50);
}

TEST(Threads, NoTwoTasksAtOnceHaveTheSameThread) {
  Threads threads(4);
  std::vector<std::atomic<int>> busy(4);
  threads.ForEach(2000, [&](std::size_t, int thread) {
    EXPECT_EQ(++busy[static_cast<std::size_t>(thread)], 1);
    --busy[static_cast<std::size_t>(thread)];
  });
}

}  // namespace
}  // namespace warren::histgbt
