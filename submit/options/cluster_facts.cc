#include "submit/options/cluster_facts.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace warren::submit {
namespace {

/// Retired clusters, and the advice given for each.
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kRetired = {{
    {"mesos",
     "Apache Mesos was retired in 2025; use kubernetes, slurm or yarn, or ssh with a list of the hosts"},
}};

}  // namespace

bool Heeds(const ClusterFacts& cluster, const Option& option) {
  if (option.for_every_cluster) return true;
  const auto& shared = cluster.shared_options;
  const auto& own = cluster.own_options;
  return std::find(shared.begin(), shared.end(), option.name) != shared.end() ||
         std::any_of(own.begin(), own.end(), [&](const Option& one) { return one.name == option.name; });
}

void ThrowUnknownCluster(std::string_view name, const std::string& possible_names) {
  for (const auto& [retired, advice] : kRetired) {
    if (retired == name)
      throw std::runtime_error(fmt::format("'{}' is no longer supported: {}", name, advice));
  }
  throw std::runtime_error(fmt::format("'{}' is not one of {}", name, possible_names));
}

}  // namespace warren::submit
