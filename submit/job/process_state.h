#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "submit/process/planned_process.h"
#include "submit/process/process.h"

namespace warren::submit {

/// The state of a process of the plan, as known to the job's policy (supervisor.h).
struct ProcessState {
  tracker::Role role = tracker::Role::kWorker;
  int task_id = 0;
  std::string name;  ///< "worker 3"
  Started where;
  int attempt = -1;  ///< DMLC_NUM_ATTEMPT of the latest start; -1 before the first start
  int restarts = 0;  ///< restarts of this process alone since the job began or was restarted
  bool running = false;
  bool succeeded = false;
  bool left_out = false;  ///< lost and not started again, or without a seat
  std::optional<Seat> seat = {};
  std::string last_host = {};  ///< the host of its last seat
  bool leaving = false;        ///< has been asked to leave
  std::optional<int> rank;

  std::string Describe() const { return DescribeProcess(name, rank, where); }
};

/// The number of processes that are running or about to start, except those that have been asked to leave.
std::size_t NumLeft(const std::vector<ProcessState>& processes);

}  // namespace warren::submit
