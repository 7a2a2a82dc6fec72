#include "submit/monitor/hang_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace warren::submit {
namespace {

using Duration = std::chrono::steady_clock::duration;
using std::chrono::milliseconds;

/// A report comes once a second, and the job is looked at as often.
constexpr std::chrono::seconds kHeardLate{2};

long Seconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time + milliseconds(500)).count();
}

std::string Last(const Signs& signs) {
  if (signs.call == 0) return {};
  return fmt::format("; it {} {} (call {})", signs.inside ? "is in" : "was last in", signs.call_name,
                     signs.call);
}

}  // namespace

/// Within the timeout somebody is to be told, so what is heard of late counts sooner.
HangWatch::HangWatch(milliseconds timeout, milliseconds sample_interval)
    : is_on_(timeout > milliseconds::zero()),
      timeout_(std::max(timeout - kHeardLate, timeout / 2)),
      seen_after_(std::max(timeout - kHeardLate - sample_interval, timeout / 2)) {}

std::optional<Finding> HangWatch::FindIn(const Signs& signs, TimePoint now) const {
  const bool silent_host = signs.sampled && now - *signs.sampled >= timeout_;
  if (silent_host) {
    const long silent = Seconds(now - *signs.sampled);
    const std::string whose = signs.host.empty() ? std::string("its host") : "host " + signs.host;
    return Finding{Finding::Kind::kSilent, 0,
                   fmt::format("{}: nothing has been heard of {} for {} s; is it down, or cut off from the "
                               "network?{}",
                               signs.name, whose, silent, Last(signs)),
                   fmt::format("its host has been silent for {} s", silent)};
  }
  if (!signs.sampled) return std::nullopt;
  const auto lasted = now - signs.state_since;
  if ((signs.state == 'T' || signs.state == 't') && lasted >= seen_after_) {
    const char* by = signs.state == 'T' ? "a signal (SIGSTOP, SIGTSTP)" : "a debugger";
    return Finding{Finding::Kind::kStopped, 0,
                   fmt::format("{} has been stopped by {} for {} s; {}{}", signs.name, by, Seconds(lasted),
                               signs.state == 'T' ? "kill -CONT lets it go on" : "the debugger lets it go on",
                               Last(signs)),
                   fmt::format("stopped by {} for {} s", signs.state == 'T' ? "a signal" : "a debugger",
                               Seconds(lasted))};
  }
  if (signs.state == 'D' && lasted >= seen_after_ && now - signs.busy >= seen_after_) {
    return Finding{Finding::Kind::kWaits, 0,
                   fmt::format("{} has waited for a disk or a network file system for {} s{}", signs.name,
                               Seconds(lasted), Last(signs)),
                   fmt::format("waits for a disk or a network file system for {} s", Seconds(lasted))};
  }
  // Of many workers each reports seldom, and a user may have another interval in mind.
  const auto gap = signs.report_gap;
  if (signs.reported && gap.count() > 0 && now - *signs.reported >= std::max<Duration>(timeout_, 3 * gap)) {
    const long silent = Seconds(now - *signs.reported);
    return Finding{Finding::Kind::kSilent, 0,
                   fmt::format("{} runs, but its engine has said nothing for {} s: does its host swap?{}",
                               signs.name, silent, Last(signs)),
                   fmt::format("silent for {} s", silent)};
  }
  return std::nullopt;
}

/// Others (of those that `waiting` names, who have been in their calls for long) are in a call that this one
/// has not come to.
std::optional<Finding> HangWatch::FindLate(const Signs& signs, const std::vector<const Signs*>& waiting,
                                           TimePoint now) const {
  if (signs.inside || !signs.reported) return std::nullopt;
  std::size_t num_waiting = 0;
  const Signs* first = nullptr;  // who has waited for longest
  for (const Signs* other : waiting) {
    // What it has said since is new enough.
    if (other->call <= signs.call || *signs.reported - other->call_since < timeout_ / 2) continue;
    ++num_waiting;
    if (first == nullptr || other->call_since < first->call_since) first = other;
  }
  if (first == nullptr) return std::nullopt;
  const long waited = Seconds(now - first->call_since);
  const bool computes = signs.sampled && now - signs.busy < timeout_ / 2;
  const std::string whom =
      num_waiting == 1 ? std::string("another worker") : fmt::format("{} others", num_waiting);
  const std::string before = signs.call > 0
                                 ? fmt::format("was last in {} (call {})", signs.call_name, signs.call)
                                 : std::string("has not made a call yet");
  return Finding{
      Finding::Kind::kHoldsUp, 0,
      fmt::format("{} holds up {}: for {} s they have waited for it in {} (call {}); it {}, and {}",
                  signs.name, whom, waited, first->call_name, first->call,
                  !signs.sampled ? "runs"
                  : computes     ? "computes"
                                 : "uses no processor time",
                  before),
      fmt::format("holds up {} for {} s", whom, waited)};
}

/// Of workers whose engine says nothing nobody knows who waits for whom; but none of them does anything.
std::optional<Finding> HangWatch::FindIdle(const std::vector<std::optional<Signs>>& workers,
                                           TimePoint now) const {
  std::size_t last = workers.size();
  TimePoint busy;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto& worker = workers[i];
    if (!worker) continue;
    if (!worker->sampled || now - worker->since < timeout_) return std::nullopt;
    if (now - std::max(worker->busy, *worker->sampled_first) < timeout_) return std::nullopt;
    if (last == workers.size() || worker->busy > busy) {
      last = i;
      busy = worker->busy;
    }
  }
  if (last == workers.size()) return std::nullopt;
  return Finding{
      Finding::Kind::kAllIdle, last,
      fmt::format("no worker has used any processor time for {} s; the last that did was {}",
                  Seconds(now - std::max(busy, *workers[last]->sampled_first)), workers[last]->name),
      ""};
}

std::vector<Finding> HangWatch::Look(const std::vector<std::optional<Signs>>& workers, TimePoint now) {
  std::vector<Finding> findings;
  if (!is_on_) return findings;
  found_.resize(workers.size());
  bool any = false;
  std::vector<const Signs*> waiting;
  for (const auto& worker : workers) {
    if (worker && worker->inside && now - worker->call_since >= timeout_) waiting.push_back(&*worker);
  }
  for (std::size_t i = 0; i < workers.size(); ++i) {
    std::optional<Finding> finding;
    if (workers[i]) finding = FindIn(*workers[i], now);
    if (workers[i] && !finding) finding = FindLate(*workers[i], waiting, now);
    any = any || finding;
    const bool is_known = finding && found_[i] && found_[i]->kind == finding->kind;
    if (finding) finding->worker = i;
    if (finding && !is_known) {
      findings.push_back(*finding);
      found_[i] = Found{finding->kind, now};
    } else if (!finding && found_[i]) {
      if (workers[i]) {
        findings.push_back({Finding::Kind::kGoesOn, i, fmt::format("{} goes on", workers[i]->name), ""});
      }
      found_[i].reset();
    }
  }
  // If it is known who hangs, the others wait for that one.
  const auto idle = any ? std::nullopt : FindIdle(workers, now);
  if (idle && !std::exchange(all_idle_, true)) findings.push_back(*idle);
  if (!idle) all_idle_ = false;
  return findings;
}

}  // namespace warren::submit
