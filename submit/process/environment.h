// The environment of processes that are started on this machine.
#pragma once

#include <string>
#include <vector>

#include "tracker/environment.h"

namespace warren::submit {

/// The names of the variables in dmlc-submit's own environment.
std::vector<std::string> InheritedNames();

/// The environment of dmlc-submit, as "NAME=value", with `added` in place of variables of the same names and
/// without those in `unset`.
std::vector<std::string> InheritedWith(const tracker::Environment& added,
                                       const std::vector<std::string>& unset);

/// What processes elsewhere get of dmlc-submit's own environment, too, where it is set: OMP_NUM_THREADS,
/// LD_LIBRARY_PATH, PYTHONPATH and a few more.
tracker::Environment PassedOn();

}  // namespace warren::submit
