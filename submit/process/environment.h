// The environment of processes that dmlc-submit starts, here and on other hosts.
#pragma once

#include <string>
#include <vector>

#include "tracker/environment.h"

namespace warren::submit {

/// The names of the variables in dmlc-submit's own environment.
std::vector<std::string> InheritedNames();

/// The environment of dmlc-submit as "NAME=value" entries, with the variables in `added` added or replaced
/// and those in `unset` removed.
std::vector<std::string> InheritedWith(const tracker::Environment& added,
                                       const std::vector<std::string>& unset);

/// The variables of dmlc-submit's own environment that processes on other hosts also get, if set:
/// OMP_NUM_THREADS, LD_LIBRARY_PATH, PYTHONPATH and a few more.
tracker::Environment PassedOn();

}  // namespace warren::submit
