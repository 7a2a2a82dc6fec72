#include "tracker/link_broker.h"

#include <algorithm>

namespace warren::tracker {

LinkBroker::LinkBroker(const Topology& topology) : topology_(&topology), nodes_(topology.size()) {}

void LinkBroker::SetState(int rank, State state) {
  Node& node = nodes_[rank];
  num_listening_ += (state == State::kListening) - (node.state == State::kListening);
  node.state = state;
}

void LinkBroker::ClearAccept(Node& node) {
  open_links_ -= static_cast<std::int64_t>(node.accept.size());
  node.accept.clear();
}

void LinkBroker::Join(int rank) {
  Node& node = nodes_[rank];
  ForgetWakeups(rank);
  check_.erase(rank);
  ClearAccept(node);
  node.connect.clear();
  node.failed.clear();
  node.retry_delay = {};
  ++node.generation;
  SetState(rank, State::kJoined);
}

void LinkBroker::Leave(int rank) {
  Join(rank);
  SetState(rank, State::kAbsent);
}

std::optional<int> LinkBroker::ReportGood(int rank, const std::vector<int>& good, bool retry, TimePoint now) {
  const std::vector<int>& neighbors = topology_->neighbors(rank);
  for (const int peer : good) {
    if (!std::binary_search(neighbors.begin(), neighbors.end(), peer)) return peer;
  }
  Node& node = nodes_[rank];
  if (retry) {
    // Connections of the last plan that are now good count as made. Each of the others has failed at the port
    // that its peer had when the plan was sent.
    for (std::size_t i = 0; i < node.connect.size(); ++i) {
      if (std::find(good.begin(), good.end(), node.connect[i]) == good.end()) {
        node.failed.emplace_back(node.connect[i], node.planned[i]);
      } else {
        TakePlace(rank, i);
      }
    }
    node.retry_delay =
        node.retry_delay.count() == 0 ? kFirstRetryDelay : std::min(2 * node.retry_delay, kMaxRetryDelay);
    node.retry_at = now + node.retry_delay;
    CheckAgainAt(rank, node.retry_at);
  }
  node.borrow_at = now + kBorrowDelay;
  CheckAgainAt(rank, node.borrow_at);
  node.connect.clear();
  ClearAccept(node);
  for (const int peer : neighbors) {
    if (std::find(good.begin(), good.end(), peer) != good.end()) continue;
    if (topology_->connects(rank, peer)) {
      node.connect.push_back(peer);
    } else {
      node.accept.insert(peer);
      ++open_links_;
    }
  }
  SetState(rank, State::kWaiting);
  check_.insert(rank);
  return std::nullopt;
}

// Removes the rank that has made a connection of its plan from the ranks that the peer still awaits: `rank`
// itself or, if the peer did not await `rank`, one of the others. Does nothing if the peer has begun a new
// exchange since the plan was sent.
void LinkBroker::TakePlace(int rank, std::size_t connection) {
  const Node& node = nodes_[rank];
  Node& peer = nodes_[node.connect[connection]];
  std::set<int>& accept = peer.accept;
  if (peer.generation != node.planned[connection] || accept.empty()) return;
  const auto own = accept.find(rank);
  accept.erase(own == accept.end() ? accept.begin() : own);
  --open_links_;
}

void LinkBroker::ForgetWakeups(int rank) {
  wakeups_.erase({nodes_[rank].retry_at, rank});
  wakeups_.erase({nodes_[rank].borrow_at, rank});
}

void LinkBroker::ReportLinked(int rank) {
  for (std::size_t i = 0; i < nodes_[rank].connect.size(); ++i) TakePlace(rank, i);
  nodes_[rank].connect.clear();
}

std::vector<int> LinkBroker::Planned(int rank) const {
  const Node& node = nodes_[rank];
  std::vector<int> peers;
  for (std::size_t i = 0; i < node.connect.size(); ++i) {
    if (nodes_[node.connect[i]].generation == node.planned[i]) peers.push_back(node.connect[i]);
  }
  return peers;
}

void LinkBroker::Restore(int rank, const std::vector<int>& awaited) {
  Node& node = nodes_[rank];
  ClearAccept(node);
  node.accept.insert(awaited.begin(), awaited.end());
  open_links_ += static_cast<std::int64_t>(node.accept.size());
  ReportListening(rank);
}

void LinkBroker::RestoreLinks(int rank, const std::vector<int>& peers) {
  Node& node = nodes_[rank];
  node.connect = peers;
  node.planned.clear();
  for (const int peer : peers) node.planned.push_back(nodes_[peer].generation);
  ReportLinked(rank);
}

void LinkBroker::ReportListening(int rank) {
  SetState(rank, State::kListening);
  for (const int peer : topology_->neighbors(rank)) {
    if (nodes_[peer].state == State::kWaiting) check_.insert(peer);
  }
}

bool LinkBroker::FailedBefore(const Node& node, int peer) const {
  return std::find(node.failed.begin(), node.failed.end(), std::pair(peer, nodes_[peer].generation)) !=
         node.failed.end();
}

bool LinkBroker::Ready(int rank, TimePoint now) const {
  const Node& node = nodes_[rank];
  const auto reachable = [&](int peer) {
    const Node& other = nodes_[peer];
    const bool has_place = other.accept.contains(rank) || (now >= node.borrow_at && !other.accept.empty());
    return other.state == State::kListening && has_place &&
           (!FailedBefore(node, peer) || now >= node.retry_at);
  };
  return node.state == State::kWaiting && std::all_of(node.connect.begin(), node.connect.end(), reachable);
}

std::vector<LinkBroker::Plan> LinkBroker::TakeReady(TimePoint now) {
  while (!wakeups_.empty() && wakeups_.begin()->first <= now) {
    check_.insert(wakeups_.begin()->second);
    wakeups_.erase(wakeups_.begin());
  }
  std::vector<Plan> ready;
  for (const int rank : check_) {
    if (!Ready(rank, now)) continue;
    Node& node = nodes_[rank];
    ForgetWakeups(rank);
    node.planned.clear();
    for (const int peer : node.connect) node.planned.push_back(nodes_[peer].generation);
    SetState(rank, State::kPlanned);
    ready.push_back({rank, node.connect, static_cast<int>(node.accept.size())});
  }
  check_.clear();
  return ready;
}

std::set<int> LinkBroker::Absentees() const {
  std::set<int> absentees;
  const auto consider = [&](int peer) {
    const Node& node = nodes_[peer];
    const bool is_up = node.state == State::kListening && node.accept.empty();
    if (is_up || node.state == State::kAbsent) absentees.insert(peer);
  };
  for (const Node& node : nodes_) {
    if (node.state == State::kListening) std::for_each(node.accept.begin(), node.accept.end(), consider);
    if (node.state == State::kWaiting) std::for_each(node.connect.begin(), node.connect.end(), consider);
  }
  return absentees;
}

std::optional<LinkBroker::TimePoint> LinkBroker::NextRetry() const {
  if (wakeups_.empty()) return std::nullopt;
  return wakeups_.begin()->first;
}

}  // namespace warren::tracker
