#include "submit/process/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <deque>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>

namespace warren::submit {
namespace {

/// The exclusive upper bound of core numbers, higher than Linux's.
constexpr int kMaxCoreNumber = 1 << 16;

CoreList Common(const CoreList& a, const CoreList& b) {
  CoreList both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

/// Splits `cores` into one part for each group that contains any of them. Cores in no group form the last
/// part.
std::vector<CoreList> Divide(CoreList cores, const std::vector<CoreList>& groups) {
  std::vector<CoreList> parts;
  for (const CoreList& group : groups) {
    CoreList part = Common(cores, group);
    if (part.empty()) continue;
    CoreList rest;
    std::set_difference(cores.begin(), cores.end(), part.begin(), part.end(), std::back_inserter(rest));
    cores = std::move(rest);
    parts.push_back(std::move(part));
  }
  if (!cores.empty()) parts.push_back(std::move(cores));
  return parts;
}

std::vector<CoreList> EachAlone(const CoreList& cores) {
  std::vector<CoreList> parts;
  parts.reserve(cores.size());
  for (const int core : cores) parts.push_back({core});
  return parts;
}

std::vector<CoreList> Sorted(std::vector<CoreList> lists) {
  std::erase_if(lists, [](const CoreList& list) { return list.empty(); });
  std::sort(lists.begin(), lists.end());
  lists.erase(std::unique(lists.begin(), lists.end()), lists.end());
  return lists;
}

/// Reads the core list in the first line of `file` in each subfolder of `folder` whose name is `name` and a
/// number. Lists that cannot be read are left out.
std::vector<CoreList> ReadLists(const std::filesystem::path& folder, std::string_view name,
                                const char* file) {
  std::vector<CoreList> lists;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string found = entry.path().filename();
    if (!found.starts_with(name) || found.find_first_not_of("0123456789", name.size()) != std::string::npos)
      continue;
    std::ifstream stream(entry.path() / file);
    std::string line;
    if (!std::getline(stream, line)) continue;
    if (auto list = ParseCoreList(line)) lists.push_back(std::move(*list));
  }
  return Sorted(std::move(lists));
}

/// Removes the cores that are not online: the mask of allowed cores may contain offline cores, and cores that
/// the machine does not have. Does nothing if `online` is empty, which means unknown.
void KeepOnline(CoreList& cores, const CoreList& online) {
  if (online.empty()) return;
  std::erase_if(cores, [&](int core) { return !std::binary_search(online.begin(), online.end(), core); });
}

/// The cores that one process needs.
struct Claim {
  int threads = 1;
  std::size_t node = 0;  ///< the preferred NUMA node
};

/// The claims of the workers, then those of the servers. The processes of each kind are spread over the nodes
/// in blocks, in proportion to the nodes' sizes.
std::vector<Claim> ClaimsOf(const HostProcesses& processes, const std::vector<CoreList>& nodes) {
  std::vector<std::size_t> node_of_core;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    node_of_core.insert(node_of_core.end(), nodes[node].size(), node);
  std::vector<Claim> claims;
  const auto spread = [&](int count, int threads) {
    for (int i = 0; i < count; ++i) {
      const std::size_t core =
          static_cast<std::size_t>(i) * node_of_core.size() / static_cast<std::size_t>(count);
      claims.push_back({threads, node_of_core[core]});
    }
  };
  spread(processes.workers, processes.threads);
  spread(processes.servers, 1);
  return claims;
}

/// The free cores, divided into pieces that are assigned only as a whole, and the number of threads that a
/// piece can serve.
struct Pieces {
  std::vector<std::deque<CoreList>> free;  ///< the free pieces of each node
  bool one_thread_each = false;            ///< whether a piece serves one thread; otherwise, one per core

