// What a cluster keeps of a job even if dmlc-submit and its machine are gone: a job in its queue, or objects.
#pragma once

#include <string>
#include <vector>

namespace warren::submit {

struct KeptJob {
  std::string name;                 ///< "job 12 of Slurm"
  std::vector<std::string> ask;     ///< the command that shows its state; empty: none
  std::vector<std::string> cancel;  ///< the command that ends it
};

}  // namespace warren::submit
