#include "submit/cluster/host_losses.h"

#include <fmt/format.h>

#include <algorithm>

namespace warren::submit {

bool HostLosses::Add(const std::string& host, bool rests, TimePoint now) {
  Record& record = hosts_[host];
  const bool was_left_out = IsLeftOut(host, now);
  if (record.left_out_until && !was_left_out) record = {};
  record.losses.push_back(now);
  while (now - record.losses.front() > kLossMemory) record.losses.pop_front();
  if (rests) record.rests_until = now + kHostRest;
  if (was_left_out || record.losses.size() >= kMostLosses) record.left_out_until = now + kLossMemory;
  return record.left_out_until && !was_left_out;
}

bool HostLosses::IsLeftOut(const std::string& host, TimePoint now) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.left_out_until && now < *found->second.left_out_until;
}

std::optional<TimePoint> HostLosses::AvoidedUntil(const std::string& host, TimePoint now) const {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return std::nullopt;
  const std::optional<TimePoint> until =
      std::max(found->second.rests_until, found->second.left_out_until);  // nullopt is less than any time
  return until && now < *until ? until : std::nullopt;
}

std::string LossesStory(const std::string& host) {
  return fmt::format("{} has lost {} workers within {} minutes", host, kMostLosses, kLossMemory.count());
}

}  // namespace warren::submit
