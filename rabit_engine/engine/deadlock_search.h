// Detects ranks that wait for each other's messages in a cycle, so that none of them can continue.
//
// A waiting rank publishes its wait to the ranks on its host in shared memory and keeps renewing it
// (WaitRecord). Half a second after it has begun to wait, it sends a probe along the "waits for" edges; in a
// send or receive call it sends further probes at growing intervals. A probe follows the records of a host,
// and travels between hosts over a short-lived connection to the rank at the end of the edge, which passes it
// on if it is itself waiting. A probe that returns to its origin has gone around a cycle (K. M. Chandy, J.
// Misra and L. M. Haas, "Distributed deadlock detection", ACM TOCS 1(2), 1983). A rank waits for all of its
// edges, not for any of them: an exchange is complete only when all of its messages are.
//
// One such probe is not enough, since it sees the waits of the cycle one after the other. If a second probe
// finds the same waits in the same cycle, they all existed at the same time, between the two probes. For
// ranks that talk over TCP, byte counts show that nothing is in flight between them: the rank that receives a
// probe compares the number of bytes it has sent with the number that the other has received. In shared
// memory nothing is in flight: a rank that checks after the other has begun to wait sees everything that the
// other wrote.
//
// No sockets are used here, and the caller provides the clock. A rank that receives a probe passes it on only
// if the hash of the probe's origin is lower than its own, so that a chain of n ranks that wait for a late
// rank sends about n log n messages instead of n * n. The probe of the rank with the lowest hash in a cycle
// is always passed on. A rank that drops a probe whose origin has just begun to wait sends a probe itself,
// since the new wait may have closed a cycle. A rank that is in a collective, and so sends no further probes
// by itself, does so after any probe that it drops. Such probes are at least kAtLeast apart.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "rabit_engine/transport/transport.h"
#include "rabit_engine/transport/wait_record.h"

namespace warren {

/// The state of a rank's link to another rank.
struct LinkState {
  bool shares_memory = false;
  bool is_linked = false;      ///< whether there is a TCP link, which the members below describe
  std::uint64_t sent = 0;      ///< bytes sent over that link
  std::uint64_t received = 0;  ///< bytes received over that link
  bool is_full = false;        ///< whether nothing more can be sent until the other rank reads
};
/// The edge that describes rank `rank` waiting for `interest`; nullopt if this wait may end by itself.
std::optional<WaitEdge> EdgeOf(int rank, const Interest& interest, const LinkState& link);
/// Whether the wait described by the probe still holds: this rank, which received the probe and is itself
/// waiting, does nothing meanwhile that would end probe.waiter's wait for it. `own`: this rank's wait for
/// probe.waiter; nullptr if none exists.
bool Holds(const WaitProbe& probe, const Interest* own, const LinkState& link);

class DeadlockSearch {
 public:
  static constexpr double kPatience = 0.5;  ///< seconds of waiting before the first probe
  static constexpr double kSecondLook = 1;  ///< seconds until a cycle is checked again
  static constexpr double kAtLeast = 0.8;   ///< minimum seconds from a probe to one caused by a dropped probe
  static constexpr double kLongestPause = 30;
  /// Seconds after which a record is ignored, including the rank's own, because the wait may have ended. Well
  /// below kSecondLook.
  static constexpr double kFresh = 0.5;

  struct View {
    /// Whether this rank shares memory with a rank and can read its record.
    std::function<bool(int rank)> shares_memory;
    /// Returns the record of this rank, or of one for which shares_memory is true; nullopt if none exists
    /// or it is older than kFresh. Must read the clock after the record.
    std::function<std::optional<WaitRecord>(int rank)> wait_of;
    /// Seconds, on the clock of the records.
    std::function<double()> now;
  };
  struct ProbeMessage {
    int to = -1;
    WaitProbe probe;
  };

  /// `rank`: this rank, in the numbering that records and probes use; `size`: the number of ranks in it.
  DeadlockSearch(int rank, int size, View view) : rank_(rank), size_(size), view_(std::move(view)) {}

  /// Call regularly while this rank waits. `own`: this rank's record; `for_messages`: whether this rank is in
  /// a send or receive call. Returns a probe to send, if one is due.
  std::optional<ProbeMessage> Tick(const WaitRecord& own, bool for_messages);
  /// Handles a probe that arrived during the current wait. The wait that the probe describes must still hold
  /// (see Holds). Returns the probe to pass on, if any.
  std::optional<ProbeMessage> Take(const WaitProbe& probe);
  /// The ranks of the cycle that was found, this rank first (at most WaitProbe::kPathLength of them); empty
  /// if none was found.
  const std::vector<int>& found() const { return found_; }
  /// The number of ranks in that cycle.
  std::uint32_t num_found() const { return num_found_; }

 private:
  enum class SearchPhase { kSearching, kSeen, kLooksAgain };

  std::optional<ProbeMessage> Follow(WaitProbe probe);
  void Return(const WaitProbe& probe);

  int rank_;
  int size_;
  View view_;
  std::int64_t since_ = 0;  ///< start of the wait that this search is for
  std::uint32_t attempt_ = 0;
  SearchPhase phase_ = SearchPhase::kSearching;
  std::uint64_t seen_ = 0;  ///< the digest of a cycle that was seen once
  double next_ = 0;
  double pause_ = 0;
  int num_probes_ = 0;
  double last_probe_ = 0;
  bool for_messages_ = false;
  bool was_asked_ = false;  ///< whether this rank must send a probe because it dropped one
  std::vector<int> found_;
  std::uint32_t num_found_ = 0;
};

}  // namespace warren
