// Workers that wait for a rank until all have come, and the order in which they get theirs. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracker/action.h"

namespace warren::tracker {

/// What unranked workers are sorted by before ranks are given out.
enum class SortBy { kHost, kTask };

class UnrankedWorkers {
 public:
  /// `nameless`: the task id of those that have none.
  explicit UnrankedWorkers(std::string_view nameless) : nameless_(nameless) {}

  /// Returns the connection over which the same task came before, which is another attempt of it and waits
  /// no more.
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
  /// In the order of arrival.
  std::vector<Worker> List() const;
  /// In the order of their ranks: by host and task id, or by task id. Task ids sort as numbers where they are
  /// numbers, before all others; workers without one come last; equal ones in the order of arrival. None is
  /// left.
  std::vector<Worker> TakeSorted(SortBy sort_by);

 private:
  std::string nameless_;
  std::map<ConnectionId, Worker> unranked_;
  std::unordered_map<std::string, ConnectionId> tasks_;
};

/// "a, b, c and 980 more"
std::string ListSome(const std::vector<std::string>& entries);

/// "2 of 4 workers came: task 0 (10.0.0.1), ...; not: task 2, 3". `names` are of those that came, with their
/// task ids.
std::string DescribeAttendance(const std::vector<std::string>& names,
                               const std::vector<std::string>& task_ids, int num_workers);

}  // namespace warren::tracker
