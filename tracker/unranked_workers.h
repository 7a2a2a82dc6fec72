// Workers that wait for a rank until all have joined, and the order in which they are given their ranks. Does
// no I/O.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracker/action.h"

namespace warren::tracker {

/// The first sort key of workers when ranks are assigned.
enum class SortBy { kHost, kTask };

class UnrankedWorkers {
 public:
  /// `nameless`: the task id with which workers without one present themselves.
  explicit UnrankedWorkers(std::string_view nameless) : nameless_(nameless) {}

  /// Adds a worker. If an earlier connection of the same task is waiting, removes and returns that
  /// connection.
  std::optional<ConnectionId> Add(ConnectionId connection, const std::string& task_id,
                                  const std::string& host);
  bool Remove(ConnectionId connection);
  bool empty() const { return unranked_.empty(); }
  std::size_t size() const { return unranked_.size(); }

  struct Worker {
    ConnectionId connection = 0;
    std::string task_id;
    std::string host;
  };
  /// All workers, in order of arrival.
  std::vector<Worker> List() const;
  /// Removes all workers and returns them in rank order: by host and then task id, or by task id and then
  /// host. Numeric task ids come first, in numeric order; workers without a task id come last; ties keep the
  /// order of arrival.
  std::vector<Worker> TakeSorted(SortBy sort_by);

 private:
  std::string nameless_;
  std::map<ConnectionId, Worker> unranked_;
  std::unordered_map<std::string, ConnectionId> tasks_;
};

/// The entries as a list that shows at most 16 of them: "a, b, c and 980 more".
std::string ListSome(const std::vector<std::string>& entries);

/// Describes which workers have joined: "2 of 4 workers joined: task 0 (10.0.0.1), ...; missing: task 2, 3".
/// `names` and `task_ids` describe the workers that have joined.
std::string DescribeAttendance(const std::vector<std::string>& names,
                               const std::vector<std::string>& task_ids, int num_workers);

/// The reason for which a job fails whose workers were missing for `timeout`; `missing` describes them.
std::string DescribeTimeout(std::chrono::milliseconds timeout, const std::string& missing);

}  // namespace warren::tracker
