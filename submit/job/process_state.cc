#include "submit/job/process_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace warren::submit {

std::string ProcessState::Describe() const {
  const std::string rank_text = rank ? fmt::format("rank {}, ", *rank) : "";
  std::string place;
  if (!where.host.empty()) place = fmt::format("host {}", where.host);
  if (where.pid > 0) place += fmt::format("{}pid {}", place.empty() ? "" : ", ", where.pid);
  const std::string all = rank_text + place;
  return all.empty() ? name : fmt::format("{} ({})", name, all);
}

std::size_t NumLeft(const std::vector<ProcessState>& processes) {
  return static_cast<std::size_t>(
      std::count_if(processes.begin(), processes.end(),
                    [](const ProcessState& one) { return !one.left_out && !one.succeeded && !one.leaving; }));
}

}  // namespace warren::submit