  int Threads(const CoreList& piece) const { return one_thread_each ? 1 : static_cast<int>(piece.size()); }
  int Room(std::size_t node) const {
    return std::accumulate(free[node].begin(), free[node].end(), 0,
                           [this](int sum, const CoreList& piece) { return sum + Threads(piece); });
  }
  /// Moves pieces of the node to `cores` until they suffice for `threads` threads or the node has no more.
  /// Returns the number of threads still without cores, which is not positive if the pieces sufficed.
  int Take(std::size_t node, int threads, CoreList& cores) {
    for (; threads > 0 && !free[node].empty(); free[node].pop_front()) {
      threads -= Threads(free[node].front());
      cores.insert(cores.end(), free[node].front().begin(), free[node].front().end());
    }
    return threads;
  }
};

/// Gives each claim its own cores; nullopt if the pieces do not suffice. First serves the claims that fit on
/// one node, each on its preferred node or on the next node with enough free cores. Then serves the other
/// claims with the remaining pieces of several nodes.
std::optional<std::vector<CoreList>> Deal(const std::vector<Claim>& claims, Pieces pieces) {
  std::vector<CoreList> given(claims.size());
  const std::size_t nodes = pieces.free.size();
  const auto node_after = [&](std::size_t claim, std::size_t steps) {
    return (claims[claim].node + steps) % nodes;
  };
  for (std::size_t i = 0; i < claims.size(); ++i) {
    std::size_t step = 0;
    while (step < nodes && pieces.Room(node_after(i, step)) < claims[i].threads) ++step;
    if (step < nodes) pieces.Take(node_after(i, step), claims[i].threads, given[i]);
  }
  for (std::size_t i = 0; i < claims.size(); ++i) {
    int missing = given[i].empty() ? claims[i].threads : 0;
    for (std::size_t step = 0; step < nodes; ++step)
      missing = pieces.Take(node_after(i, step), missing, given[i]);
    if (missing > 0) return std::nullopt;
    std::sort(given[i].begin(), given[i].end());
  }
  return given;
}

Pieces Cut(const std::vector<CoreList>& nodes, const std::vector<CoreList>& physical_cores,
           bool one_thread_each) {
  Pieces pieces;
  pieces.one_thread_each = one_thread_each;
  for (const CoreList& node : nodes) {
    const std::vector<CoreList> parts = Divide(node, physical_cores);
    pieces.free.emplace_back(parts.begin(), parts.end());
  }
  return pieces;
}

/// Separate cores for each claim, in the first of these ways that is possible: one physical core for each
/// thread, whole physical cores, any cores.
std::vector<CoreList> OwnCores(const std::vector<Claim>& claims, const HostCores& host,
                               const std::vector<CoreList>& nodes) {
  std::vector<CoreList> physical = host.physical_cores;
  for (CoreList& unknown : EachAlone(host.allowed)) physical.push_back(std::move(unknown));
  for (const bool one_thread_each : {true, false}) {
    if (auto given = Deal(claims, Cut(nodes, physical, one_thread_each))) return *given;
  }
  // The order of physical cores is kept, so that the threads of a core stay together if possible.
  Pieces single = Cut(nodes, physical, false);
  for (auto& node : single.free) {
    std::deque<CoreList> alone;
    for (const CoreList& core : node) {
      for (const int thread : core) alone.push_back({thread});
    }
    node = std::move(alone);
  }
  return Deal(claims, std::move(single)).value_or(std::vector<CoreList>());
}

Binding NotBound(std::string why, bool too_few) {
  return {.workers = {}, .servers = {}, .why_not = std::move(why), .too_few = too_few};
}

std::string Counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::string_view BindName(Bind bind) {
  switch (bind) {
    case Bind::kCore:
      return "core";
    case Bind::kNuma:
      return "numa";
    case Bind::kNone:
      break;
  }
  return "none";
}

std::optional<CoreList> ParseCoreList(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  CoreList cores;
  const auto number = [&text]() -> std::optional<int> {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0 || value >= kMaxCoreNumber) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
  };
  while (!text.empty()) {
    const std::optional<int> first = number();
    if (!first) return std::nullopt;
    std::optional<int> last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = number();
    }
    if (!last || *last < *first) return std::nullopt;
    for (int core = *first; core <= *last; ++core) cores.push_back(core);
    if (text.empty()) break;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

std::string ShowCoreList(const CoreList& cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < cores.size() && cores[i + 1] == cores[i] + 1) ++i;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cores[first]);
    if (i > first) text += fmt::format("-{}", cores[i]);
  }
  return text;
}

