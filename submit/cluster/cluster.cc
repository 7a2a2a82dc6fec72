#include "submit/cluster/cluster.h"

#include <fmt/format.h>

#include <utility>

namespace warren::submit {

JobHost HostByRoute(const tracker::Reached& reached) {
  if (reached.address == kLoopback) return {reached.address};
  return {reached.address,
          reached.by.empty() ? "the default route" : fmt::format("the route to {}", reached.by)};
}

void Cluster::Dump(std::size_t /*index*/, std::function<void(std::string text)> done) {
  std::exchange(done, nullptr)("(stacks are not available on this cluster)\n");
}

}  // namespace warren::submit
