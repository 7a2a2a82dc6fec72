// Errors of system calls that indicate a shortage of a resource in this process or on its host, as opposed to
// a failure of a peer. Code that mistakes such an error for the loss of a peer blames the wrong process and
// may retry forever. Depends on nothing else in the tree.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace warren::posix {

/// Whether the cause of the error is on this host: a lack of descriptors, memory, ports or permission.
inline bool IsLocalShortage(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EADDRNOTAVAIL:
    case EACCES:
    case EPERM:
      return true;
    default:
      return false;
  }
}

/// Whether an error that IsLocalShortage accepts concerns one address only: connecting to another address of
/// the same peer may succeed.
inline bool ConcernsAddress(int error) {
  return error == EADDRNOTAVAIL || error == EACCES || error == EPERM;
}

/// Returns the errno with which opening a descriptor currently fails, if it indicates a local shortage;
/// otherwise 0. For calls that do not report why they failed, such as getaddrinfo.
inline int DescriptorShortage() {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return IsLocalShortage(errno) ? errno : 0;
  close(fd);
  return 0;
}

/// Returns text such as "64 of the 64 files that this process may open (ulimit -n) are open", or "at least
/// 60000 of the 1048576 files ..." if not all descriptors were counted.
inline std::string DescribeOpenFiles() {
  // Counting this many descriptors takes a few ms. Listing /proc/self/fd instead would need a free
  // descriptor.
  constexpr rlim_t kMostCounted = 65'536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return "its limit of open files (ulimit -n) is unknown";
  const rlim_t most = std::min(limit.rlim_cur, kMostCounted);
  rlim_t open_files = 0;
  for (rlim_t fd = 0; fd < most; ++fd) open_files += fcntl(static_cast<int>(fd), F_GETFD) >= 0 ? 1 : 0;
  return (most < limit.rlim_cur ? "at least " : "") + std::to_string(open_files) + " of the " +
         std::to_string(limit.rlim_cur) + " files that this process may open (ulimit -n) are open";
}

/// Returns text that says what this host or process lacks and how to fix that; empty for errors that indicate
/// no shortage.
inline std::string ShortageAdvice(int error) {
  switch (error) {
    case EMFILE:
      return DescribeOpenFiles() +
             ": raise the limit, e.g. with ulimit -n 65536 before the job, or find out what keeps files open.";
    case ENFILE:
      return "This host has reached its limit of open files: raise fs.file-max (sysctl).";
    case ENOMEM:
    case ENOBUFS:
      return "This host is out of memory, or this process has reached its memory limit (ulimit -v, the container's): use fewer processes here, or raise the limit.";
    case EADDRNOTAVAIL:
      return "This host has no suitable local address or no free port: check ip address, and sysctl net.ipv4.ip_local_port_range; "
             "ports of closed connections are free again after a minute.";
    case EACCES:
    case EPERM:
      return "This host denied the operation: check its firewall's rules for outgoing connections, SELinux, and the restrictions of its container or service.";
    case EAGAIN:
      return "This host or user has reached its limit of threads: raise the limit of processes (ulimit -u, pids.max of the container).";
    default:
      return "";
  }
}

}  // namespace warren::posix