std::string NamedCores(const CoreList& cores) {
  return fmt::format("{} {}", cores.size() == 1 ? "core" : "cores", ShowCoreList(cores));
}

HostCores ReadHostCores(const std::filesystem::path& root) {
  HostCores host;
  std::ifstream status(root / "proc/self/status");
  constexpr std::string_view kAllowed = "Cpus_allowed_list:";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kAllowed)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", kAllowed.size());
    if (begin != std::string::npos) host.allowed = ParseCoreList(line.substr(begin)).value_or(CoreList());
  }
  std::string online;
  std::getline(std::ifstream(root / "sys/devices/system/cpu/online"), online);
  KeepOnline(host.allowed, ParseCoreList(online).value_or(CoreList()));
  host.physical_cores = ReadLists(root / "sys/devices/system/cpu", "cpu", "topology/thread_siblings_list");
  host.numa_nodes = ReadLists(root / "sys/devices/system/node", "node", "cpulist");
  return host;
}

std::optional<HostCores> ParseHostCores(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::vector<std::vector<CoreList>> parts(1);
  for (std::string word; words >> word;) {
    if (word == "/") {
      parts.emplace_back();
      continue;
    }
    auto list = ParseCoreList(word);
    if (!list) return std::nullopt;
    parts.back().push_back(std::move(*list));
  }
  if (parts.size() != 4 || parts[0].size() != 1 || parts[3].size() > 1) return std::nullopt;
  if (!parts[3].empty()) KeepOnline(parts[0][0], parts[3][0]);
  return HostCores{std::move(parts[0][0]), Sorted(std::move(parts[1])), Sorted(std::move(parts[2]))};
}

std::string NotBoundStory(Bind bind, const Binding& binding, const std::string& host) {
  return fmt::format("--bind {}: no process is bound{}{}: {}{}", BindName(bind), host.empty() ? "" : " on ",
                     host, binding.why_not,
                     binding.too_few ? "; fewer workers or fewer threads (--worker-cores) would fit" : "");
}

Binding BindProcesses(Bind bind, const HostCores& host, const HostProcesses& processes) {
  if (bind == Bind::kNone) return {};
  const std::vector<CoreList> nodes = Divide(host.allowed, host.numa_nodes);
  if (bind == Bind::kNuma && nodes.size() < 2) return NotBound("all cores belong to one NUMA node", false);
  const auto cores = static_cast<std::int64_t>(host.allowed.size());
  const std::int64_t threads = std::int64_t{processes.workers} * processes.threads + processes.servers;
  if (threads > cores) {
    return NotBound(fmt::format("{} of {}{} {} more than the {} that may be used",
                                Counted(processes.workers, "worker"), Counted(processes.threads, "thread"),
                                processes.servers > 0 ? " and " + Counted(processes.servers, "server") : "",
                                threads == 1 ? "is" : "are", Counted(cores, "core")),
                    true);
  }
  const std::vector<Claim> claims = ClaimsOf(processes, nodes);
  std::vector<CoreList> given;
  if (bind == Bind::kCore) {
    given = OwnCores(claims, host, nodes);
  } else {
    std::vector<int> threads_on(nodes.size());
    for (const Claim& claim : claims) {
      given.push_back(nodes[claim.node]);
      threads_on[claim.node] += claim.threads;
    }
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      const int room = static_cast<int>(nodes[node].size());
      if (threads_on[node] > room) {
        return NotBound(fmt::format("a NUMA node of {} would get {}", Counted(room, "core"),
                                    Counted(threads_on[node], "thread")),
                        true);
      }
    }
  }
  const auto servers = given.begin() + processes.workers;
  return {.workers = {given.begin(), servers}, .servers = {servers, given.end()}};
}

}  // namespace warren::submit
