// What a process asks for itself and for those it starts. WARREN_PORTABLE: as on systems other than Linux,
// which have little of it. All but SignalAbbreviation may be called between fork and exec. Needs nothing else
// of the tree.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace warren::posix {

/// "TERM" of SIGTERM; empty when it has no name.
inline std::string SignalAbbreviation(int signal) {
#ifdef __APPLE__
  if (signal <= 0 || signal >= NSIG) return {};
  std::string name = sys_signame[signal];
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
#else
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? name : "";
#endif
}

#if defined(__linux__) && !defined(WARREN_PORTABLE)

/// Is sent to this process when its parent ends. Elsewhere the parent's end must be noticed in another way.
inline void SignalAtParentsEnd(int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
}

/// Descendants whose parent ends become children of this process.
inline void BecomeSubreaper() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/// What the kernel calls this process.
inline void SetName(const char* name) {
  prctl(PR_SET_NAME, name);
}

/// Keeps this process to the cores whose bits are set; false with errno.
inline bool KeepTo(const unsigned long* cores, std::size_t bytes) {
  return sched_setaffinity(0, bytes, reinterpret_cast<const cpu_set_t*>(cores)) == 0;
}

/// Closes all descriptors from `first` to `last`; false where the kernel has no such call (Linux before 5.9).
inline bool CloseRange(unsigned first, unsigned last) {
  return first > last || close_range(first, last, 0) == 0;
}

#else

inline void SignalAtParentsEnd(int /*signal*/) {}

inline void BecomeSubreaper() {}

inline void SetName(const char* /*name*/) {}

inline bool KeepTo(const unsigned long* /*cores*/, std::size_t /*bytes*/) {
  errno = ENOSYS;
  return false;
}

inline bool CloseRange(unsigned /*first*/, unsigned /*last*/) {
  return false;
}

#endif

}  // namespace warren::posix
