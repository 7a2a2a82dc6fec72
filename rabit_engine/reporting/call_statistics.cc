#include "rabit_engine/reporting/call_statistics.h"

#include <algorithm>
#include <string>

namespace warren::reporting {
namespace {

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// Returns Describe(tag) without "(call N)": the call's number is reported separately.
std::string NameOf(const CallTag& tag) {
  const std::string text = Describe(tag);
  return text.substr(0, text.rfind(" (call "));
}

}  // namespace

void CallStatistics::Enter(const CallTag& tag, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  tag_ = tag;
  inside_ = true;
  since_ = now;
}

void CallStatistics::Leave(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(inside_, false)) return;
  if (now - since_ > kLongCall) KeepWait({tag_->sequence, Seconds(now - since_)});
  since_ = now;
}

/// Adds a wait; if there are too many, drops the shortest.
void CallStatistics::KeepWait(const wire::ReportedWait& wait) {
  if (waits_.size() < wire::kMaxReportedWaits) return waits_.push_back(wait);
  ++waits_dropped_;
  const auto shortest = std::ranges::min_element(waits_, {}, &wire::ReportedWait::seconds);
  if (shortest->seconds >= wait.seconds) return;
  waits_.erase(shortest);  // erase keeps the others in call order
  waits_.push_back(wait);
}

void CallStatistics::Count(Collective collective, std::string_view algorithm, std::uint64_t bytes,
                           std::chrono::nanoseconds time) {
  const std::lock_guard lock(mutex_);
  Sum& sum = sums_[{collective, algorithm}];
  ++sum.calls;
  sum.bytes += bytes;
  sum.time += time;
}

CallStatistics::Snapshot CallStatistics::Take(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  Snapshot snapshot;
  if (tag_) snapshot.call = {tag_->sequence, NameOf(*tag_), inside_, Seconds(now - since_)};
  for (const auto& [kind, sum] : sums_) {
    snapshot.traffic.push_back(
        {std::string(Name(kind.first)), std::string(kind.second), sum.calls, sum.bytes, Seconds(sum.time)});
  }
  snapshot.waits.swap(waits_);
  snapshot.waits_dropped = std::exchange(waits_dropped_, 0);
  snapshot.world = world_;
  return snapshot;
}

void CallStatistics::PutBack(Snapshot snapshot) {
  const std::lock_guard lock(mutex_);
  if (snapshot.world != world_) return;
  waits_.swap(snapshot.waits);  // the earlier waits come first
  waits_dropped_ += snapshot.waits_dropped;
  for (const wire::ReportedWait& wait : snapshot.waits) KeepWait(wait);
}

void CallStatistics::BeginWorld() {
  const std::lock_guard lock(mutex_);
  tag_.reset();
  inside_ = false;
  waits_.clear();
  waits_dropped_ = 0;
  ++world_;
}

}  // namespace warren::reporting
