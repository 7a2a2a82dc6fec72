// Settings of the calling process, mostly for use in a child process before exec, and names of signals. Most
// of the settings exist only on Linux; define WARREN_PORTABLE to get the code for other systems. All
// functions except SignalAbbreviation may be called between fork and exec. Depends on nothing else in the
// tree.
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

/// The name of a signal without "SIG": "TERM" for SIGTERM; empty if it has no name.
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

/// Has the kernel send `signal` to this process when the thread that forked it ends, at the latest when its
/// parent exits; 0 turns this off. Does nothing on other systems, where the process must notice the parent's
/// exit in another way.
inline void SignalAtParentsEnd(int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
}

/// Makes this process the new parent of descendants whose parent exits. Does nothing on other systems.
inline void BecomeSubreaper() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/// Sets the kernel's name for the calling thread, at most 15 characters. The main thread's name is the
/// process's name in `ps`. Does nothing on other systems.
inline void SetName(const char* name) {
  prctl(PR_SET_NAME, name);
}

/// Binds the calling thread, and all threads and processes that it starts later, to the cores whose bits are
/// set. Returns false and sets errno on failure.
inline bool KeepTo(const unsigned long* cores, std::size_t bytes) {
  return sched_setaffinity(0, bytes, reinterpret_cast<const cpu_set_t*>(cores)) == 0;
}

/// Closes all descriptors from `first` to `last`, inclusive. Returns false if the kernel has no such call
/// (Linux before 5.9).
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

/// Closes all descriptors from `first` on. If CloseRange fails, closes them one by one, up to the process's
/// limit on descriptors.
inline void CloseFrom(int first) {
  if (CloseRange(static_cast<unsigned>(first), ~0U)) return;
  const long limit = sysconf(_SC_OPEN_MAX);
  for (int fd = first; fd < limit; ++fd) close(fd);
}

}  // namespace warren::posix
