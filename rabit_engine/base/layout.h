// The assignment of ranks to hosts. Ranks are on the same host if they share memory. Computed without
// communication.
#pragma once

#include <vector>

namespace warren {

class HostLayout {
 public:
  /// `leaders[r]` is the lowest rank that shares memory with rank r; r itself if no lower rank does.
  explicit HostLayout(const std::vector<int>& leaders);

  int world_size() const { return static_cast<int>(host_of_.size()); }
  int num_hosts() const { return static_cast<int>(hosts_.size()); }
  /// Hosts are numbered in the order of their lowest ranks.
  int host_of(int rank) const { return host_of_[rank]; }
  /// The ranks on a host, ascending.
  const std::vector<int>& ranks_of(int host) const { return hosts_[host]; }
  int leader_of(int host) const { return hosts_[host].front(); }
  /// The position of a rank among the ranks on its host.
  int local_index(int rank) const { return local_index_[rank]; }

  bool is_one_host() const { return num_hosts() == 1 && world_size() > 1; }
  /// Whether there are several hosts, some of which have several ranks, so that two levels make sense.
  bool has_levels() const { return num_hosts() > 1 && num_hosts() < world_size(); }
  bool hosts_are_equal() const { return hosts_are_equal_; }
  /// Whether each host's ranks are consecutive.
  bool hosts_are_consecutive() const { return hosts_are_consecutive_; }
  /// Whether reducing within the hosts first and then between them, in host order, keeps the engine's order
  /// over the ranks (reduce/order.h): the ranks on each host are consecutive, the number of ranks on the
  /// first host is a power of two, and the other hosts have the same number, except that the last one may
  /// have fewer.
  bool keeps_order() const { return keeps_order_; }

 private:
  std::vector<std::vector<int>> hosts_;
  std::vector<int> host_of_;
  std::vector<int> local_index_;
  bool hosts_are_equal_ = true;
  bool hosts_are_consecutive_ = true;
  bool keeps_order_ = true;
};

}  // namespace warren
