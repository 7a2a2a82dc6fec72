// Waits in shared memory: no member keeps sleeping after a wake-up, waits for a dead member, or spins when
// that is useless.
#include "rabit_engine/host/waiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <optional>
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
using testing::Property;
using testing::Throws;
using testing::ThrowsMessage;

/// Waits until a member's counter reaches `value`, as the collectives do.
void Await(HostSegment& segment, Waiter& waiter, int local, std::uint64_t value) {
  waiter.Until(local, [&] { return segment.lines(local).input.load(std::memory_order_acquire) >= value; });
}
void Publish(HostSegment& segment, std::uint64_t value) {
  segment.lines(segment.local_index()).input.store(value, std::memory_order_seq_cst);
  segment.RingBell();
}

/// Pins this thread to one core while the object lives.
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

// A missed bell costs 20 ms, so 20,000 missed bells would exceed the test's time limit.
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
  EXPECT_THAT([&] { Await(members[0], waiter, 1, 1); },
              Throws<LostPeer>(Property(&LostPeer::rank, Members::RankOf(2))));
  // Member 1 learns of the loss from member 0, without checking the process of member 2.
  Waiter other(members[1]);
  EXPECT_THROW(Await(members[1], other, 0, 1), LostPeer);
  EXPECT_EQ(members[1].aborted()->lost, Members::RankOf(2));
}

TEST(Waiter, AsleepIsWokenByAnAbort) {
  Members members(2);
  std::thread gives_up([&] {
    std::this_thread::sleep_for(milliseconds(30));  // until the other member sleeps
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
  EXPECT_THAT([&] { Await(members[0], waiter, 1, 1); }, ThrowsMessage<TimedOut>(HasSubstr("rank 3")));
}

TEST(Spinning, IsVainWithMoreMembersThanCores) {
  const Pinned pinned(FirstCore());
  Members members(2);
  EXPECT_TRUE(members[0].oversubscribed());
  EXPECT_EQ(members[0].CoreOf(1), PeerCore::kCrowded);
}

TEST(Spinning, IsVainOnceThePeerWasSeenOnTheSameCore) {
  Members members(2);
  if (members[0].oversubscribed()) GTEST_SKIP() << "SKIPPED: needs two cores";
  EXPECT_EQ(members[0].CoreOf(1), PeerCore::kOther) << "nothing is known of the peer yet";
  const Pinned pinned(FirstCore());
  members[1].SayCore();  // publishes the core that this thread is pinned to
  EXPECT_EQ(members[0].CoreOf(1), PeerCore::kThis);
}

TEST(Spinning, IsNotDoneByOneThatWasToldToGiveWay) {
  Members members(2);
  members[0].SetOversubscribed(true);
  EXPECT_EQ(members[0].CoreOf(1), PeerCore::kCrowded);
}

/// Simulates waits, with a fake clock, for a peer that answers only after some turns of yielding.
class Waits {
 public:
  explicit Waits(PeerCore peer) : peer_(peer) {}

  /// Returns the wait's first phase. If this is not kSleep but the wait has to sleep nevertheless, returns
  /// nullopt.
  std::optional<WaitPhase> Wait(int turns = 1, std::chrono::microseconds turn = microseconds(1)) {
    const WaitPhase first = policy_.Begin(peer_);
    if (first == WaitPhase::kSleep) return first;
    if (first == WaitPhase::kSpin) policy_.SpunInVain();
    for (int i = 0; i < turns; ++i) {
      if (!policy_.MayYield(now_)) return std::nullopt;
      policy_.Yielded(now_ += turn);
    }
    policy_.YieldedWell();
    return first;
  }
  void SpinWell() {
    while (policy_.Begin(PeerCore::kOther) != WaitPhase::kSpin) {
    }
    policy_.SpunWell();
  }

 private:
  PeerCore peer_;
  WaitPolicy policy_;
  Clock::time_point now_;
};

/// Makes waits until `how_many` of them have begun with `kind`. Returns the number of other waits before each
/// of these `how_many` waits.
std::vector<int> PausesBefore(WaitPhase kind, int how_many, Waits& waits) {
  std::vector<int> pauses;
  for (int pause = 0; static_cast<int>(pauses.size()) < how_many; ++pause) {
    if (waits.Wait() != kind) continue;
    pauses.push_back(pause);
    pause = -1;
  }
  return pauses;
}

TEST(Spinning, IsLeftOutForEverMoreWaitsWhereTheAnswerComesWithTheFirstTurn) {
  Waits waits(PeerCore::kOther);
  EXPECT_THAT(PausesBefore(WaitPhase::kSpin, 10, waits), ElementsAre(0, 1, 2, 4, 8, 16, 32, 64, 64, 64));
  waits.SpinWell();
  EXPECT_THAT(PausesBefore(WaitPhase::kSpin, 3, waits), ElementsAre(0, 1, 2));
}

TEST(Spinning, GoesOnWhereTheAnswerTakesLongerThanATurn) {
  Waits waits(PeerCore::kOther);
  for (int wait = 0; wait < 100; ++wait) EXPECT_EQ(waits.Wait(3), WaitPhase::kSpin);
}

TEST(Parting, IsTriedAtOnceAndThenEverMoreSeldom) {
  Waits waits(PeerCore::kThis);
  EXPECT_THAT(PausesBefore(WaitPhase::kSleep, 13, waits),
              ElementsAre(0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024));
  waits.SpinWell();
  EXPECT_EQ(waits.Wait(), WaitPhase::kSleep) << "together again, after they had been apart";
}

TEST(Parting, IsTriedWhereVainSpinsSayThatACoreIsShared) {
  Waits waits(PeerCore::kOther);
  EXPECT_EQ(waits.Wait(), WaitPhase::kSpin);
  EXPECT_EQ(waits.Wait(), WaitPhase::kSleep);
}

TEST(Parting, IsNotForMoreRanksThanCores) {
  Waits waits(PeerCore::kCrowded);
  for (int wait = 0; wait < 1'000; ++wait) EXPECT_EQ(waits.Wait(), WaitPhase::kYield);
}

TEST(Yielding, GoesOnForAWhileAndNotForEver) {
  Waits waits(PeerCore::kCrowded);
  EXPECT_EQ(waits.Wait(100), WaitPhase::kYield);
  EXPECT_EQ(waits.Wait(1'000), std::nullopt);
}

TEST(Yielding, SleepsAtOnceForEverMoreWaitsAfterTurnsThatTookATimeSlice) {
  Waits waits(PeerCore::kCrowded);
  std::vector<int> sleeps;  // the number of waits that slept before each wait that yielded
  for (int slept = 0; sleeps.size() < 9; ++slept) {
    if (waits.Wait(1, milliseconds(3)) == std::nullopt) continue;
    sleeps.push_back(slept);
    slept = -1;
  }
  EXPECT_THAT(sleeps, ElementsAre(0, 1, 2, 4, 8, 16, 32, 64, 64));
}

TEST(Yielding, ForgivesWhatDoesNotComeAgain) {
  Waits waits(PeerCore::kCrowded);
  waits.Wait(1, milliseconds(3));
  EXPECT_EQ(waits.Wait(), std::nullopt);
  for (int wait = 0; wait < 1'000; ++wait) EXPECT_EQ(waits.Wait(), WaitPhase::kYield);
}

}  // namespace
}  // namespace warren
