#include "rabit_engine/transport/waiting.h"

#include <algorithm>

namespace warren {
namespace {

/// The time that one wait spends yielding before it sleeps: long enough for every rank on a crowded core to
/// get a turn. Waking a sleeper costs a system call of several microseconds.
constexpr auto kYield = std::chrono::microseconds(300);
/// If a single yield takes longer than this, a computing process had the core; a rank that only waits gives
/// it back sooner.
constexpr auto kLongTurn = std::chrono::milliseconds(1);
/// The maximum number of waits that sleep immediately after a long turn. The number is 1 after an isolated
/// long turn, when the machine was briefly busy, and doubles with each long turn that soon follows another.
constexpr int kMostSleepsAtOnce = 64;
constexpr int kGoodTurnsToForgive = 64;
/// If the peer answers within this many turns of yielding after a failed spin, the two ranks probably share a
/// core.
constexpr int kTurnsAtOnce = 2;
/// The maximum number of waits that skip spinning before it is tried again. The number doubles each time a
/// spin, which takes 20 us, fails and the peer then answers within kTurnsAtOnce.
constexpr int kMostWithoutSpinning = 64;
/// The maximum number of waits on a shared core before another sleep that may separate the ranks. The number
/// doubles each time. A wakeup costs about 25 us, a turn of two ranks on one core about 1.5 us for each.
constexpr int kMostWithoutParting = 1024;

}  // namespace

WaitPhase WaitPolicy::Begin(PeerCore peer) {
  turns_ = 0;
  spun_in_vain_ = false;
  if (peer == PeerCore::kCrowded) return WaitPhase::kYield;
  if (peer == PeerCore::kOther) {
    if (without_spinning_ == 0) return WaitPhase::kSpin;
    --without_spinning_;
  }
  if (without_parting_ > 0) {
    --without_parting_;
    return WaitPhase::kYield;
  }
  vain_partings_ = std::clamp(2 * vain_partings_, 1, kMostWithoutParting);
  without_parting_ = vain_partings_;
  return WaitPhase::kSleep;
}

void WaitPolicy::SpunWell() {
  vain_spins_ = 0;
  vain_partings_ = 0;
  without_parting_ = 0;
}

void WaitPolicy::YieldedWell() {
  if (!spun_in_vain_ || turns_ > kTurnsAtOnce) return;
  vain_spins_ = std::clamp(2 * vain_spins_, 1, kMostWithoutSpinning);
  without_spinning_ = vain_spins_;
}

bool WaitPolicy::MayYield(Clock::time_point now) {
  if (sleep_at_once_ > 0) {
    --sleep_at_once_;
    return false;
  }
  if (turns_ == 0) begin_ = now;
  if (now - begin_ > kYield) return false;
  ++turns_;
  turn_ = now;
  return true;
}

void WaitPolicy::Yielded(Clock::time_point now) {
  if (now - turn_ > kLongTurn) {
    penalty_ = std::clamp(2 * penalty_, 1, kMostSleepsAtOnce);
    sleep_at_once_ = penalty_;
    good_turns_ = 0;
  } else if (++good_turns_ == kGoodTurnsToForgive) {
    penalty_ /= 2;
    good_turns_ = 0;
  }
}

}  // namespace warren
