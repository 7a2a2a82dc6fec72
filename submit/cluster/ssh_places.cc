#include "submit/cluster/ssh_places.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>

#include "submit/cluster/core_choice.h"
#include "submit/process/environment.h"

namespace warren::submit {
namespace {

/// The places of the servers, or of the workers, on a host.
std::vector<std::size_t> PlacesOnHost(const Options& options, const std::vector<std::size_t>& places,
                                      std::size_t host, bool servers) {
  const auto first_worker = static_cast<std::size_t>(options.num_servers);
  std::vector<std::size_t> found;
  for (std::size_t place = servers ? 0 : first_worker; place < (servers ? first_worker : places.size());
       ++place) {
    if (places[place] == host) found.push_back(place);
  }
  return found;
}

/// The binding of a host's processes. `report`: see ChooseCores.
Binding BindingOn(const Options& options, const std::string& report, std::size_t workers,
                  std::size_t servers) {
  std::istringstream words(report);
  int usable = 1;
  std::string threads;
  std::string lists;
  std::getline(words >> usable >> threads >> std::ws, lists);
  const std::optional<HostCores> cores = ParseHostCores(lists);
  if (!cores) return {.workers = {}, .servers = {}, .why_not = "it did not report its cores"};
  // dmlc-submit's own OMP_NUM_THREADS, which is passed on, and --worker-cores take precedence over the host's
  // OMP_NUM_THREADS.
  const char* passed = std::getenv("OMP_NUM_THREADS");
  if (passed != nullptr || options.worker_cores_were_chosen) threads = passed != nullptr ? passed : "";
  return BindProcesses(
      BindOf(options), *cores,
      ProcessesToBind(options, static_cast<int>(workers), static_cast<int>(servers), usable, threads));
}

}  // namespace

std::size_t PlaceOf(const Options& options, std::size_t index) {
  return options.num_servers > 0 ? index - 1 : index;
}

std::size_t SeatedPlace(const std::vector<std::size_t>& places, std::size_t host, int slot) {
  const auto first = std::find(places.begin(), places.end(), host);
  return static_cast<std::size_t>(first - places.begin()) + static_cast<std::size_t>(slot);
}

CoreShare ShareOf(const Options& options, const PlannedProcess& process,
                  const std::vector<std::size_t>& places, std::size_t place, std::size_t host) {
  if (process.role != tracker::Role::kWorker || ThreadsOf(options, InheritedNames()) != Threads::kShare)
    return {};
  const std::size_t workers = PlacesOnHost(options, places, host, false).size();
  const auto servers = static_cast<int>(PlacesOnHost(options, places, host, true).size());
  const bool moved = places[place] != host;
  return {.workers = std::to_string(workers + (moved ? 1 : 0)), .kept = CoresOfServers(options, servers)};
}

void MovedWorkers::Start(std::size_t place, std::size_t host, bool moved) {
  moved_.erase(place);
  if (!moved) return;
  std::set<std::size_t> taken;
  for (const auto& [other, found] : moved_) {
    if (found.first == host) taken.insert(found.second);
  }
  std::size_t number = 0;
  while (taken.contains(number)) ++number;
  moved_[place] = {host, number};
}

std::size_t MovedWorkers::CountOn(std::size_t host) const {
  return static_cast<std::size_t>(std::count_if(
      moved_.begin(), moved_.end(), [host](const auto& entry) { return entry.second.first == host; }));
}

void AddPlace(const Options& options, const std::vector<std::size_t>& places, const MovedWorkers& moved,
              std::size_t place, std::size_t host, const std::string& master, PlannedProcess& process) {
  if (process.role != tracker::Role::kWorker) return;
  const std::vector<std::size_t> workers = PlacesOnHost(options, places, host, false);
  const auto own = std::find(workers.begin(), workers.end(), place);
  // The host's own workers keep their local ranks; those that were moved there follow.
  const std::size_t local_rank = own != workers.end() ? static_cast<std::size_t>(own - workers.begin())
                                                      : workers.size() + moved.NumberOf(place);
  AddPlaceVariable(kLocalRankVariable, std::to_string(local_rank), process.environment);
  AddPlaceVariable(kLocalSizeVariable, std::to_string(workers.size() + moved.CountOn(host)),
                   process.environment);
  std::size_t cross_rank = 0;
  std::size_t cross_size = 0;
  const std::size_t hosts = *std::max_element(places.begin(), places.end()) + 1;
  for (std::size_t other = 0; other < hosts; ++other) {
    if (other != host && PlacesOnHost(options, places, other, false).size() <= local_rank) continue;
    if (other < host) ++cross_rank;
    ++cross_size;
  }
  process.environment.emplace_back(kCrossRankVariable, std::to_string(cross_rank));
  process.environment.emplace_back(kCrossSizeVariable, std::to_string(cross_size));
  if (!NamesMaster(process)) process.environment.emplace_back(kMasterVariable, master);
}

PlaceCores ChooseCores(const Options& options, const std::vector<std::size_t>& places, std::size_t place,
                       std::size_t host, const std::string& report) {
  const std::vector<std::size_t> workers = PlacesOnHost(options, places, host, false);
  const std::vector<std::size_t> servers = PlacesOnHost(options, places, host, true);
  PlaceCores chosen{.own = {}, .host = BindingOn(options, report, workers.size(), servers.size())};
  const auto take = [&](const std::vector<std::size_t>& here, const std::vector<CoreList>& cores) {
    const auto found = std::find(here.begin(), here.end(), place);
    if (found != here.end() && !cores.empty()) chosen.own = cores[found - here.begin()];
  };
  take(servers, chosen.host.servers);
  take(workers, chosen.host.workers);
  return chosen;
}

}  // namespace warren::submit
