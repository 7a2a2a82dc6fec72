#include "bench/bootstrap_workers/worker.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstring>

namespace warren::bench {

Worker::Worker(EventLoop& loop, int task, const WorkerOptions& options)
    : fiber_(loop), options_(&options), task_id_(std::to_string(task)), address_{} {
  address_.sin_family = AF_INET;
  address_.sin_addr.s_addr = htonl(options.first_address + static_cast<std::uint32_t>(task));
}

void Worker::SendRank(const Descriptor& link, std::int32_t rank) const {
  char raw[kIntBytes];
  std::memcpy(raw, &rank, kIntBytes);
  fiber_.Send(link, {raw, kIntBytes});
}

Task<int> Worker::ReceiveRank(const Descriptor& link) {
  std::string said;
  while (said.size() < kIntBytes) said += co_await fiber_.Receive(link, kIntBytes - said.size());
  std::int32_t rank = 0;
  std::memcpy(&rank, said.data(), kIntBytes);
  co_return rank;
}

void CloseByReset(const Descriptor& link) {
  const linger reset{1, 0};
  if (setsockopt(link.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset) != 0) ThrowErrno("SO_LINGER");
}

}  // namespace warren::bench
