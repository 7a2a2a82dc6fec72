#include "submit/monitor/hang_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace warren::submit {
namespace {

using std::chrono::milliseconds;

/// The maximum delay in noticing a change: reports usually arrive once a second, and Look is called once a
/// second.
constexpr std::chrono::seconds kHeardLate{2};
/// Limit on how far LearnFrom raises the limits on waits, as a multiple of the timeout.
constexpr int kMostPatience = 10;
/// Processor use, in cores. Below the first limit, a process counts as idle, although its timers and reports
/// take some time. Below the second one, it mostly sleeps, e.g. in a loop that polls every few milliseconds.
constexpr double kIdleCores = 0.01;
constexpr double kComputingCores = 0.1;

long WholeSeconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time + milliseconds(500)).count();
}

std::string Last(const Signs& signs) {
  if (signs.call == 0) return {};
  return fmt::format("; it {} {} (call {})", signs.inside ? "is in" : "was last in", signs.call_name,
                     signs.call);
}

/// Describes, for a message, the activity of a worker for which others have been waiting since `since`.
std::string WhatItDoes(const Signs& signs, TimePoint since) {
  if (!signs.sampled || !signs.cores || signs.cores_since < since)
    return "runs";  // unknown: not enough samples since then
  if (*signs.cores < kIdleCores) return "uses no processor time";
  if (*signs.cores < kComputingCores) return fmt::format("mostly sleeps ({:.2f} cores)", *signs.cores);
  return "computes";
}

}  // namespace

// A warning must appear within the timeout, so the limits leave time for delayed information.
HangWatch::HangWatch(milliseconds timeout, milliseconds sample_interval)
    : is_on_(timeout > milliseconds::zero()),
      silent_after_(std::max<milliseconds>(timeout - kHeardLate, 2 * sample_interval + kHeardLate)),
      timeout_(std::max(timeout - kHeardLate, timeout / 2)),
      seen_after_(std::max(timeout - kHeardLate - sample_interval, timeout / 2)),
      late_after_(timeout_),
      idle_after_(silent_after_) {}

bool HangWatch::HasPrinted(const Signs& signs, Duration within, TimePoint now) const {
  return signs.printed && now - *signs.printed < within;
}

std::string HangWatch::LearnFrom(Duration lasted) {
  const Duration longer = std::min<Duration>(2 * lasted, kMostPatience * timeout_);
  late_after_ = std::max(late_after_, longer);
  idle_after_ = std::max(idle_after_, longer);
  return fmt::format(" after {} s; the next wait will be reported after {} s", WholeSeconds(lasted),
                     WholeSeconds(late_after_));
}

std::optional<Finding> HangWatch::FindIn(const Signs& signs, TimePoint now) const {
  const bool heard =
      (signs.reported && now - *signs.reported < silent_after_) || HasPrinted(signs, silent_after_, now);
  const bool silent_host = signs.sampled && now - *signs.sampled >= silent_after_ && !heard;
  if (silent_host) {
    const long silent = WholeSeconds(now - *signs.sampled);
    const std::string whose = signs.host.empty() ? std::string("its host") : "host " + signs.host;
    return Finding{
        Finding::Kind::kSilent, 0,
        fmt::format("{}: nothing has been heard from {} for {} s; is it down, or cut off from the network?{}",
                    signs.name, whose, silent, Last(signs)),
        fmt::format("its host has been silent for {} s", silent)};
  }
  if (!signs.sampled) return std::nullopt;
  const auto lasted = now - signs.state_since;
  // The stopped process may be a child of the worker. A worker whose engine reports is not stopped.
  const bool reports = signs.reported && now - *signs.reported < timeout_;
  if ((signs.state == 'T' || signs.state == 't') && lasted >= seen_after_ && !reports) {
    const char* by = signs.state == 'T' ? "a signal (SIGSTOP, SIGTSTP)" : "a debugger";
    return Finding{
        Finding::Kind::kStopped, 0,
        fmt::format("{} has been stopped by {} for {} s; {}{}", signs.name, by, WholeSeconds(lasted),
                    signs.state == 'T' ? "kill -CONT resumes it" : "resume it in the debugger", Last(signs)),
        fmt::format("stopped by {} for {} s", signs.state == 'T' ? "a signal" : "a debugger",
                    WholeSeconds(lasted))};
  }
  if (signs.state == 'D' && lasted >= seen_after_ && now - signs.busy >= seen_after_) {
    return Finding{
        Finding::Kind::kWaits, 0,
        fmt::format("{} has waited for a disk or a network file system for {} s{}", signs.name,
                    WholeSeconds(lasted), Last(signs)),
        fmt::format("has waited for a disk or a network file system for {} s", WholeSeconds(lasted))};
  }
  // With many workers, reports are rare; the user may also have set another interval.
  const auto gap = signs.report_gap;
  const bool rests = now - signs.busy >= silent_after_ && !HasPrinted(signs, silent_after_, now);
  if (rests && signs.reported && gap.count() > 0 &&
      now - *signs.reported >= std::max<Duration>(timeout_, 3 * gap)) {
    const long silent = WholeSeconds(now - *signs.reported);
    return Finding{
        Finding::Kind::kSilent, 0,
        fmt::format(
            "{} uses no processor time, and its engine has reported nothing for {} s; is its host swapping?{}",
            signs.name, silent, Last(signs)),
        fmt::format("silent for {} s", silent)};
  }
  return std::nullopt;
}

