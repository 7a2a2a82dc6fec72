#include "submit/judgement.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace warren::submit {
namespace {

/// How long is waited for the one with which it began while that still runs.
constexpr std::chrono::milliseconds kPatienceWithFirst{5000};

}  // namespace

void FailureCase::PutInOrder() {
  const auto place = [&](const Failure& failure) {
    return std::pair(failure.gone_after.value_or(std::numeric_limits<int>::max()), failure.index != first);
  };
  std::stable_sort(failures.begin(), failures.end(),
                   [&](const Failure& a, const Failure& b) { return place(a) < place(b); });
}

Judgement::Judgement(boost::asio::io_context& io, std::function<bool(std::size_t)> is_running,
                     std::function<void(FailureCase)> judge)
    : timer_(io), is_running_(std::move(is_running)), judge_(std::move(judge)) {}

void Judgement::Add(Failure failure) {
  case_.failures.push_back(std::move(failure));
  JudgeSoon();
}

void Judgement::Accuse(std::optional<std::size_t> index, const std::string& story) {
  case_.first = index;
  case_.story = story;
  JudgeSoon();
}

void Judgement::JudgeSoon() {
  if (!std::exchange(due_, true)) JudgeAfterAWhile(kPatienceWithFirst);
}

/// The one that told the tracker of its error has its own last words to say, and an exit code.
void Judgement::JudgeAfterAWhile(std::chrono::milliseconds patience) {
  timer_.expires_after(kSettleTime);
  timer_.async_wait([this, patience](const boost::system::error_code& error) {
    if (error) return;
    const bool speaks = case_.first && is_running_(*case_.first);
    if (speaks && patience > kSettleTime) return JudgeAfterAWhile(patience - kSettleTime);
    JudgeNow();
  });
}

void Judgement::JudgeNow() {
  FailureCase gathered = std::exchange(case_, {});
  Clear();
  judge_(std::move(gathered));
}

void Judgement::Clear() {
  case_ = {};
  due_ = false;
  timer_.cancel();
}

}  // namespace warren::submit
