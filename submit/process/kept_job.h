// A job that a cluster keeps even if dmlc-submit and its machine are gone: an entry in a queue, or objects of
// Kubernetes.
#pragma once

#include <string>
#include <vector>

namespace warren::submit {

struct KeptJob {
  std::string name;                 ///< "job 12 of Slurm"
  std::vector<std::string> ask;     ///< the command that shows its state; empty if none exists
  std::vector<std::string> cancel;  ///< the command that ends it
};

}  // namespace warren::submit
