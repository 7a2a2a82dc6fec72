// Waiting in shared memory: nobody is forgotten asleep, nobody waits for the dead, nobody spins where it is
// vain.
#include "rabit_engine/host/waiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "rabit_engine/base/error.h"
#include "tests/rabit_engine/host/shm_members.h"

namespace warren {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

/// Waits for the counter of a member as the collectives do.
void Await(HostSegment& segment, Waiter& waiter, int local, std::uint64_t value) {
  waiter.Until(local, [&] { return segment.lines(local).input.load(std::memory_order_acquire) >= value; });
}
void Publish(HostSegment& segment, std::uint64_t value) {
  segment.lines(segment.local_index()).input.store(value, std::memory_order_seq_cst);
  segment.RingBell();
}

/// Keeps this thread on one core while it lives.
class Pinned {
 public:
  explicit Pinned(int core) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~Pinned() { sched_setaffinity(0, sizeof before_, &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

int FirstCore() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  int core = 0;
  while (!CPU_ISSET(core, &set)) ++core;
  return core;
}

// A bell that is not heard costs 20 ms: this many would take minutes, and the test's time limit.
TEST(Waiter, HearsEveryBell) {
  constexpr std::uint64_t kTurns = 20'000;
  for (const bool give_way : {false, true}) {
    Members members(2);
    members.OnAll([&](int me) {
      HostSegment& segment = members[me];
      if (give_way) segment.SetOversubscribed(true);
      Waiter waiter(segment);
      for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
        if (me == 0) Publish(segment, turn);
        Await(segment, waiter, 1 - me, turn);
        if (me == 1) Publish(segment, turn);
      }
    });
  }
}

TEST(Waiter, NamesTheMemberWhoseProcessHasEnded) {
  Members members(3);
  members.End(2);
  Waiter waiter(members[0]);
  try {
    Await(members[0], waiter, 1, 1);
    FAIL() << "nothing was thrown";
  } catch (const LostPeer& lost) {
    EXPECT_EQ(lost.rank(), Members::RankOf(2));
  }
  // The others learn it without looking themselves.
  Waiter other(members[1]);
  EXPECT_THROW(Await(members[1], other, 0, 1), LostPeer);
  EXPECT_EQ(members[1].aborted()->lost, Members::RankOf(2));
}

TEST(Waiter, AsleepIsWokenByAnAbort) {
  Members members(2);
  std::thread gives_up([&] {
    std::this_thread::sleep_for(milliseconds(30));  // until the other sleeps
    members[1].Abort(Members::RankOf(1));
  });
  Waiter waiter(members[0]);
  EXPECT_THROW(Await(members[0], waiter, 1, 1), LostPeer);
  gives_up.join();
}

TEST(Waiter, TakesWhatAMemberDidBeforeItLeft) {
  Members members(2);
  Publish(members[1], 1);
  members.Leave(1);
  Waiter waiter(members[0]);
  Await(members[0], waiter, 1, 1);
  EXPECT_THROW(Await(members[0], waiter, 1, 2), LostPeer);
}

TEST(Waiter, NamesTheRankThatDoesNotComeInTime) {
  Members members(2);
  Waiter waiter(members[0]);
  waiter.set_deadline(Clock::now() + milliseconds(50));
  try {
    Await(members[0], waiter, 1, 1);
    FAIL() << "nothing was thrown";
  } catch (const TimedOut& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 3"));
  }
}

TEST(Spinning, IsVainWithMoreMembersThanCores) {
  const Pinned pinned(FirstCore());
  Members members(2);
  EXPECT_TRUE(members[0].oversubscribed());
  EXPECT_FALSE(members[0].MayAnswerWhileSpinning(1));
}

TEST(Spinning, IsVainOnceThePeerWasSeenOnTheSameCore) {
  Members members(2);
  if (members[0].oversubscribed()) GTEST_SKIP() << "SKIPPED: needs two cores";
  EXPECT_TRUE(members[0].MayAnswerWhileSpinning(1)) << "nothing is known of the peer yet";
  const Pinned pinned(FirstCore());
  members[1].MayAnswerWhileSpinning(0);  // says where it is: here
  EXPECT_FALSE(members[0].MayAnswerWhileSpinning(1));
}

TEST(Spinning, IsNotDoneByOneThatWasToldToGiveWay) {
  Members members(2);
  members[0].SetOversubscribed(true);
  EXPECT_FALSE(members[0].MayAnswerWhileSpinning(1));
}

TEST(Yielding, SleepsAtOnceAfterATurnThatTookATimeSlice) {
  const int core = FirstCore();
  std::atomic<bool> computing = true;
  std::thread neighbour([&] {
    const Pinned pinned(core);
    while (computing) {
    }
  });
  bool slept_at_once = false;
  {
    const Pinned pinned(core);
    WaitPolicy policy;
    for (int wait = 0; wait < 10'000 && !slept_at_once; ++wait) {
      policy.Begin();
      slept_at_once = !policy.Turn();  // the first turn of a wait is refused for no other reason
    }
  }
  computing = false;
  neighbour.join();
  EXPECT_TRUE(slept_at_once);
}

TEST(Yielding, GoesOnForAWhileAndNotForEver) {
  WaitPolicy policy;
  policy.Begin();
  int turns = 0;
  while (policy.Turn()) ++turns;
  EXPECT_GT(turns, 0);
}

/// A wait that spins if it may, in vain, and then finds the answer after so many turns.
bool SpinsAtFirst(WaitPolicy& policy, int turns) {
  const bool spins = policy.Begin();
  if (spins) policy.SpunInVain();
  for (int turn = 0; turn < turns; ++turn) policy.Turn();
  policy.YieldedWell();
  return spins;
}

TEST(Spinning, IsLeftOutForEverMoreWaitsWhereTheAnswerComesWithTheFirstTurn) {
  WaitPolicy policy;
  std::vector<int> pauses;  // waits without spinning, between those with
  for (int spins = 0, pause = 0; spins < 10; ++pause) {
    if (!SpinsAtFirst(policy, 1)) continue;
    pauses.push_back(pause);
    pause = -1;
    ++spins;
  }
  EXPECT_THAT(pauses, ElementsAre(0, 1, 2, 4, 8, 16, 32, 64, 64, 64));
  policy.Begin();
  policy.SpunWell();
  while (!SpinsAtFirst(policy, 1)) {
  }
  EXPECT_FALSE(SpinsAtFirst(policy, 1));
  EXPECT_TRUE(SpinsAtFirst(policy, 1)) << "one that went well is not forgotten";
}

TEST(Spinning, GoesOnWhereTheAnswerTakesLongerThanATurn) {
  WaitPolicy policy;
  for (int wait = 0; wait < 100; ++wait) EXPECT_TRUE(SpinsAtFirst(policy, 3));
}

}  // namespace
}  // namespace warren
