#include "rabit_engine/host/waiter.h"

#include <fmt/format.h>

#include <algorithm>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/host/kernel.h"
#include "rabit_engine/transport/late_peer.h"

namespace warren {

void Waiter::Sleep(int local, std::uint32_t bell) {
  Clock::duration limit = kLookAround;
  const Clock::time_point now = Clock::now();
  if (now < deadline_ && deadline_ != kNoDeadline) limit = std::min<Clock::duration>(deadline_ - now, limit);
  FutexWait(segment_.lines(local).bell, bell, limit);
}

void Waiter::CheckPeers(int awaited, const std::vector<int>& lost, bool has_left, Clock::time_point begin,
                        Clock::time_point looked) {
  ThrowIfAborted();
  if (!lost.empty()) ThrowLost(lost.front());
  if (has_left) ThrowLeft(awaited);
  const Interest interest{segment_.ranks()[awaited], false, false};
  try {
    if (wait_observer_ != nullptr) wait_observer_->OnWait({&interest, 1}, begin, looked);
  } catch (const LostPeer&) {
    ThrowIfAborted();  // if a rank has given up meanwhile, the reason is more helpful
    throw;
  }
  ThrowIfLate(wait_observer_, {&interest, 1}, begin);
}

void Waiter::ThrowIfAborted() {
  const auto aborted = segment_.aborted();
  if (!aborted) return;
  const int me = segment_.rank();
  if (aborted->lost == me) {
    throw LostPeer(
        aborted->by,
        fmt::format(
            "rank {}: rank {} gave up on this rank: it had waited too long for it, or had lost it. Look at what rank {} printed last.",
            me, aborted->by, aborted->by));
  }
  const std::string gave_up = aborted->shortage != 0
                                  ? fmt::format("gave up {}", DescribeShortage(aborted->shortage))
                                  : std::string("gave up after an error");
  const std::string lost =
      fmt::format("{}, as rank {} has noticed", aborted->shortage != 0 ? gave_up : "was lost", aborted->by);
  throw LostPeer(
      aborted->lost,
      fmt::format("rank {}: the collective cannot end because rank {} {}. Look at what rank {} printed last.",
                  me, aborted->lost, aborted->lost == aborted->by ? gave_up : lost, aborted->lost),
      aborted->shortage);
}

void Waiter::ThrowLost(int rank) {
  segment_.Abort(rank);
  const int me = segment_.rank();
  throw LostPeer(rank,
                 fmt::format("rank {}: rank {}, on the same host, has ended before it was done", me, rank));
}

void Waiter::ThrowLeft(int local) {
  const int rank = segment_.ranks()[local];
  segment_.Abort(rank);
  throw LostPeer(
      rank,
      fmt::format(
          "rank {}: rank {}, on the same host, has freed this communicator, and a call in it waits for that rank",
          segment_.rank(), rank));
}

void Waiter::ThrowIfLate(WaitObserver* observer, std::span<const Interest> awaited, Clock::time_point begin) {
  const Clock::time_point now = Clock::now();
  if (now < deadline_) return;
  const int me = segment_.rank();
  const int late = observer != nullptr ? observer->WhoIsLate(awaited, deadline_) : FirstOf(awaited, me);
  if (late < 0) return;
  ThrowLate(me, late, fmt::format("rank {}, on the same host", late), now - begin);
}

}  // namespace warren
