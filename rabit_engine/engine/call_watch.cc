#include "rabit_engine/engine/call_watch.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace warren {
namespace {

// A wait after which something may be wrong: longer than any that is part of moving bytes.
constexpr std::chrono::milliseconds kPatience{150};
// Whoever is not linked with this rank may have left since it was asked.
constexpr std::chrono::milliseconds kAskAgain{500};

}  // namespace

void CallWatch::Begin(CallTag& tag) {
  tag.before = digest_;
  digest_ = DigestWith(tag);
  calls_[tag.sequence % kRememberedCalls] = tag;
  current_ = tag;
  asked_.clear();
  if (segment_ != nullptr) segment_->SayCall(tag);
}

const CallTag* CallWatch::Remembered(std::uint32_t sequence) const {
  const CallTag& tag = calls_[sequence % kRememberedCalls];
  return tag.sequence == sequence && sequence != 0 ? &tag : nullptr;
}

void CallWatch::OnWait(std::span<const Interest> awaited, std::chrono::nanoseconds waited) {
  on_links_.clear();
  std::copy_if(awaited.begin(), awaited.end(), std::back_inserter(on_links_),
               [this](const Interest& interest) {
                 return segment_ == nullptr || std::find(segment_->ranks().begin(), segment_->ranks().end(),
                                                         interest.peer) == segment_->ranks().end();
               });
  // Whoever waits in shared memory hears nothing of the links otherwise.
  tcp_.TakeEvents();
  if (tcp_.AnyReady(on_links_)) return;
  tcp_.ThrowIfLost(on_links_);
  tcp_.ThrowIfHostIsSilent();
  if (job_ != nullptr) job_->LookForLosses();
  if (current_.sequence != 0) {
    CompareWithHost();
    CompareWithAskers();
  }
  if (waited >= kPatience) Ask();
}

void CallWatch::CompareWithHost() {
  if (segment_ == nullptr) return;
  for (int local = 0; local < segment_->local_size(); ++local) {
    const auto theirs = segment_->CallOf(local, current_.sequence);
    if (!theirs || *theirs == current_) continue;
    segment_->ThrowIfCallsDiffer(local, current_.sequence);
    ThrowDifferentCalls(tcp_.rank(), current_, segment_->ranks()[local], *theirs);
  }
}

void CallWatch::CompareWithAskers() {
  for (const auto& [rank, theirs] : tcp_.questions()) {
    const CallTag* const own = Remembered(theirs.sequence);
    if (own != nullptr && *own != theirs) ThrowDifferentCalls(tcp_.rank(), *own, rank, theirs);
  }
}

void CallWatch::Ask() {
  const Clock::time_point now = Clock::now();
  const bool again = now - asked_last_ >= kAskAgain;
  if (again) asked_last_ = now;
  for (const Interest& interest : on_links_) {
    const bool was_asked = std::find(asked_.begin(), asked_.end(), interest.peer) != asked_.end();
    if (was_asked && !(again && !tcp_.IsLinked(interest.peer))) continue;
    if (!was_asked) asked_.push_back(interest.peer);
    tcp_.Ask(interest.peer, current_);
  }
}

}  // namespace warren
