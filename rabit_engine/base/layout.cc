#include "rabit_engine/base/layout.h"

#include <bit>

namespace warren {

HostLayout::HostLayout(const std::vector<int>& leaders)
    : host_of_(leaders.size()), local_index_(leaders.size()) {
  for (int rank = 0; rank < static_cast<int>(leaders.size()); ++rank) {
    if (leaders[rank] == rank) {
      host_of_[rank] = num_hosts();
      hosts_.emplace_back();
    } else {
      host_of_[rank] = host_of_[leaders[rank]];
    }
    std::vector<int>& host = hosts_[host_of_[rank]];
    local_index_[rank] = static_cast<int>(host.size());
    host.push_back(rank);
  }
  if (hosts_.empty()) return;
  const std::size_t first = hosts_.front().size();
  keeps_order_ = std::has_single_bit(first);
  int next_rank = 0;
  for (const std::vector<int>& host : hosts_) {
    hosts_are_equal_ = hosts_are_equal_ && host.size() == first;
    const bool is_last = &host == &hosts_.back();
    keeps_order_ = keeps_order_ && (is_last ? host.size() <= first : host.size() == first);
    for (const int rank : host) hosts_are_consecutive_ = hosts_are_consecutive_ && rank == next_rank++;
  }
  keeps_order_ = keeps_order_ && hosts_are_consecutive_;
}

}  // namespace warren
