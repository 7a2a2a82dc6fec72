#include "submit/monitor/waiting_time.h"

#include <algorithm>
#include <cstddef>

namespace warren::submit {
namespace {

/// The maximum number of entries in calls that are not settled. If there are more, e.g. because a rank does
/// not report, the oldest calls are discarded.
constexpr std::size_t kMostKept = std::size_t{1} << 18;

}  // namespace

WaitingTime::WaitingTime(std::size_t world_size) : ranks_(world_size), world_size_(world_size) {}

void WaitingTime::Add(std::size_t rank, const std::vector<wire::ReportedWait>& waits,
                      std::uint64_t last_ended) {
  if (rank >= world_size_) return;
  if (last_ended < ranks_[rank].last_ended) BeginAgain();  // the rank counts from 1 again
  const std::uint64_t before = ranks_[rank].last_ended;
  for (const wire::ReportedWait& wait : waits) {
    // Earlier reports of this rank have covered the calls up to `before`.
    if (wait.call <= before || !(wait.seconds > 0)) continue;
    calls_[wait.call].seconds.emplace_back(rank, wait.seconds);
    ++num_kept_;
  }
  ranks_[rank].last_ended = last_ended;
  const auto last =
      std::min_element(ranks_.begin(), ranks_.begin() + static_cast<std::ptrdiff_t>(world_size_),
                       [](const Rank& a, const Rank& b) { return a.last_ended < b.last_ended; });
  SettleUpTo(last->last_ended);
  while (num_kept_ > kMostKept) Forget(calls_.begin()->first);
}

void WaitingTime::Forget(std::uint64_t last_ended) {
  while (!calls_.empty() && calls_.begin()->first <= last_ended) {
    num_kept_ -= calls_.begin()->second.seconds.size();
    calls_.erase(calls_.begin());
  }
}

void WaitingTime::BeginAgain() {
  calls_.clear();
  num_kept_ = 0;
  for (Rank& rank : ranks_) rank.last_ended = 0;
}

void WaitingTime::BeginAgain(std::size_t world_size) {
  world_size_ = std::min(world_size, ranks_.size());
  BeginAgain();
}

void WaitingTime::SettleUpTo(std::uint64_t number) {
  while (!calls_.empty() && calls_.begin()->first <= number) {
    const auto call = calls_.begin();
    num_kept_ -= call->second.seconds.size();
    Settle(call->second);
    calls_.erase(call);
  }
}

void WaitingTime::Settle(const Call& call) {
  if (world_size_ < 2) return;
  // A rank that reported nothing spent too little time in the call to count. If there are several such ranks,
  // it is unknown which of them arrived last.
  const std::size_t silent = world_size_ - std::min(call.seconds.size(), world_size_);
  double shortest = 0;
  double longest = 0;
  std::size_t last = ranks_.size();
  for (const auto& [rank, seconds] : call.seconds) {
    if (silent == 0 && (last == ranks_.size() || seconds < shortest)) {
      shortest = seconds;
      last = rank;
    }
    longest = std::max(longest, seconds);
  }
  if (silent == 1) {
    std::vector<bool> said(world_size_);
    for (const auto& [rank, seconds] : call.seconds) said[rank] = true;
    last = static_cast<std::size_t>(std::find(said.begin(), said.end(), false) - said.begin());
  }
  for (const auto& [rank, seconds] : call.seconds) ranks_[rank].waited += seconds - shortest;
  if (last < ranks_.size()) ranks_[last].made_wait += longest - shortest;
}

}  // namespace warren::submit
