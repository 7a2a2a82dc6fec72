// A job in a cluster's queue, or a job's objects, which the cluster keeps even if dmlc-submit and its machine
// are gone.
#pragma once

#include <string>
#include <vector>

namespace warren::submit {

struct KeptJob {
  std::string name;                 ///< "job 12 of Slurm"
  std::vector<std::string> ask;     ///< the command that shows its state; empty if there is none
  std::vector<std::string> cancel;  ///< the command that ends it
};

}  // namespace warren::submit
