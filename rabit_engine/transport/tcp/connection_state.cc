#include "rabit_engine/transport/tcp/connection_state.h"

#include <linux/sockios.h>
// The C library's <netinet/tcp.h> lacks tcpi_busy_time.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

namespace warren::tcp {

int Unanswered(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  return std::max(info.tcpi_retransmits, info.tcpi_probes);
}

bool IsFull(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  int queued = 0;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_unacked == 0 &&
         ioctl(fd, SIOCOUTQ, &queued) == 0 && queued > 0;
}

SendProgress ProgressOf(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  // Kernels before 4.10 return a shorter structure; the fields at its end then stay zero.
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  const std::uint64_t busy = info.tcpi_busy_time - std::min(info.tcpi_busy_time, info.tcpi_rwnd_limited);
  return {info.tcpi_bytes_acked, std::chrono::microseconds(busy),
          std::chrono::microseconds(info.tcpi_min_rtt)};
}

}  // namespace warren::tcp
