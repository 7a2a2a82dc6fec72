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

using std::chrono::microseconds;
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

/// Waits of an invented clock.
class Waits {
 public:
  /// A wait that spins if it may, in vain, and ends after so many turns of so long. Returns whether it spun;
  /// `sleeps` becomes true where it had to sleep.
  bool Wait(int turns, std::chrono::microseconds turn, bool& sleeps) {
    const bool spins = policy_.Begin();
    if (spins) policy_.SpunInVain();
    sleeps = false;
    for (int i = 0; i < turns; ++i) {
      sleeps = !policy_.MayYield(now_);
      if (sleeps) return spins;
      policy_.Yielded(now_ += turn);
    }
    policy_.YieldedWell();
    return spins;
  }
  bool Spins(int turns) {
    bool sleeps = false;
    return Wait(turns, microseconds(1), sleeps);
  }
  bool Sleeps(int turns, std::chrono::microseconds turn) {
    bool sleeps = false;
    Wait(turns, turn, sleeps);
    return sleeps;
  }
  WaitPolicy& policy() { return policy_; }

 private:
  WaitPolicy policy_;
  Clock::time_point now_;
};

TEST(Spinning, IsLeftOutForEverMoreWaitsWhereTheAnswerComesWithTheFirstTurn) {
  Waits waits;
  std::vector<int> pauses;  // waits without spinning, before each that spins
  for (int pause = 0; pauses.size() < 10; ++pause) {
    if (!waits.Spins(1)) continue;
    pauses.push_back(pause);
    pause = -1;
  }
  EXPECT_THAT(pauses, ElementsAre(0, 1, 2, 4, 8, 16, 32, 64, 64, 64));
}

TEST(Spinning, ComesBackAtOnceWhereItWentWell) {
  Waits waits;
  for (int wait = 0; wait < 100; ++wait) waits.Spins(1);
  while (!waits.policy().Begin()) {
  }
  waits.policy().SpunWell();
  EXPECT_TRUE(waits.Spins(1));
  EXPECT_FALSE(waits.Spins(1));
  EXPECT_TRUE(waits.Spins(1));
}

TEST(Spinning, GoesOnWhereTheAnswerTakesLongerThanATurn) {
  Waits waits;
  for (int wait = 0; wait < 100; ++wait) EXPECT_TRUE(waits.Spins(3));
}

TEST(Yielding, GoesOnForAWhileAndNotForEver) {
  Waits waits;
  EXPECT_FALSE(waits.Sleeps(100, microseconds(1)));
  EXPECT_TRUE(waits.Sleeps(1'000, microseconds(1)));
}

TEST(Yielding, SleepsAtOnceForEverMoreWaitsAfterTurnsThatTookATimeSlice) {
  Waits waits;
  std::vector<int> sleeps;  // waits that slept, before each that had a turn
  for (int slept = 0; sleeps.size() < 9; ++slept) {
    if (waits.Sleeps(1, milliseconds(3))) continue;
    sleeps.push_back(slept);
    slept = -1;
  }
  EXPECT_THAT(sleeps, ElementsAre(0, 1, 2, 4, 8, 16, 32, 64, 64));
}

TEST(Yielding, ForgivesWhatDoesNotComeAgain) {
  Waits waits;
  waits.Sleeps(1, milliseconds(3));
  EXPECT_TRUE(waits.Sleeps(1, microseconds(1)));
  for (int wait = 0; wait < 1'000; ++wait) EXPECT_FALSE(waits.Sleeps(1, microseconds(1)));
}

}  // namespace
}  // namespace warren
