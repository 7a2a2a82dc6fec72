#include "tracker/applicants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>
#include <utility>

namespace warren::tracker {
namespace {

/// Entries a message lists before it says "and 980 more".
constexpr std::size_t kMaxListed = 16;

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::optional<ConnectionId> Applicants::Add(ConnectionId connection, const std::string& task_id,
                                            const std::string& host) {
  std::optional<ConnectionId> earlier;
  if (task_id != nameless_) {
    const auto found = tasks_.find(task_id);
    if (found != tasks_.end()) {
      earlier = found->second;
      applicants_.erase(*earlier);
    }
    tasks_[task_id] = connection;
  }
  applicants_[connection] = {connection, task_id, host};
  return earlier;
}

bool Applicants::Remove(ConnectionId connection) {
  const auto found = applicants_.find(connection);
  if (found == applicants_.end()) return false;
  tasks_.erase(found->second.task_id);
  applicants_.erase(found);
  return true;
}

std::vector<Applicants::Applicant> Applicants::List() const {
  std::vector<Applicant> all;
  for (const auto& [connection, applicant] : applicants_) all.push_back(applicant);
  return all;
}

std::vector<Applicants::Applicant> Applicants::TakeSorted(SortBy sort_by) {
  std::vector<Applicant> order = List();
  const auto key = [&](const Applicant& applicant) {
    const bool number = IsNumber(applicant.task_id);
    auto task =
        std::tuple(number                           ? 0
                   : applicant.task_id == nameless_ ? 2
                                                    : 1,
                   number ? std::stoll(applicant.task_id) : 0, number ? std::string() : applicant.task_id);
    if (sort_by == SortBy::kTask) return std::tuple(std::string(), std::move(task), applicant.host);
    return std::tuple(applicant.host, std::move(task), std::string());
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Applicant& a, const Applicant& b) { return key(a) < key(b); });
  applicants_.clear();
  tasks_.clear();
  return order;
}

std::string ListSome(const std::vector<std::string>& entries) {
  const std::size_t shown = std::min(entries.size(), kMaxListed);
  std::string text = fmt::format("{}", fmt::join(entries.begin(), entries.begin() + shown, ", "));
  if (shown < entries.size()) text += fmt::format(" and {} more", entries.size() - shown);
  return text;
}

std::string DescribeAttendance(const std::vector<std::string>& names,
                               const std::vector<std::string>& task_ids, int num_workers) {
  std::string text = fmt::format("{} of {} workers came", names.size(), num_workers);
  if (!names.empty()) text += fmt::format(": {}", ListSome(names));
  const auto missing =
      static_cast<std::size_t>(num_workers) - std::min<std::size_t>(names.size(), num_workers);
  if (missing == 0) return text;
  // Launchers number their tasks from 0; where that holds the missing ones have names.
  const std::set<std::string> came(task_ids.begin(), task_ids.end());
  std::vector<std::string> absent;
  for (int task = 0; task < num_workers; ++task) {
    if (!came.contains(std::to_string(task))) absent.push_back(std::to_string(task));
  }
  return text + (absent.size() == missing ? fmt::format("; not: task {}", ListSome(absent))
                                          : fmt::format("; {} did not", missing));
}

}  // namespace warren::tracker
