#include "submit/monitor/live_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace warren::submit {
namespace {

/// The smallest share of the time for which StragglerSentence is not empty.
constexpr double kWorthSaying = 0.05;
constexpr std::size_t kMostShownMetrics = 3;

std::string Megabytes(double bytes) {
  return fmt::format("{:.0f}", bytes / 1e6);
}

std::string Thousands(double number) {
  const std::string digits = fmt::format("{:.0f}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Workers(const JobSnapshot& job) {
  std::size_t up = 0;
  std::size_t all = 0;
  std::size_t done = 0;
  std::size_t started = 0;
  for (const WorkerSnapshot& worker : job.workers) {
    if (worker.role != "worker") continue;
    ++all;
    up += worker.state == WorkerState::kRunning ? 1 : 0;
    started += worker.state == WorkerState::kStarting ? 1 : 0;
    done += worker.state == WorkerState::kSucceeded ? 1 : 0;
  }
  if (done > 0) return fmt::format("{} of {} workers done", done, all);
  if (up == 0 && started > 0) return fmt::format("{} of {} workers started", started, all);
  const std::string generation =
      job.generation > 1 ? fmt::format(", generation {}", job.generation) : std::string();
  if (up == all) return fmt::format("{} worker{}{}", all, all == 1 ? "" : "s", generation);
  return fmt::format("{} of {} workers up{}", up, all, generation);
}

std::string Trouble(const JobSnapshot& job) {
  std::string text;
  std::size_t more = 0;
  for (const WorkerSnapshot& worker : job.workers) {
    if (worker.trouble.empty()) continue;
    if (text.empty()) {
      text = fmt::format("{}: {}", worker.name, worker.trouble);
    } else {
      ++more;
    }
  }
  return more > 0 ? fmt::format("{}, and {} more", text, more) : text;
}

std::string Reading(const JobSnapshot& job) {
  std::string what;
  double rows = 0;
  double bytes = 0;
  double total = 0;
  double bytes_per_second = 0;
  bool total_is_known = true;
  for (const WorkerSnapshot& worker : job.workers) {
    if (!worker.reading || worker.reading->what.empty()) continue;
    const wire::ReportedReading& reading = *worker.reading;
    if (what.empty()) what = reading.what;
    rows += static_cast<double>(reading.rows);
    bytes += static_cast<double>(reading.bytes);
    total += static_cast<double>(reading.total_bytes);
    total_is_known = total_is_known && reading.total_bytes > 0;
    if (reading.seconds > 0) bytes_per_second += static_cast<double>(reading.bytes) / reading.seconds;
  }
  if (what.empty()) return {};
  const std::string of = total_is_known ? fmt::format(" of {}", Megabytes(total)) : "";
  const double left = bytes_per_second > 0 && total > bytes ? (total - bytes) / bytes_per_second : 0;
  return fmt::format("reading {}: {} rows, {}{} MB, {} MB/s{}", what, Thousands(rows), Megabytes(bytes), of,
                     Megabytes(bytes_per_second), left >= 1 ? fmt::format(", {} left", ClockTime(left)) : "");
}

std::string Round(const JobSnapshot& job) {
  if (job.round == 0 && job.evaluations.empty()) return {};
  return job.rounds > 0 ? fmt::format("round {} of {}", job.round, job.rounds)
                        : fmt::format("round {}", job.round);
}

std::string Metrics(const JobSnapshot& job) {
  std::string text;
  if (job.evaluations.empty()) return text;
  const auto& metrics = job.evaluations.back().metrics;
  for (std::size_t i = 0; i < std::min(metrics.size(), kMostShownMetrics); ++i) {
    text += fmt::format("{}{} {:.5g}", i == 0 ? "" : ", ", metrics[i].first, metrics[i].second);
  }
  return text;
}

std::string Speed(const JobSnapshot& job) {
  const std::optional<double> seconds = SecondsPerRound(job.evaluations, 10);
  if (job.round < 2 || !seconds || !(*seconds > 0)) return {};
  return *seconds < 1 ? fmt::format("{:.3g} rounds/s", 1 / *seconds)
                      : fmt::format("{:.3g} s a round", *seconds);
}

}  // namespace

std::string ClockTime(double seconds) {
  const long whole = std::lround(std::max(seconds, 0.0));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string StragglerSentence(const JobSnapshot& job, bool live) {
  const WorkerSnapshot* most = nullptr;
  const auto share = [&](const WorkerSnapshot& worker) {
    return live ? worker.makes_wait_now : worker.makes_wait;
  };
  for (const WorkerSnapshot& worker : job.workers) {
    if (worker.rank && (most == nullptr || share(worker) > share(*most))) most = &worker;
  }
  if (most == nullptr || share(*most) < kWorthSaying) return {};
  return fmt::format("rank {} {} the others wait {:.0f} % of the time", *most->rank, live ? "makes" : "made",
                     100 * share(*most));
}

std::string LiveLine(const JobSnapshot& job, int width) {
  // The pieces, the most important one first; `place` is the position in the line.
  struct Piece {
    int place;
    std::string text;
  };
  const std::string left = job.seconds_left ? ClockTime(*job.seconds_left) + " left" : std::string();
  std::vector<Piece> pieces = {{0, ClockTime(job.seconds)},
                               {7, Trouble(job)},
                               {2, Reading(job)},
                               {3, Round(job)},
                               {1, Workers(job)},
                               {4, Metrics(job)},
                               {6, left},
                               {8, StragglerSentence(job, true)},
                               {5, Speed(job)}};
  std::erase_if(pieces, [](const Piece& piece) { return piece.text.empty(); });
  const auto join = [](std::vector<Piece> chosen) {
    std::sort(chosen.begin(), chosen.end(), [](const Piece& a, const Piece& b) { return a.place < b.place; });
    std::string line = "dmlc-submit: ";
    for (const Piece& piece : chosen) {
      if (&piece != chosen.data()) line += " | ";
      line += piece.text;
    }
    return line;
  };
  std::vector<Piece> chosen;
  for (const Piece& piece : pieces) {
    chosen.push_back(piece);
    if (join(chosen).size() > static_cast<std::size_t>(std::max(width, 1))) chosen.pop_back();
  }
  std::string line = join(chosen);
  return line.substr(0, static_cast<std::size_t>(std::max(width, 1)));
}

}  // namespace warren::submit
