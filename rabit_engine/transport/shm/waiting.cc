#include "rabit_engine/transport/shm/waiting.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "rabit_engine/core/error.h"
#include "rabit_engine/transport/late_peer.h"
#include "rabit_engine/transport/shm/futex.h"

namespace warren {
namespace {

/// Turns of one wait: enough for every rank of a crowded core to have had one. A sleeper costs its waker a
/// system call of several microseconds.
constexpr auto kYield = std::chrono::microseconds(300);
/// Nothing that waits takes as long for a turn.
constexpr auto kLongTurn = std::chrono::milliseconds(1);
/// Waits that go to sleep at once before yielding is tried again: one after a long turn that stands alone
/// (the machine had something else to do for a moment), twice as many after each that soon follows another.
constexpr int kMostSleepsAtOnce = 64;
constexpr int kGoodTurnsToForgive = 64;

}  // namespace

bool Yielding::Turn() {
  if (sleep_at_once_ > 0) {
    --sleep_at_once_;
    return false;
  }
  const Clock::time_point before = turns_++ == 0 ? begin_ = Clock::now() : last_;
  if (before - begin_ > kYield) return false;
  sched_yield();
  last_ = Clock::now();
  if (last_ - before > kLongTurn) {
    penalty_ = std::clamp(2 * penalty_, 1, kMostSleepsAtOnce);
    sleep_at_once_ = penalty_;
    good_turns_ = 0;
  } else if (++good_turns_ == kGoodTurnsToForgive) {
    penalty_ /= 2;
    good_turns_ = 0;
  }
  return true;
}

void Waiter::Sleep(int local, std::uint32_t bell) {
  Clock::duration limit = kLookAround;
  if (deadline_ != kNoDeadline) limit = std::clamp<Clock::duration>(deadline_ - Clock::now(), {}, limit);
  FutexWait(segment_.lines(local).bell, bell, limit);
}

void Waiter::LookAround(int awaited, const std::vector<int>& lost, Clock::duration waited) {
  ThrowIfAborted();
  if (!lost.empty()) ThrowLost(lost.front());
  const int rank = segment_.ranks()[awaited];
  if (lookout_ != nullptr) {
    const Interest interest{rank, false, true};
    lookout_->LookAround({&interest, 1}, waited);
  }
  ThrowIfLate(rank, waited);
}

void Waiter::ThrowIfAborted() {
  const auto aborted = segment_.aborted();
  if (!aborted) return;
  const int me = segment_.ranks()[segment_.local_index()];
  const std::string why = aborted->lost == aborted->by
                              ? std::string("gave up after an error")
                              : fmt::format("was lost, as rank {} has noticed", aborted->by);
  throw LostPeer(aborted->lost, fmt::format("rank {}: the collective cannot end because rank {} {}. Look at "
                                            "what rank {} printed last.",
                                            me, aborted->lost, why, aborted->lost));
}

void Waiter::ThrowLost(int rank) {
  segment_.Abort(rank);
  const int me = segment_.ranks()[segment_.local_index()];
  throw LostPeer(rank,
                 fmt::format("rank {}: rank {}, on the same host, has ended without being done", me, rank));
}

void Waiter::ThrowIfLate(int awaited_rank, Clock::duration waited) {
  if (Clock::now() < deadline_) return;
  const int me = segment_.ranks()[segment_.local_index()];
  ThrowLate(me, awaited_rank, fmt::format("rank {}, on the same host", awaited_rank), waited);
}

}  // namespace warren
