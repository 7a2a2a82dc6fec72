#include "tracker/unranked_workers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>
#include <utility>

namespace warren::tracker {
namespace {

/// The maximum number of entries that a message lists before "and 980 more".
constexpr std::size_t kMostWorkersShown = 16;

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::optional<ConnectionId> UnrankedWorkers::Add(ConnectionId connection, const std::string& task_id,
                                                 const std::string& host) {
  std::optional<ConnectionId> earlier;
  if (task_id != nameless_) {
    const auto found = tasks_.find(task_id);
    if (found != tasks_.end()) {
      earlier = found->second;
      unranked_.erase(*earlier);
    }
    tasks_[task_id] = connection;
  }
  unranked_[connection] = {connection, task_id, host};
  return earlier;
}

bool UnrankedWorkers::Remove(ConnectionId connection) {
  const auto found = unranked_.find(connection);
  if (found == unranked_.end()) return false;
  tasks_.erase(found->second.task_id);
  unranked_.erase(found);
  return true;
}

std::vector<UnrankedWorkers::Worker> UnrankedWorkers::List() const {
  std::vector<Worker> all;
  for (const auto& [connection, worker] : unranked_) all.push_back(worker);
  return all;
}

std::vector<UnrankedWorkers::Worker> UnrankedWorkers::TakeSorted(SortBy sort_by) {
  std::vector<Worker> order = List();
  const auto key = [&](const Worker& worker) {
    const bool number = IsNumber(worker.task_id);
    auto task = std::tuple(number                        ? 0
                           : worker.task_id == nameless_ ? 2
                                                         : 1,
                           number ? std::stoll(worker.task_id) : 0, number ? std::string() : worker.task_id);
    if (sort_by == SortBy::kTask) return std::tuple(std::string(), std::move(task), worker.host);
    return std::tuple(worker.host, std::move(task), std::string());
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Worker& a, const Worker& b) { return key(a) < key(b); });
  unranked_.clear();
  tasks_.clear();
  return order;
}

std::string ListSome(const std::vector<std::string>& entries) {
  const std::size_t shown = std::min(entries.size(), kMostWorkersShown);
  std::string text = fmt::format("{}", fmt::join(entries.begin(), entries.begin() + shown, ", "));
  if (shown < entries.size()) text += fmt::format(" and {} more", entries.size() - shown);
  return text;
}

std::string DescribeAttendance(const std::vector<std::string>& names,
                               const std::vector<std::string>& task_ids, int num_workers) {
  std::string text = fmt::format("{} of {} workers joined", names.size(), num_workers);
  if (!names.empty()) text += fmt::format(": {}", ListSome(names));
  const auto missing =
      static_cast<std::size_t>(num_workers) - std::min<std::size_t>(names.size(), num_workers);
  if (missing == 0) return text;
  // Launchers number their tasks from 0; if this job's do, the missing tasks can be named.
  const std::set<std::string> came(task_ids.begin(), task_ids.end());
  std::vector<std::string> absent;
  for (int task = 0; task < num_workers; ++task) {
    if (!came.contains(std::to_string(task))) absent.push_back(std::to_string(task));
  }
  return text + (absent.size() == missing ? fmt::format("; missing: task {}", ListSome(absent))
                                          : fmt::format("; {} did not", missing));
}

std::string DescribeTimeout(std::chrono::milliseconds timeout, const std::string& missing) {
  return fmt::format("workers are missing after {:g} s: {}", std::chrono::duration<double>(timeout).count(),
                     missing);
}

}  // namespace warren::tracker
