#include "rabit_engine/engine/mixed_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "rabit_engine/transport/late_peer.h"

namespace warren {

void MixedTransport::Connect(std::span<const int> peers) {
  std::vector<int> remote;
  for (const int peer : peers) {
    if (!local_.Reaches(peer)) remote.push_back(peer);
  }
  remote_.Connect(remote);
}

void MixedTransport::OnWait(std::span<const Interest> awaited, Clock::time_point since,
                            Clock::time_point looked) {
  local_.ThrowIfLost({});
  if (wait_observer_ != nullptr) wait_observer_->OnWait(awaited, since, looked);
}

int MixedTransport::WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline) {
  return wait_observer_ != nullptr ? wait_observer_->WhoIsLate(awaited, deadline) : FirstOf(awaited, rank());
}

void MixedTransport::Wait(std::span<const Interest> interests, Clock::time_point deadline) {
  // A TCP link to a peer on this host, made by the bootstrap, carries no data.
  remote_interests_.clear();
  std::copy_if(interests.begin(), interests.end(), std::back_inserter(remote_interests_),
               [this](const Interest& interest) { return !local_.Reaches(interest.peer); });
  const bool all_local = remote_interests_.empty();
  const auto ready = [&] {
    if (local_.AnyReady(interests) || local_.is_interrupted()) return true;
    if (all_local) return false;
    return remote_.Look(remote_interests_);
  };
  if (ready()) return;
  const Clock::time_point begin = Clock::now();
  WaitInPhases(all_local ? local_.CoreOf(interests) : PeerCore::kCrowded, wait_policy_, ready, [&] {
    local_.Sleep(interests, remote_.descriptor(), kLookAround);
    const Clock::time_point now = Clock::now();
    remote_.TakeEvents();
    if (ready()) return;
    remote_.ThrowIfLost(remote_interests_);
    remote_.ThrowIfHostIsSilent();
    local_.ThrowIfLost(interests);
    if (wait_observer_ != nullptr) wait_observer_->OnWait(interests, begin, now);
    if (now < deadline) return;
    const int late = WhoIsLate(interests, deadline);
    if (late < 0) return;
    ThrowLate(rank(), late,
              local_.Reaches(late) ? fmt::format("rank {}, on the same host", late) : remote_.PeerName(late),
              now - begin);
  });
}

void MixedTransport::Abort(int lost_rank, int shortage) noexcept {
  local_.Abort(lost_rank, shortage);
  remote_.Abort(lost_rank, shortage);
}

}  // namespace warren
