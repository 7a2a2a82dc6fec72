// Which ranks live on which host, "host" meaning: can share memory. Pure values.
#pragma once

#include <vector>

namespace warren {

class HostLayout {
 public:
  /// `leaders[r]` is the lowest rank that shares memory with rank r, r itself when it shares with nobody.
  explicit HostLayout(const std::vector<int>& leaders);

  int world_size() const { return static_cast<int>(host_of_.size()); }
  int num_hosts() const { return static_cast<int>(hosts_.size()); }
  /// Hosts are numbered by their lowest ranks.
  int host_of(int rank) const { return host_of_[rank]; }
  /// Ascending.
  const std::vector<int>& ranks_of(int host) const { return hosts_[host]; }
  int leader_of(int host) const { return hosts_[host].front(); }
  /// The position of a rank among those of its host.
  int local_index(int rank) const { return local_index_[rank]; }

  bool is_one_host() const { return num_hosts() == 1 && world_size() > 1; }
  /// True when there are several hosts and some have several ranks: two levels to speak of.
  bool has_levels() const { return num_hosts() > 1 && num_hosts() < world_size(); }
  bool hosts_are_equal() const { return hosts_are_equal_; }
  /// True when the ranks of each host follow each other.
  bool hosts_are_consecutive() const { return hosts_are_consecutive_; }
  /// True when reducing inside the hosts first and then between them, in the order of the hosts, is the
  /// engine's order over the ranks (reduce/order.h): every host but the last has the same power of two of
  /// consecutive ranks, and the last not more.
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
