// The cores of this machine and those that this process may use. Define WARREN_PORTABLE to get the code for
// systems that, unlike Linux, cannot bind a process to cores. Depends on nothing else in the tree.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
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
  std::vector<int> cores;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
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
