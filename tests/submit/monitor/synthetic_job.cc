#include "tests/submit/monitor/synthetic_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace warren::submit {
namespace {

constexpr std::int64_t kRounds = 600;
constexpr double kRoundsPerSecond = 5;
constexpr double kReadingSeconds = 6;
constexpr double kStuckFrom = 60;
constexpr double kStuckUntil = 90;

/// A pseudo-random number in [0, 1), determined by `seed`.
double Noise(std::uint64_t seed) {
  seed = (seed + 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebU;
  return static_cast<double>((seed ^ (seed >> 31)) >> 11) / 9007199254740992.0;
}

WorkerSnapshot WorkerAt(int index, int workers, double seconds, bool is_over) {
  WorkerSnapshot worker;
  const auto seed = static_cast<std::uint64_t>(index);
  worker.name = fmt::format("worker {}", index);
  worker.role = "worker";
  worker.index = static_cast<std::size_t>(index);
  worker.host = fmt::format("node{:02}", index / 4 + 1);
  worker.pid = 21000 + index * 7;
  worker.state = WorkerState::kStarting;
  const double training = std::max(0.0, seconds - kReadingSeconds);
  worker.cores_used = is_over ? 0 : 3.2 + 0.7 * Noise(seed * 1000 + static_cast<std::uint64_t>(seconds));
  worker.sample = ProcessSample{'R', 3.6 * seconds, (900U << 20) + (seed % 7) * (31U << 20)};
  if (seconds < 1) return worker;
  worker.rank = index;
  worker.state = is_over ? WorkerState::kSucceeded : WorkerState::kRunning;
  if (index == 5) worker.restarts = 1;
  if (training <= 0) {
    const double share = seconds / kReadingSeconds;
    worker.reading = wire::ReportedReading{"train.libsvm", static_cast<std::uint64_t>(2'400'000 * share),
                                           static_cast<std::uint64_t>(463e6 * share), 463'000'000, seconds};
    return worker;
  }
  if (index == workers - 2 && seconds > kStuckFrom && seconds < kStuckUntil) {
    worker.state = WorkerState::kStuck;
    worker.trouble = fmt::format("stopped by a signal (SIGSTOP) for {:.0f} s", seconds - kStuckFrom);
    worker.cores_used = 0;
  }
  const double in_collectives = training * (0.12 + 0.05 * Noise(seed));
  worker.seconds_waited = index == 3 ? 0.01 * training : training * (0.33 + 0.08 * Noise(seed + 77));
  worker.seconds_in_collectives = in_collectives + worker.seconds_waited;
  worker.seconds_made_wait = index == 3 ? 0.41 * training : 0.01 * training * Noise(seed + 5);
  worker.makes_wait = worker.seconds_made_wait / training;
  worker.makes_wait_now = is_over ? 0 : worker.makes_wait;
  const auto calls = static_cast<std::uint64_t>(training * 40);
  worker.traffic = {{"allreduce", "ring", calls, calls * 1'310'720, worker.seconds_in_collectives * 0.83},
                    {"allreduce", "tree", calls / 2, calls * 512, worker.seconds_in_collectives * 0.11},
                    {"broadcast", "tree", calls / 40, calls * 90, worker.seconds_in_collectives * 0.06}};
  worker.call = wire::ReportedCall{calls, "Allreduce of 327680 floats", index != 3 && !is_over, 0.02};
  return worker;
}

}  // namespace

JobSnapshot SyntheticJob(int workers, double seconds) {
  const double end = kReadingSeconds + static_cast<double>(kRounds) / kRoundsPerSecond;
  JobSnapshot job;
  job.name = "heart-disease";
  job.command = fmt::format(
      "dmlc-submit --cluster ssh --host-file hosts --num-workers {} --dashboard -- xgb-train train.conf max_depth=6 eta=0.1",
      workers);
  job.cluster = "ssh";
  job.began = std::chrono::system_clock::time_point(std::chrono::seconds(1'790'000'000));
  job.is_over = seconds >= end;
  job.seconds = std::min(seconds, end);
  job.world_size = workers;
  job.rounds = kRounds;
  job.round = static_cast<std::int64_t>(std::max(0.0, job.seconds - kReadingSeconds) * kRoundsPerSecond);
  for (int i = 0; i < workers; ++i) job.workers.push_back(WorkerAt(i, workers, job.seconds, job.is_over));
  if (job.round > 0) job.seconds_left = static_cast<double>(kRounds - job.round) / kRoundsPerSecond;
  if (seconds >= 1 && seconds < kReadingSeconds) job.rows_per_second = workers * 401'000.0;
  for (std::int64_t round = 1; round <= job.round; ++round) {
    const auto x = static_cast<double>(round);
    const auto seed = static_cast<std::uint64_t>(round);
    const double train = 0.08 + 0.42 * std::exp(-x / 130);
    const double wobble = 0.9 + 0.2 * Noise(seed * 13);  // in units of a round's duration
    job.evaluations.push_back(
        {round,
         kReadingSeconds + (x - 1 + wobble + 3 * std::sin(x / 23) + 2 * std::sin(x / 7.3)) / kRoundsPerSecond,
         {{"train-logloss", train + 0.002 * Noise(seed)},
          {"valid-logloss", train + 0.02 + 0.05 * (1 - std::exp(-x / 260)) + 0.008 * Noise(seed + 9)},
          {"valid-error", 0.11 + 0.2 * std::exp(-x / 90) + 0.01 * Noise(seed + 5)}}});
  }
  job.events.push_back(
      {0, Severity::kInfo, fmt::format("{} workers on {} hosts are started", workers, (workers + 3) / 4)});
  if (seconds >= 1)
    job.events.push_back({0.9, Severity::kInfo, fmt::format("all {} workers are up", workers)});
  if (workers > 5 && seconds >= 4)
    job.events.push_back(
        {3.4, Severity::kWarning, "worker 5 on node02 was killed by signal 9 and is started again (1 of 2)"});
  if (seconds >= kReadingSeconds) job.events.push_back({kReadingSeconds, Severity::kInfo, "training begins"});
  if (seconds > kStuckFrom) {
    job.events.push_back(
        {kStuckFrom + 1, Severity::kError,
         fmt::format("worker {} on node{:02} has not moved for 61 s: it was stopped by a signal", workers - 2,
                     (workers - 2) / 4 + 1)});
  }
  if (seconds > kStuckUntil)
    job.events.push_back({kStuckUntil, Severity::kInfo, fmt::format("worker {} continues", workers - 2)});
  if (job.is_over) job.events.push_back({end, Severity::kInfo, "the job has ended with success"});
  return job;
}

std::string SyntheticLine(int index, double seconds) {
  if (seconds < kReadingSeconds) {
    return fmt::format("\x1b[32mreading\x1b[0m train.libsvm?split={} {:.0f} %", index,
                       100 * seconds / kReadingSeconds);
  }
  if (index == 1 && static_cast<int>(seconds) % 10 == 0)
    return "<img src=x onerror=\"document.title='broken'\"> is only text";
  if (index == 0) {
    const double round = std::floor((seconds - kReadingSeconds) * kRoundsPerSecond);
    return fmt::format("[{:.0f}]\ttrain-logloss:{:.5f}", round, 0.08 + 0.42 * std::exp(-round / 130));
  }
  return fmt::format("updater: {} nodes in {:.1f} ms",
                     40 + static_cast<int>(20 * Noise(static_cast<std::uint64_t>(seconds * 10 + index))),
                     80 + 40 * Noise(static_cast<std::uint64_t>(seconds * 7 + index)));
}

}  // namespace warren::submit
