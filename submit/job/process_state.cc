#include "submit/job/process_state.h"

#include <algorithm>

namespace warren::submit {

std::size_t NumLeft(const std::vector<ProcessState>& processes) {
  return static_cast<std::size_t>(
      std::count_if(processes.begin(), processes.end(),
                    [](const ProcessState& one) { return !one.left_out && !one.succeeded && !one.leaving; }));
}

}  // namespace warren::submit
