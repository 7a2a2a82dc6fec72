#include "submit/cluster/seats.h"

#include <algorithm>
#include <map>
#include <set>

namespace warren::submit {
namespace {

/// The free slots of each host.
class FreeSlots {
 public:
  FreeSlots(const std::vector<HostRoom>& hosts, const std::vector<std::optional<SeatedTask>>& tasks) {
    std::map<std::string, std::set<int>> taken;
    for (const auto& task : tasks) {
      if (task && task->seat) taken[task->seat->host].insert(task->seat->slot);
    }
    const auto most = static_cast<int>(tasks.size());  // no host needs more slots than there are tasks
    for (const HostRoom& host : hosts) {
      const std::set<int>& used = taken[host.name];
      for (int slot = 0; slot < std::min(host.slots, most); ++slot) {
        if (!used.contains(slot)) free_[host.name].insert(slot);
      }
    }
  }

  std::size_t Count(const std::string& host) const {
    const auto found = free_.find(host);
    return found == free_.end() ? 0 : found->second.size();
  }
  bool Has(const std::string& host) const { return Count(host) > 0; }
  Seat Take(const std::string& host) {
    std::set<int>& free = free_.at(host);
    return {host, free.extract(free.begin()).value()};
  }

 private:
  std::map<std::string, std::set<int>> free_;
};

bool IsThere(const std::vector<HostRoom>& hosts, const Seat& seat) {
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](const HostRoom& host) { return host.name == seat.host && seat.slot < host.slots; });
}

/// Adds the tasks whose seats are gone to `changes.leaves`, except one (`changes.kept`) if no remaining task
/// would have the training state otherwise.
void AskToLeave(const std::vector<HostRoom>& hosts, const std::vector<std::optional<SeatedTask>>& tasks,
                SeatChanges& changes) {
  bool state_stays = false;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto& task = tasks[i];
    if (!task || !task->seat || task->leaving) continue;
    if (IsThere(hosts, *task->seat)) {
      state_stays = state_stays || task->joined;
    } else {
      changes.leaves.push_back(i);
    }
  }
  if (state_stays) return;
  const auto holder = std::find_if(changes.leaves.begin(), changes.leaves.end(),
                                   [&](std::size_t task) { return tasks[task]->joined; });
  if (holder == changes.leaves.end()) return;
  changes.kept = *holder;
  changes.leaves.erase(holder);
}

}  // namespace

SeatChanges ChangeSeats(const std::vector<HostRoom>& hosts,
                        const std::vector<std::optional<SeatedTask>>& tasks, const HostLosses& losses,
                        TimePoint now) {
  SeatChanges changes;
  AskToLeave(hosts, tasks, changes);
  FreeSlots free(hosts, tasks);
  std::vector<std::size_t> waiting;
  std::size_t num_seated = 0;
  std::size_t num_leaving = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks[i]) continue;
    if (!tasks[i]->seat) {
      waiting.push_back(i);
    } else {
      ++(tasks[i]->leaving ? num_leaving : num_seated);
    }
  }
  num_seated -= changes.leaves.size();
  num_leaving += changes.leaves.size();
  const auto may_use = [&](const std::string& host) {
    return free.Has(host) && !losses.AvoidedUntil(host, now);
  };
  const auto start = [&](std::size_t task, const std::string& host) {
    changes.starts.push_back({task, free.Take(host)});
  };
  std::erase_if(waiting, [&](std::size_t task) {
    const bool returns = may_use(tasks[task]->last_host);
    if (returns) start(task, tasks[task]->last_host);
    return returns;
  });
  auto host = hosts.begin();
  std::erase_if(waiting, [&](std::size_t task) {
    host = std::find_if(host, hosts.end(), [&](const HostRoom& one) { return may_use(one.name); });
    if (host == hosts.end()) return false;
    start(task, host->name);
    return true;
  });
  std::size_t later = 0;
  for (const HostRoom& one : hosts) {
    const auto until = losses.AvoidedUntil(one.name, now);
    if (!until || waiting.empty() || !free.Has(one.name)) continue;
    changes.next = std::min(changes.next.value_or(*until), *until);
    if (!losses.IsLeftOut(one.name, now)) later += free.Count(one.name);
  }
  std::size_t room = 0;  // free slots for the tasks that are leaving
  for (const HostRoom& one : hosts) room += may_use(one.name) ? free.Count(one.name) : 0;
  changes.num_possible =
      num_seated + changes.starts.size() + std::min(waiting.size(), later) + std::min(num_leaving, room);
  return changes;
}

std::size_t NumSlots(const std::vector<HostRoom>& hosts, std::size_t limit) {
  std::size_t slots = 0;
  for (const HostRoom& host : hosts) slots = std::min(limit, slots + static_cast<std::size_t>(host.slots));
  return slots;
}

}  // namespace warren::submit
