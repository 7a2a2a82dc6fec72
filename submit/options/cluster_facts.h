// The facts about a cluster that the options need. The registry of clusters (cluster/clusters.h) has the
// rest.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/options/option.h"
#include "submit/options/options.h"

namespace warren::submit {

/// The part of a cluster's row of the registry that concerns the command line. The functions may throw
/// std::runtime_error, or UsageError if the options are wrong.
struct ClusterFacts {
  // Required.
  std::string name;   ///< the value of --cluster
  std::string where;  ///< where its processes run, in a few words for --help

  // Optional.
  bool experimental = false;  ///< tested only with stand-ins, or by hand on a small cluster
  std::vector<std::string> shared_options = {};  ///< the options it supports that not all clusters do
  std::vector<Option> own_options = {};          ///< options for this cluster only
  std::string bound_by = {};                     ///< what binds processes instead, if --bind is not supported
  /// Whether an option that the cluster supports has no effect together with the others.
  std::function<bool(const Options&, std::string_view name)> ignores = nullptr;
  /// Throws if something is wrong with the options.
  std::function<void(const Options&)> check = nullptr;
};

/// Whether the option has an effect on the cluster.
bool Heeds(const ClusterFacts& cluster, const Option& option);

/// Throws std::runtime_error that lists the possible names or, for a retired cluster, says what to use
/// instead.
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
