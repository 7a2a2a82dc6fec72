#include "submit/job/failure_arbiter.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace warren::submit {

void FailureCase::PutInOrder() {
  const auto place = [&](const Failure& failure) {
    return std::pair(failure.gone_after.value_or(std::numeric_limits<int>::max()), failure.index != first);
  };
  std::stable_sort(failures.begin(), failures.end(),
                   [&](const Failure& a, const Failure& b) { return place(a) < place(b); });
}

void FailureArbiter::Add(Failure failure, TimePoint now) {
  case_.failures.push_back(std::move(failure));
  WaitFrom(now);
}

void FailureArbiter::Accuse(std::optional<std::size_t> index, const std::string& story, TimePoint now) {
  case_.first = index;
  case_.story = story;
  WaitFrom(now);
}

void FailureArbiter::WaitFrom(TimePoint now) {
  if (pending()) return;
  deadline_ = now + kSettleTime;
  last_deadline_ = now + kPatienceWithFirst;
}

bool FailureArbiter::IsRipe(bool first_runs) {
  if (!first_runs || *deadline_ >= last_deadline_) return true;
  *deadline_ += kSettleTime;
  return false;
}

FailureCase FailureArbiter::Take() {
  FailureCase taken = std::move(case_);
  Clear();
  return taken;
}

}  // namespace warren::submit
