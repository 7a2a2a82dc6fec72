#include "rabit_engine/engine/deadlock_search.h"

#include <algorithm>
#include <limits>

namespace warren {
namespace {

// The number of probes that are followed by a pause of one second; after that, the pause doubles each time.
constexpr int kQuickProbes = 4;

std::uint64_t Mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// A hash of the rank, which orders the ranks independently of which of them communicate.
std::uint64_t OrderOf(int rank) {
  return Mix(static_cast<std::uint64_t>(rank) + 1);
}

}  // namespace

std::optional<WaitEdge> EdgeOf(int rank, const Interest& interest, const LinkState& link) {
  WaitEdge edge{interest.peer, WaitKind::kMemory};
  if (link.shares_memory) return edge;
  edge.received = link.received;
  if (!link.is_linked) {
    // The lower of two ranks makes the link; the higher one always accepts, so a wait for it ends by itself.
    if (interest.peer > rank) return std::nullopt;
    edge.kind = WaitKind::kLink;
  } else if (interest.to_receive) {
    edge.kind = WaitKind::kReceive;
  } else {
    if (!link.is_full) return std::nullopt;
    edge.kind = WaitKind::kSend;
  }
  return edge;
}

bool Holds(const WaitProbe& probe, const Interest* own, const LinkState& link) {
  switch (probe.edge.kind) {
    case WaitKind::kMemory:
      return true;
    case WaitKind::kReceive:
      return probe.edge.received == link.sent && (own == nullptr || (!own->to_send && link.is_linked));
    case WaitKind::kSend:
      return own == nullptr || !own->to_receive;
    case WaitKind::kLink:
      return own == nullptr && !link.is_linked;
  }
  return false;
}

std::optional<DeadlockSearch::ProbeMessage> DeadlockSearch::Tick(const WaitRecord& own, bool for_messages) {
  if (own.since != since_) {
    since_ = own.since;
    phase_ = SearchPhase::kSearching;
    next_ = static_cast<double>(own.since) * 1e-9 + kPatience;
    pause_ = kSecondLook;
    num_probes_ = 0;
    was_asked_ = false;
  }
  for_messages_ = for_messages;
  const double now = view_.now();
  if (was_asked_) next_ = std::min(next_, std::max(now, last_probe_ + kAtLeast));
  if (now < next_) return std::nullopt;
  const bool is_new = num_probes_ == 0 || was_asked_;
  was_asked_ = false;
  if (phase_ == SearchPhase::kSeen) {
    phase_ = SearchPhase::kLooksAgain;
  } else {
    phase_ = SearchPhase::kSearching;
    ++attempt_;
  }
  if (++num_probes_ > kQuickProbes) pause_ = std::min(2 * pause_, kLongestPause);
  // Every cycle contains a rank in a send or receive call, so only such ranks need to keep sending probes.
  const bool goes_on = for_messages || phase_ == SearchPhase::kLooksAgain;
  next_ = goes_on ? now + pause_ : std::numeric_limits<double>::infinity();
  last_probe_ = now;
  WaitProbe probe;
  probe.origin = rank_;
  probe.attempt = attempt_;
  probe.is_new = is_new ? 1 : 0;
  return Follow(probe);
}

std::optional<DeadlockSearch::ProbeMessage> DeadlockSearch::Take(const WaitProbe& probe) {
  if (probe.origin == rank_) {
    Return(probe);
    return std::nullopt;
  }
  if (OrderOf(probe.origin) < OrderOf(rank_)) return Follow(probe);
  // A cycle that has been seen once is checked again before a new search starts.
  if ((probe.is_new != 0 || !for_messages_) && phase_ != SearchPhase::kSeen) was_asked_ = true;
  return std::nullopt;
}

/// Follows the edges from this rank through the records of its host. Returns the probe to send if the edges
/// lead to a rank on another host, or to the probe's origin if that is another rank.
std::optional<DeadlockSearch::ProbeMessage> DeadlockSearch::Follow(WaitProbe probe) {
  int rank = rank_;
  while (probe.hops < static_cast<std::uint32_t>(size_)) {
    const std::optional<WaitRecord> record = view_.wait_of(rank);
    if (!record || record->num_edges == 0) return std::nullopt;
    // Each attempt may follow a different edge; the second pass over a cycle follows the same edges as the
    // first.
    const std::uint64_t choice = Mix(probe.attempt ^ static_cast<std::uint64_t>(rank) << 32);
    const WaitEdge& edge = record->edges[choice % record->num_edges];
    if (probe.hops < WaitProbe::kPathLength) probe.path[probe.hops] = rank;
    ++probe.hops;
    probe.digest = Mix(probe.digest ^ static_cast<std::uint64_t>(record->since)) ^
                   Mix(static_cast<std::uint64_t>(rank) << 32 ^ static_cast<std::uint64_t>(edge.on));
    probe.waiter = rank;
    probe.edge = edge;
    const bool is_here = view_.shares_memory(edge.on) && edge.kind != WaitKind::kLink;
    if (!is_here) return ProbeMessage{edge.on, probe};
    // Since the awaited rank's record can be read here, no byte counts need to be compared, as for a wait in
    // shared memory.
    probe.edge.kind = WaitKind::kMemory;
    if (edge.on == probe.origin) {
      if (edge.on != rank_) return ProbeMessage{edge.on, probe};
      Return(probe);
      return std::nullopt;
    }
    rank = edge.on;
  }
  return std::nullopt;  // the probe has entered a cycle that does not contain its origin
}

void DeadlockSearch::Return(const WaitProbe& probe) {
  if (probe.attempt != attempt_) return;
  if (phase_ == SearchPhase::kSearching) {
    phase_ = SearchPhase::kSeen;
    seen_ = probe.digest;
    const double now = view_.now();  // all records of the first pass have been read
    next_ = now + kSecondLook;
    pause_ = std::max(kSecondLook, 2 * (now - last_probe_));
    num_probes_ = 1;
  } else if (phase_ == SearchPhase::kLooksAgain && probe.digest == seen_) {
    num_found_ = probe.hops;
    found_.assign(probe.path.begin(),
                  probe.path.begin() + std::min<std::size_t>(probe.hops, WaitProbe::kPathLength));
  }
}

}  // namespace warren
