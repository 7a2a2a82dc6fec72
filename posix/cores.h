// The cores of this machine and those that this process may use. Define WARREN_PORTABLE to get the code for
// systems that, unlike Linux, cannot bind a process to cores. Depends on nothing else in the tree.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <numeric>
#include <vector>

namespace warren::posix {

/// The number of online cores of this machine, at least 1. A core here is a hardware thread.
inline int NumCores() {
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

#if defined(__linux__) && !defined(WARREN_PORTABLE)

/// The numbers of the cores that the calling thread may use, in ascending order; empty if they are unknown.
inline std::vector<int> OwnCores() {
  std::vector<cpu_set_t> mask(1);
  // The kernel refuses masks that are too small for the largest number of cores that it supports.
  while (sched_getaffinity(0, mask.size() * sizeof(cpu_set_t), mask.data()) != 0) {
    if (errno != EINVAL || mask.size() > 64) return {};
    mask.resize(2 * mask.size());
  }
  std::vector<int> cores;
  const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
  for (std::size_t core = 0; core < 8 * bytes; ++core) {
    if (CPU_ISSET_S(core, bytes, mask.data())) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

#else

inline std::vector<int> OwnCores() {
  std::vector<int> cores(static_cast<std::size_t>(NumCores()));
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

#endif

}  // namespace warren::posix
