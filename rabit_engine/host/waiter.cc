#include "rabit_engine/host/waiter.h"

#include <fmt/format.h>

#include <algorithm>

#include "rabit_engine/base/error.h"
#include "rabit_engine/host/futex.h"
#include "rabit_engine/transport/late_peer.h"

namespace warren {

void Waiter::Sleep(int local, std::uint32_t bell) {
  Clock::duration limit = kLookAround;
  if (deadline_ != kNoDeadline) limit = std::clamp<Clock::duration>(deadline_ - Clock::now(), {}, limit);
  FutexWait(segment_.lines(local).bell, bell, limit);
}

void Waiter::CheckPeers(int awaited, const std::vector<int>& lost, bool has_left, Clock::time_point begin) {
  ThrowIfAborted();
  if (!lost.empty()) ThrowLost(lost.front());
  if (has_left) ThrowLeft(awaited);
  const int rank = segment_.ranks()[awaited];
  if (wait_observer_ != nullptr) {
    const Interest interest{rank, false, false};
    wait_observer_->OnWait({&interest, 1}, begin);
  }
  ThrowIfLate(rank, Clock::now() - begin);
}

void Waiter::ThrowIfAborted() {
  const auto aborted = segment_.aborted();
  if (!aborted) return;
  const int me = segment_.ranks()[segment_.local_index()];
  if (aborted->lost == me) {
    throw LostPeer(
        aborted->by,
        fmt::format("rank {}: rank {} has given this rank up: it had waited for it too long, or had "
                    "lost it. Look at what rank {} printed last.",
                    me, aborted->by, aborted->by));
  }
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

void Waiter::ThrowLeft(int local) {
  const int rank = segment_.ranks()[local];
  segment_.Abort(rank);
  throw LostPeer(rank, fmt::format("rank {}: rank {}, on the same host, has freed this communicator, and a "
                                   "call in it waits for that rank",
                                   segment_.ranks()[segment_.local_index()], rank));
}

void Waiter::ThrowIfLate(int awaited_rank, Clock::duration waited) {
  if (Clock::now() < deadline_) return;
  const int me = segment_.ranks()[segment_.local_index()];
  ThrowLate(me, awaited_rank, fmt::format("rank {}, on the same host", awaited_rank), waited);
}

}  // namespace warren