std::vector<HangWatch::Waiting> HangWatch::WhoWaits(const std::vector<std::optional<Signs>>& workers,
                                                    std::optional<TimePoint> round_ended) const {
  std::vector<Waiting> waiting;
  for (const auto& worker : workers) {
    if (!worker || !worker->reported || !worker->inside) continue;
    // A round that ends well after the wait began ends the wait. A round that ends soon after the wait began
    // does not count, because the end of a round is reported slightly later than a worker's next call.
    const bool is_over = round_ended && *round_ended - worker->call_since >= late_after_ / 2;
    if (!is_over) waiting.push_back({worker->call, &*worker});
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const Waiting& a, const Waiting& b) { return a.call < b.call; });
  for (std::size_t i = waiting.size(); i > 1; --i) {
    const Signs* later = waiting[i - 1].first;
    if (later->call_since < waiting[i - 2].first->call_since) waiting[i - 2].first = later;
  }
  return waiting;
}

/// Returns a finding if other workers wait in a call that this worker has not reached.
std::optional<Finding> HangWatch::FindLate(const Signs& signs, const std::vector<Waiting>& waiting,
                                           TimePoint now) const {
  if (signs.inside || !signs.reported || HasPrinted(signs, late_after_, now)) return std::nullopt;
  const auto later = std::upper_bound(waiting.begin(), waiting.end(), signs.call,
                                      [](std::uint64_t call, const Waiting& one) { return call < one.call; });
  if (later == waiting.end()) return std::nullopt;
  const Signs* first = later->first;
  // Both workers must have reported after the wait had lasted for late_after_. If a report is older, its
  // worker may have continued since.
  if (std::min(*signs.reported, *first->reported) - first->call_since < late_after_) return std::nullopt;
  const auto num_waiting = waiting.end() - later;
  const long waited = WholeSeconds(now - first->call_since);
  const std::string whom =
      num_waiting == 1 ? std::string("another worker") : fmt::format("{} others", num_waiting);
  const std::string before = signs.call > 0
                                 ? fmt::format("was last in {} (call {})", signs.call_name, signs.call)
                                 : std::string("has not made a call yet");
  return Finding{
      Finding::Kind::kHoldsUp, 0,
      fmt::format("{} holds up {}: for {} s they have waited for it in {} (call {}); it {}, and {}",
                  signs.name, whom, waited, first->call_name, first->call,
                  WhatItDoes(signs, first->call_since), before),
      fmt::format("holds up {} for {} s", whom, waited), first->call_since};
}

/// Returns a finding if no worker uses a processor. This finds hangs of workers whose engines do not report,
/// for which it is unknown which worker the others wait for.
std::optional<Finding> HangWatch::FindIdle(const std::vector<std::optional<Signs>>& workers,
                                           std::optional<TimePoint> round_ended, TimePoint now) const {
  if (round_ended && now - *round_ended < idle_after_) return std::nullopt;
  std::size_t last = workers.size();
  TimePoint busy;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto& worker = workers[i];
    if (!worker) continue;
    if (!worker->sampled || now - worker->since < idle_after_) return std::nullopt;
    if (now - std::max(worker->busy, *worker->sampled_first) < idle_after_) return std::nullopt;
    if (HasPrinted(*worker, idle_after_, now)) return std::nullopt;
    if (last == workers.size() || worker->busy > busy) {
      last = i;
      busy = worker->busy;
    }
  }
  if (last == workers.size()) return std::nullopt;
  const TimePoint since = std::max(busy, *workers[last]->sampled_first);
  return Finding{Finding::Kind::kAllIdle, last,
                 fmt::format("no worker has used any processor time for {} s; the last one that did was {}",
                             WholeSeconds(now - since), workers[last]->name),
                 "", since};
}

std::vector<Finding> HangWatch::Look(const std::vector<std::optional<Signs>>& workers,
                                     std::optional<TimePoint> round_ended, TimePoint now) {
  std::vector<Finding> findings;
  if (!is_on_) return findings;
  found_.resize(workers.size());
  troubles_.assign(workers.size(), "");
  bool any = false;
  const std::vector<Waiting> waiting = WhoWaits(workers, round_ended);
  std::optional<std::string> learned;  // the text of the first worker that continues
  for (std::size_t i = 0; i < workers.size(); ++i) {
    std::optional<Finding> finding;
    if (workers[i]) finding = FindIn(*workers[i], now);
    if (workers[i] && !finding) finding = FindLate(*workers[i], waiting, now);
    if (finding) {
      any = true;
      finding->worker = i;
      troubles_[i] = finding->trouble;
      const auto before = std::exchange(found_[i], Found{finding->kind, finding->since});
      if (!before || before->kind != finding->kind) findings.push_back(*std::move(finding));
    } else if (const auto before = std::exchange(found_[i], std::nullopt); before && workers[i]) {
      std::string text = fmt::format("{} continues", workers[i]->name);
      if (before->kind == Finding::Kind::kHoldsUp) {
        if (!learned) learned = LearnFrom(now - before->since);
        text += *learned;
      }
      findings.push_back({Finding::Kind::kGoesOn, i, std::move(text)});
    }
  }
  // While a worker has a finding, idle workers are not judged: they are probably waiting for it.
  if (any) return findings;
  const auto idle = FindIdle(workers, round_ended, now);
  if (idle && !std::exchange(all_idle_since_, idle->since)) findings.push_back(*idle);
  if (const auto since = idle ? std::nullopt : std::exchange(all_idle_since_, std::nullopt)) {
    findings.push_back(
        {Finding::Kind::kGoesOn, 0, "workers use their processors again" + LearnFrom(now - *since)});
  }
  return findings;
}

}  // namespace warren::submit
