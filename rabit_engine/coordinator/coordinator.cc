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

Answer Coordinator::Take(std::span<const RankReport> messages, const KnownBeside& known_beside, double now) {
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
    for (const RankReport::Entry& entry : messages[rank].requests)
      TakeRequest(rank, entry, now, answer, known_beside);
    if (messages[rank].leaves && answer.left < 0) answer.left = rank_in_job_(rank);
  }
  if (!answer.joined.empty()) EndJoin(answer);
  LookForLate(now, answer);
  answer.settings = settings_;
  return answer;
}

void Coordinator::TakeRequest(int rank, const RankReport::Entry& entry, double now, Answer& answer,
                              const KnownBeside& known_beside) {
  const Request& request = entry.request;
  const double since = now - entry.waiting;
  const auto [place, is_new] = rows_.try_emplace(request.name);
  Row& row = place->second;
  if (is_new) {
    row.request = request;
    row.first = rank;
    row.has.resize(static_cast<std::size_t>(size_));
    row.since = since;
    // If a rank has changed the shape or the group of a cached name, or has waited too long for it, all ranks
    // must remove the name (and its group) from the cache and report their requests for it.
    for (std::string& known : known_beside(request)) answer.forgotten.push_back(std::move(known));
  } else {
    Compare(row, rank, request);
  }
  if (row.has[rank]) return;
  if (rank == 0) row.request.priority = request.priority;
  if (!request.group.empty()) PutInGroup(request.name, rank, request);
  if (request.signature.kind == Collective::kAllToAll) {
    row.sent.resize(static_cast<std::size_t>(size_));
    row.received.resize(static_cast<std::size_t>(size_));
    row.sent[rank] = request.sent;
    row.received[rank] = request.received;
  }
  row.has[rank] = true;
  ++row.num;
  row.since = std::min(row.since, since);
  row.next_warning = row.since + patience_.warns_after;
  if (IsComplete(row)) Complete(request.name, answer);
}

/// Compares a request with the first rank's request; records an error if they differ.
void Coordinator::Compare(Row& row, int rank, const Request& request) const {
  const Request& first = row.request;
  if (!row.error.empty() || (first.signature == request.signature && first.group == request.group)) return;
  const auto say = [](const Request& one) {
    return Describe(one.signature) + (one.group.empty() ? "" : fmt::format(" in group '{}'", one.group));
  };
  row.error =
      fmt::format("the ranks use the name '{}' for different operations: on rank {} it is {}, on rank {} {}",
                  request.name, rank_in_job_(row.first), say(first), rank_in_job_(rank), say(request));
}

void Coordinator::PutInGroup(const std::string& name, int rank, const Request& request) {
  Group& group = groups_[request.group];
  // If a name that ended with the group's error is submitted again, a new group begins: the rest of the
  // failed group will not be submitted.
  if (std::find(group.ended.begin(), group.ended.end(), name) != group.ended.end()) {
    group.size = 0;
    group.error.clear();
    group.ended.clear();
  }
  if (group.size == 0) {
    group.size = request.group_size;
    group.first = rank;
  } else if (group.size != request.group_size && group.error.empty()) {
    group.error = fmt::format(
        "the ranks do not agree on the size of group '{}': on rank {} it has {} members, on rank {} {}",
        request.group, rank_in_job_(group.first), group.size, rank_in_job_(rank), request.group_size);
    group.size = std::min(group.size, request.group_size);
  }
  Row& row = rows_.at(name);
  if (std::find(row.groups.begin(), row.groups.end(), request.group) != row.groups.end()) return;
  row.groups.push_back(request.group);
  group.names.push_back(name);
}

/// Compares the number of bytes that each rank sends to each other rank in an all-to-all with the number that
/// the receiver expects.
void Coordinator::CompareCounts(Row& row) const {
  for (int from = 0; from < size_ && row.error.empty(); ++from) {
    for (int to = 0; to < size_; ++to) {
      if (row.sent[from].size() <= static_cast<std::size_t>(to) ||
          row.received[to].size() <= static_cast<std::size_t>(from) ||
          row.sent[from][to] == row.received[to][from])
        continue;
      row.error = fmt::format("in '{}', {}, rank {} has {} bytes for rank {}, which expects {}",
                              row.request.name, Describe(row.request.signature), rank_in_job_(from),
                              row.sent[from][to], rank_in_job_(to), row.received[to][from]);
      break;
    }
  }
}

