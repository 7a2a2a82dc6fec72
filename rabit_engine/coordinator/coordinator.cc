#include "rabit_engine/coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace warren::coordinator {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

Coordinator::Coordinator(int size, Settings settings, Patience patience, std::function<int(int)> rank_in_job)
    : size_(size),
      settings_(settings),
      patience_(patience),
      rank_in_job_(std::move(rank_in_job)),
      joined_(static_cast<std::size_t>(size)) {}

void Coordinator::Propose(const Settings& settings) {
  has_proposal_ = has_proposal_ || !(settings == settings_);
  settings_ = settings;
}

Answer Coordinator::Take(std::span<const Message> messages, const KnownBeside& known_beside, double now) {
  Answer answer;
  has_proposal_ = false;
  for (int rank = 0; rank < size_; ++rank) {
    if (!messages[rank].joins) continue;
    joined_[rank] = true;
    ++num_joined_;
    last_joined_ = rank;
    answer.joined.push_back(rank);
  }
  for (int rank = 0; rank < size_; ++rank) {
    for (const Message::Entry& entry : messages[rank].requests)
      TakeRequest(rank, entry, now, answer, known_beside);
    if (messages[rank].leaves && answer.left < 0) answer.left = rank_in_job_(rank);
  }
  if (!answer.joined.empty()) EndJoin(answer);
  LookForLate(now, answer);
  answer.settings = settings_;
  return answer;
}

void Coordinator::TakeRequest(int rank, const Message::Entry& entry, double now, Answer& answer,
                              const KnownBeside& known_beside) {
  const Request& request = entry.request;
  const double since = now - entry.waiting;
  const auto [place, is_new] = rows_.try_emplace(request.name);
  Row& row = place->second;
  if (is_new) {
    row = {request, rank, std::vector<bool>(static_cast<std::size_t>(size_)), 0, since, 0, {}, false};
    // Somebody gave it another shape or its group another member, or waits for it too long: all who have it
    // as it was tell me.
    std::string known = known_beside(request);
    if (!known.empty()) answer.forgotten.push_back(std::move(known));
  } else if (row.error.empty() &&
             (row.request.signature != request.signature || row.request.group != request.group ||
              row.request.group_size != request.group_size)) {
    const auto say = [](const Request& one) {
      return Describe(one.signature) +
             (one.group.empty() ? "" : fmt::format(" in group '{}' of {}", one.group, one.group_size));
    };
    row.error =
        fmt::format("the ranks call different things '{}': on rank {} it is {}, on rank {} {}", request.name,
                    rank_in_job_(row.first), say(row.request), rank_in_job_(rank), say(request));
  }
  if (rank == 0) row.request.priority = request.priority;
  if (row.has[rank]) return;
  row.has[rank] = true;
  ++row.num;
  row.since = std::min(row.since, since);
  row.next_warning = row.since + patience_.warns_after;
  if (IsComplete(row)) Complete(request.name, answer);
}

bool Coordinator::IsComplete(const Row& row) const {
  if (row.num == size_) return true;
  if (row.num + num_joined_ < size_) return false;
  for (int rank = 0; rank < size_; ++rank) {
    if (!row.has[rank] && !joined_[rank]) return false;
  }
  return true;
}

/// All ranks that are not through have it.
void Coordinator::Complete(const std::string& name, Answer& answer) {
  Row& row = rows_.at(name);
  row.is_complete = true;
  if (row.error.empty() && row.num < size_ && !row.request.signature.takes_joined()) {
    row.error = fmt::format(
        "'{}' is {}, in which {} cannot take part any more: joined ranks go on only with "
        "allreduces by operations of the engine's, and barriers",
        name, Describe(row.request.signature), Ranks([&](int rank) { return joined_[rank]; }));
  }
  if (row.request.group.empty()) return End(name, row.error, answer);
  Group& group = groups_[row.request.group];
  group.complete.push_back(name);
  if (group.complete.size() < row.request.group_size) return;
  const std::vector<std::string> names = std::move(group.complete);
  groups_.erase(row.request.group);
  std::string error;
  for (const std::string& one : names) {
    if (error.empty()) error = rows_.at(one).error;
  }
  EndAll(names, error, answer);
}

void Coordinator::EndAll(const std::vector<std::string>& names, const std::string& error, Answer& answer) {
  for (const std::string& name : names) End(name, error, answer);
}

void Coordinator::End(const std::string& name, const std::string& error, Answer& answer) {
  const auto row = rows_.find(name);
  answer.agreed.push_back({std::move(row->second.request), error});
  rows_.erase(row);
}

/// Some have joined: names may be ready now that others still have to give, and when all have joined, nobody
/// has any.
void Coordinator::EndJoin(Answer& answer) {
  std::vector<std::string> complete;
  for (const auto& [name, row] : rows_) {
    if (!row.is_complete && IsComplete(row)) complete.push_back(name);
  }
  std::sort(complete.begin(), complete.end());
  for (const std::string& name : complete) {
    if (rows_.contains(name)) Complete(name, answer);
  }
  if (num_joined_ < size_) return;
  answer.last_joined = rank_in_job_(last_joined_);
  std::fill(joined_.begin(), joined_.end(), false);
  num_joined_ = 0;
}

std::string Coordinator::Ranks(const std::function<bool(int)>& is_one) const {
  constexpr std::size_t kMost = 16;
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank) {
    if (is_one(rank)) ranks.push_back(rank_in_job_(rank));
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  }
  if (ranks.size() > kMost) text += fmt::format(" and {} more", ranks.size() - kMost);
  return text;
}

std::string Coordinator::WhoIsMissing(const Row& row, double now) const {
  const std::string who = Ranks([&](int rank) { return row.has[rank]; });
  if (row.is_complete) {
    return fmt::format(
        "'{}' ({}) is ready everywhere since {:.0f} s, and waits for the rest of its group '{}': {} of {} "
        "are",
        row.request.name, Describe(row.request.signature), now - row.since, row.request.group,
        groups_.at(row.request.group).complete.size(), row.request.group_size);
  }
  return fmt::format("'{}' ({}) is ready on {} and not on {} since {:.0f} s", row.request.name,
                     Describe(row.request.signature), who,
                     Ranks([&](int rank) { return !row.has[rank] && !joined_[rank]; }), now - row.since);
}

void Coordinator::LookForLate(double now, Answer& answer) {
  next_due_ = kNever;
  const double fails_after = patience_.fails_after > 0 ? patience_.fails_after : kNever;
  std::vector<std::pair<std::string, std::string>> failed;
  for (auto& [name, row] : rows_) {
    if (now >= row.since + fails_after) {
      failed.emplace_back(name, WhoIsMissing(row, now));
      continue;
    }
    if (now >= row.next_warning) {
      warnings_.push_back(WhoIsMissing(row, now));
      row.next_warning = now + (now - row.since);
    }
    next_due_ = std::min({next_due_, row.next_warning, row.since + fails_after});
  }
  std::sort(failed.begin(), failed.end());
  for (const auto& [name, error] : failed) {
    const auto row = rows_.find(name);
    if (row == rows_.end()) continue;  // with its group
    if (row->second.request.group.empty()) {
      End(name, error, answer);
      continue;
    }
    const std::string group = row->second.request.group;
    std::vector<std::string> names;
    for (const auto& [other, one] : rows_) {
      if (one.request.group == group) names.push_back(other);
    }
    std::sort(names.begin(), names.end());
    groups_.erase(group);
    EndAll(names, error, answer);
  }
}

std::vector<std::string> Coordinator::TakeWarnings() {
  return std::exchange(warnings_, {});
}

}  // namespace warren::coordinator
