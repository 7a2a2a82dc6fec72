#include "submit/job/seating.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tracker/unranked_workers.h"

namespace warren::submit {
namespace {

/// Describes each change: "n1 has come (2 slots)", "n2 has 1 slot instead of 2", "n3 has gone".
std::vector<std::string> DescribeChanges(const std::vector<HostRoom>& before,
                                         const std::vector<HostRoom>& now) {
  std::vector<std::string> changes;
  const auto find = [](const std::vector<HostRoom>& among, const std::string& name) {
    return std::find_if(among.begin(), among.end(), [&](const HostRoom& one) { return one.name == name; });
  };
  const auto slots = [](int count) { return fmt::format("{} slot{}", count, count == 1 ? "" : "s"); };
  for (const HostRoom& host : now) {
    const auto old = find(before, host.name);
    if (old == before.end()) {
      changes.push_back(fmt::format("{} has come ({})", host.name, slots(host.slots)));
    } else if (old->slots != host.slots) {
      changes.push_back(fmt::format("{} has {} instead of {}", host.name, slots(host.slots), old->slots));
    }
  }
  for (const HostRoom& host : before) {
    if (find(now, host.name) == now.end()) changes.push_back(fmt::format("{} has gone", host.name));
  }
  return changes;
}

SeatChanges FindChanges(const std::vector<HostRoom>& hosts, const std::vector<ProcessState>& processes,
                        const HostLosses& losses, TimePoint now) {
  std::vector<std::optional<SeatedTask>> tasks;
  for (const ProcessState& one : processes) {
    tasks.push_back(one.succeeded ? std::nullopt
                                  : std::optional(SeatedTask{one.seat, one.last_host, one.rank.has_value(),
                                                             one.leaving}));
  }
  return ChangeSeats(hosts, tasks, losses, now);
}

}  // namespace

void Unseat(ProcessState& process) {
  process.seat.reset();
  process.left_out = true;
}

Seating::Seating(std::string hosts_from, std::size_t min_workers)
    : hosts_from_(std::move(hosts_from)), min_workers_(min_workers) {}

void Seating::Clear() {
  is_first_ = true;
  to_start_.clear();
  kept_.reset();
  num_expected_ = 0;
  told_that_it_waits_ = false;
}

std::vector<Action> Seating::SetHosts(const std::vector<HostRoom>& hosts, bool tells) {
  const std::vector<std::string> changes = DescribeChanges(std::exchange(hosts_, hosts), hosts);
  if (!tells || changes.empty()) return {};
  return {LogLine{Severity::kInfo, fmt::format("{}: {}", hosts_from_, tracker::ListSome(changes))}};
}

std::vector<Action> Seating::Reseat(std::vector<ProcessState>& processes, HostLosses& losses, TimePoint now) {
  std::vector<Action> actions;
  for (const std::size_t index : std::exchange(to_start_, {})) Unseat(processes[index]);
  SeatChanges changes = FindChanges(hosts_, processes, losses, now);
  const bool is_first = std::exchange(is_first_, false);
  if (is_first && changes.next && changes.num_possible < min_workers_) {
    actions.push_back(LogLine{Severity::kWarning,
                              "too few other hosts are left: those that have lost workers are used again"});
    losses.Clear();
    changes = FindChanges(hosts_, processes, losses, now);
  }
  for (const std::size_t index : changes.leaves) {
    ProcessState& process = processes[index];
    process.leaving = true;
    actions.push_back(LogLine{
        Severity::kInfo, fmt::format("{} is asked to leave {}", process.Describe(), process.seat->host)});
    actions.push_back(AskToLeave{index});
  }
  for (const SeatChanges::Start& start : changes.starts) {
    processes[start.task].seat = start.seat;
    processes[start.task].left_out = false;
    to_start_.push_back(start.task);
  }
  if (changes.kept && changes.kept != kept_) {
    const ProcessState& process = processes[*changes.kept];
    actions.push_back(
        LogLine{Severity::kWarning,
                fmt::format("{} stays on {}, which has gone, until another worker has joined: the training's "
                            "state would be lost with it",
                            process.Describe(), process.seat->host)});
  }
  kept_ = changes.kept;
  num_possible_ = changes.num_possible;
  next_change_ = changes.next;
  const auto num_left = static_cast<int>(NumLeft(processes));
  if (std::exchange(num_expected_, num_left) != num_left) actions.push_back(ExpectWorkers{num_left});
  if (is_first && num_possible_ < processes.size() && !hosts_.empty()) {
    actions.push_back(
        LogLine{Severity::kInfo, fmt::format("{} of at most {} workers start: {} has no more slots",
                                             num_possible_, processes.size(), hosts_from_)});
  }
  return actions;
}

std::vector<Action> Seating::TellIfItWaits(bool needs_workers) {
  const bool waits = needs_workers && has_too_few();
  if (!waits || std::exchange(told_that_it_waits_, waits)) {
    told_that_it_waits_ = waits;
    return {};
  }
  return {LogLine{
      Severity::kWarning,
      fmt::format("{} of at least {} workers can run: waiting for hosts from {} (--timeout says how long)",
                  num_possible_, min_workers_, hosts_from_)}};
}

std::size_t Seating::TakeNext() {
  const std::size_t index = to_start_.front();
  to_start_.pop_front();
  return index;
}

}  // namespace warren::submit
