#include "rabit_engine/transport/mixed_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "rabit_engine/core/error.h"

namespace warren {
namespace {

/// How long a sleeper may overlook a local death; a remote one wakes it.
constexpr auto kLookAround = std::chrono::milliseconds(20);

}  // namespace

void MixedTransport::Connect(std::span<const int> peers) {
  std::vector<int> remote;
  for (const int peer : peers) {
    if (!local_.Reaches(peer)) remote.push_back(peer);
  }
  remote_.Connect(remote);
}

bool MixedTransport::AnyReady(std::span<const Interest> interests) {
  if (local_.AnyReady(interests)) return true;
  remote_.TakeEvents();
  return remote_.AnyReady(remote_interests_);
}

void MixedTransport::Wait(std::span<const Interest> interests, Clock::time_point deadline) {
  // A local peer may have a TCP link too, made by the bootstrap and never used.
  remote_interests_.clear();
  std::copy_if(interests.begin(), interests.end(), std::back_inserter(remote_interests_),
               [this](const Interest& interest) { return !local_.Reaches(interest.peer); });
  if (AnyReady(interests)) return;
  yielding_.Begin();
  while (yielding_.Turn()) {
    if (AnyReady(interests)) return;
  }
  while (true) {
    local_.Sleep(interests, remote_.descriptor(), kLookAround);
    if (AnyReady(interests)) return;
    remote_.ThrowIfLost(remote_interests_);
    remote_.ThrowIfHostIsSilent();
    local_.ThrowIfLost(interests);
    if (Clock::now() >= deadline) {
      const int awaited = interests.empty() ? rank() : interests.front().peer;
      throw TimedOut(
          fmt::format("rank {}: rank {} did not come to the collective in time (rabit_timeout_sec); it is "
                      "alive but stuck or busy elsewhere",
                      rank(), awaited));
    }
  }
}

void MixedTransport::Abort(int lost_rank) noexcept {
  local_.Abort(lost_rank);
  remote_.Abort(lost_rank);
}

}  // namespace warren
