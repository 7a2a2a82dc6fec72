#include "bench/simulation/host_sums.h"

#include <algorithm>
#include <vector>

#include "rabit_engine/reduce/order.h"

namespace warren::simulation {
namespace {

/// How many partial sums `hosts` hosts from `first` on hold.
std::size_t SumsOf(int first, int hosts, int num_hosts, int ranks_of_host) {
  return Decompose(first * ranks_of_host, (first + hosts) * ranks_of_host, num_hosts * ranks_of_host).size();
}

/// Nothing is written or read: the buffer may be smaller.
void Swap(PeerGroup& group, int peer, void* buffer, std::size_t sent_bytes, std::size_t received_bytes) {
  const Send send{peer, buffer, sent_bytes};
  const Receive receive{peer, buffer, received_bytes, {}};
  group.Exchange({&send, 1}, {&receive, 1});
}

}  // namespace

void AllreduceHostSums(PeerGroup& hosts, void* buffer, std::size_t count, const Reduction& reduction,
                       int ranks_of_host, bool halves) {
  std::vector<int> peers;
  for (int distance = 1; distance < hosts.size(); distance *= 2) peers.push_back(hosts.index() ^ distance);
  hosts.Connect(peers);
  std::vector<std::size_t> windows;
  for (int distance = 1; distance < hosts.size(); distance *= 2) {
    const int peer = hosts.index() ^ distance;
    const int own_first = hosts.index() / distance * distance;
    const int peer_first = peer / distance * distance;
    if (halves) count = std::max<std::size_t>(1, count / 2);
    windows.push_back(count);
    const std::size_t bytes = count * reduction.element_bytes();
    const std::size_t own = SumsOf(own_first, distance, hosts.size(), ranks_of_host);
    const std::size_t theirs = SumsOf(peer_first, distance, hosts.size(), ranks_of_host);
    Swap(hosts, peer, buffer, own * bytes, theirs * bytes);
    const std::size_t joint =
        SumsOf(std::min(own_first, peer_first), 2 * distance, hosts.size(), ranks_of_host);
    for (std::size_t i = joint; i < own + theirs; ++i) reduction.Combine(buffer, buffer, buffer, count);
  }
  if (!halves) return;
  for (std::size_t level = peers.size(); level-- > 0;) {
    Swap(hosts, peers[level], buffer, windows[level] * reduction.element_bytes(),
         windows[level] * reduction.element_bytes());
  }
}

}  // namespace warren::simulation
