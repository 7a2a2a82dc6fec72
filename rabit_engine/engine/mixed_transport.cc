#include "rabit_engine/engine/mixed_transport.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "rabit_engine/transport/late_peer.h"

namespace warren {

void MixedTransport::Connect(std::span<const int> peers) {
  std::vector<int> remote;
  for (const int peer : peers) {
    if (!local_.Reaches(peer)) remote.push_back(peer);
  }
  remote_.Connect(remote);
}

void MixedTransport::OnWait(std::span<const Interest> awaited, Clock::time_point since) {
  local_.ThrowIfLost({});
  if (wait_observer_ != nullptr) wait_observer_->OnWait(awaited, since);
}

void MixedTransport::Wait(std::span<const Interest> interests, Clock::time_point deadline) {
  // A local peer may have a TCP link too, made by the bootstrap and never used.
  remote_interests_.clear();
  std::copy_if(interests.begin(), interests.end(), std::back_inserter(remote_interests_),
               [this](const Interest& interest) { return !local_.Reaches(interest.peer); });
  const bool all_local = remote_interests_.empty();
  const auto ready = [&] {
    if (local_.AnyReady(interests)) return true;
    if (all_local) return false;
    return remote_.Look(remote_interests_);
  };
  if (ready()) return;
  const Clock::time_point begin = Clock::now();
  WaitInPhases(all_local ? local_.CoreOf(interests) : PeerCore::kCrowded, wait_policy_, ready, [&] {
    local_.Sleep(interests, remote_.descriptor(), kLookAround);
    remote_.TakeEvents();
    if (ready()) return;
    remote_.ThrowIfLost(remote_interests_);
    remote_.ThrowIfHostIsSilent();
    local_.ThrowIfLost(interests);
    const Clock::time_point now = Clock::now();
    if (wait_observer_ != nullptr) wait_observer_->OnWait(interests, begin);
    if (now >= deadline) {
      std::vector<std::string> awaited;
      for (const Interest& interest : interests) {
        awaited.push_back(local_.Reaches(interest.peer)
                              ? fmt::format("rank {}, on the same host", interest.peer)
                              : remote_.PeerName(interest.peer));
      }
      ThrowLate(rank(), interests.empty() ? -1 : interests.front().peer,
                fmt::format("{}", fmt::join(awaited, ", ")), now - begin);
    }
  });
}

void MixedTransport::Abort(int lost_rank) noexcept {
  local_.Abort(lost_rank);
  remote_.Abort(lost_rank);
}

}  // namespace warren