bool Coordinator::IsComplete(const Row& row) const {
  if (row.num == size_) return true;
  if (row.num + num_joined_ < size_) return false;
  for (int rank = 0; rank < size_; ++rank) {
    if (!row.has[rank] && !joined_[rank]) return false;
  }
  return true;
}

/// Called when all ranks that have not joined have submitted the name.
void Coordinator::Complete(const std::string& name, Answer& answer) {
  Row& row = rows_.at(name);
  row.is_complete = true;
  if (row.error.empty() && row.num < size_ && !row.request.signature.takes_joined()) {
    row.error = fmt::format(
        "'{}' is {}, in which {} can no longer take part: joined ranks take part only in barriers and in allreduces with the engine's own operations",
        name, Describe(row.request.signature), Ranks([&](int rank) { return joined_[rank]; }));
  }
  if (row.error.empty() && !row.sent.empty()) CompareCounts(row);
  std::string error = row.error;
  const std::vector<std::string> in_groups = row.groups;
  for (const std::string& group : in_groups) {
    groups_.at(group).complete.push_back(name);
    if (error.empty()) error = groups_.at(group).error;
  }
  if (in_groups.empty()) return End(name, error, answer);
  if (!error.empty()) {
    for (const std::string& group : in_groups) FailGroup(group, error, answer);
    return;
  }
  Group& group = groups_.at(in_groups.front());
  if (group.complete.size() < group.size) return;
  const std::vector<std::string> names = std::exchange(group.complete, {});
  for (const std::string& one : names) End(one, "", answer);
}

/// Ends the group's members with the error: those that are ready on all ranks end now, the others as soon as
/// they are ready.
void Coordinator::FailGroup(const std::string& name, const std::string& error, Answer& answer) {
  const auto place = groups_.find(name);
  if (place == groups_.end()) return;  // the group's last member has already ended
  place->second.error = error;
  const std::vector<std::string> names = std::exchange(place->second.complete, {});
  for (const std::string& one : names) {
    if (rows_.contains(one)) End(one, error, answer);
  }
}

/// Ends an operation and removes it from its groups. Removes a group when no member is left or expected.
void Coordinator::End(const std::string& name, const std::string& error, Answer& answer) {
  const auto row = rows_.find(name);
  for (const std::string& in : row->second.groups) {
    const auto group = groups_.find(in);
    std::erase(group->second.names, name);
    std::erase(group->second.complete, name);
    if (!error.empty()) {
      group->second.error = error;
      group->second.ended.push_back(name);
    }
    const bool more_come = !group->second.error.empty() && group->second.ended.size() < group->second.size;
    if (group->second.names.empty() && !more_come) groups_.erase(group);
  }
  Request request = std::move(row->second.request);
  request.sent.clear();
  request.received.clear();
  answer.agreed.push_back({std::move(request), error});
  rows_.erase(row);
}

/// Called when ranks have joined, which may complete names. If all ranks have joined, joining starts over.
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
  const std::string name = fmt::format("'{}' ({})", row.request.name, Describe(row.request.signature));
  const std::string known = row.error.empty() ? "" : "; " + row.error;
  if (row.is_complete) {
    const Group& group = groups_.at(row.groups.front());
    std::string others;
    for (const std::string& other : group.names) {
      if (!rows_.at(other).is_complete)
        others += fmt::format("{}'{}'", others.empty() ? ", not ready: " : ", ", other);
    }
    return fmt::format(
        "{} has been ready everywhere for {:.0f} s and waits for the rest of its group '{}': {} of {} are{}{}",
        name, now - row.since, row.groups.front(), group.complete.size(), group.size, others, known);
  }
  return fmt::format("{} has been ready on {} but not on {} for {:.0f} s{}", name,
                     Ranks([&](int rank) { return row.has[rank]; }),
                     Ranks([&](int rank) { return !row.has[rank] && !joined_[rank]; }), now - row.since,
                     known);
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
    if (row == rows_.end()) continue;  // already ended with its group
    // All submitted members of the group fail, too, no matter which ranks have submitted them.
    std::vector<std::string> names{name};
    for (const std::string& group : row->second.groups) {
      const std::vector<std::string>& members = groups_.at(group).names;
      names.insert(names.end(), members.begin(), members.end());
    }
    for (const std::string& one : names) {
      if (rows_.contains(one)) End(one, error, answer);
    }
  }
}

std::vector<std::string> Coordinator::TakeWarnings() {
  return std::exchange(warnings_, {});
}

}  // namespace warren::coordinator
