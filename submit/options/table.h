// The table of options, from which the parser, --help, docs/reference/options.md, the schema of job files,
// the manual page and the completion scripts are generated.
#pragma once

#include <string_view>
#include <vector>

#include "submit/options/cluster_facts.h"
#include "submit/options/option.h"

namespace warren::submit {

/// The options of all jobs and the options of each cluster.
class OptionTable {
 public:
  explicit OptionTable(std::vector<ClusterFacts> clusters);
  OptionTable(const OptionTable&) = delete;
  OptionTable& operator=(const OptionTable&) = delete;

  const std::vector<ClusterFacts>& clusters() const { return clusters_; }
  const std::vector<Option>& rows() const { return rows_; }
  /// The option with this name or alternative name, including its dashes; null if none exists.
  const Option* Find(std::string_view name) const;

 private:
  const std::vector<ClusterFacts> clusters_;
  const std::vector<Option> rows_;  ///< refer to clusters_
};

}  // namespace warren::submit
