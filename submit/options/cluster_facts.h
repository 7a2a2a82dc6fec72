// The facts about a cluster that matter for the options. The registry of clusters (cluster/clusters.h) adds
// the rest.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/options/option.h"
#include "submit/options/options.h"

namespace warren::submit {

/// The part of a cluster's registry entry that concerns the command line. The functions may throw
/// std::runtime_error, and UsageError if the options are wrong.
struct ClusterFacts {
  // Required members:
  std::string name;   ///< the value of --cluster
  std::string where;  ///< where its processes run, in a few words for --help

  // Optional members:
  bool may_lose_workers = false;  ///< whether --num-workers MIN:MAX is supported
  bool experimental = false;      ///< tested only with stand-ins, or by hand on a small cluster
  std::vector<std::string> shared_options = {};  ///< options that this cluster and some others support
  std::vector<Option> own_options = {};          ///< options for this cluster only
  std::string bound_by = {};                     ///< how to bind processes if --bind is not supported
  /// Whether the option `name`, which the cluster supports, has no effect in combination with the other
  /// options.
  std::function<bool(const Options&, std::string_view name)> ignores = nullptr;
  /// Throws if the options are invalid for this cluster.
  std::function<void(const Options&)> check = nullptr;
};

/// Whether the cluster uses the option; ClusterFacts::ignores may still make it ineffective.
bool Heeds(const ClusterFacts& cluster, const Option& option);

/// Throws a std::runtime_error that lists the possible names or, for a retired cluster, names alternatives.
[[noreturn]] void ThrowUnknownCluster(std::string_view name, const std::string& possible_names);

/// The cluster with this --cluster name. Calls ThrowUnknownCluster if no cluster has it. `Facts` is
/// ClusterFacts or derived from it.
template <typename Facts>
const Facts& FindCluster(const std::vector<Facts>& clusters, std::string_view name) {
  std::string names;
  for (const Facts& cluster : clusters) {
    if (cluster.name == name) return cluster;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", cluster.name);
  }
  ThrowUnknownCluster(name, names);
}

}  // namespace warren::submit
