#include "submit/monitor/snapshot.h"

namespace warren::submit {

const char* Name(WorkerState state) {
  switch (state) {
    case WorkerState::kWaiting:
      return "waiting";
    case WorkerState::kStarting:
      return "starting";
    case WorkerState::kRunning:
      return "running";
    case WorkerState::kStuck:
      return "stuck";
    case WorkerState::kSucceeded:
      return "succeeded";
    case WorkerState::kFailed:
      return "failed";
  }
  return "";
}

std::optional<double> SecondsPerRound(const std::vector<Evaluation>& evaluations, std::size_t most) {
  if (evaluations.size() < 2) return std::nullopt;
  std::size_t first = evaluations.size() - 1;
  while (first > 0 && evaluations.size() - first < most && !evaluations[first].begins) --first;
  const double seconds = evaluations.back().seconds - evaluations[first].seconds;
  const auto rounds = static_cast<double>(evaluations.back().round - evaluations[first].round);
  if (!(rounds > 0)) return std::nullopt;
  return seconds / rounds;
}

}  // namespace warren::submit
