#include "bench/bootstrap_workers/worker.h"

#include <arpa/inet.h>
#include <sys/socket.h>

namespace warren::bench {

sockaddr_in AddressOfWorker(const WorkerOptions& options, int task) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(options.first_address + static_cast<std::uint32_t>(task));
  return address;
}

void CloseByReset(const Descriptor& link) {
  const linger reset{1, 0};
  if (setsockopt(link.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset) != 0) ThrowErrno("SO_LINGER");
}

}  // namespace warren::bench
