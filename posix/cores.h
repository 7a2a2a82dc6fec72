// The cores that this process may run on. WARREN_PORTABLE: as on systems other than Linux, where a process
// cannot be kept to some of them. Needs nothing else of the tree.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace warren::posix {

/// Of the machine, at least 1.
inline int NumCores() {
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

#if defined(__linux__) && !defined(WARREN_PORTABLE)

/// By their numbers, which are below CPU_SETSIZE; empty where the kernel does not say.
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
