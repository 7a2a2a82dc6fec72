// Decides, from the rate at which a link delivers bytes, whether packing its messages (word_packing.h) saves
// time. Does no I/O; tcp_link.cc gets the numbers from the kernel.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "rabit_engine/base/settings.h"

namespace warren::tcp {

/// The sending progress of one end of a connection since the connection was made.
struct SendProgress {
  std::uint64_t bytes = 0;  ///< bytes acknowledged by the peer's kernel
  /// The time during which sent bytes were unacknowledged, except while the peer's receive buffer was full.
  /// The kernel counts it in ticks of up to 10 ms.
  std::chrono::microseconds busy{0};
  std::chrono::microseconds round_trip{0};  ///< the kernel's shortest recent round trip
};

/// Not thread-safe.
class PackingPolicy {
 public:
  /// max_share() for slow links: saving less than a tenth of the bytes is not worth the work at both ends.
  static constexpr double kMaxShare = 0.9;
  /// The assumed rate, in bytes per second, of packing at one end followed by unpacking at the other: about
  /// half the rate that bench/results/packing.md has for half-empty data, since other work shares the cores
  /// and caches.
  static constexpr double kPackingRate = 1.5e9;
  /// The busy time from which the rate of a link is computed: several ticks of the kernel, and longer than
  /// the initial burst that many networks let pass before they limit the rate. Until a link has been busy
  /// this long, or if the kernel does not report its progress, the link counts as slow.
  static constexpr std::chrono::milliseconds kRateTime{50};

  /// `stays_here`: whether both ends have the same address.
  PackingPolicy(Packing packing, bool stays_here)
      : packing_(packing == Packing::kAuto && stays_here ? Packing::kOff : packing) {}

  /// See Link::MaxPackedShare.
  double max_share() const {
    if (packing_ == Packing::kOff) return 0;
    return packing_ == Packing::kAlways ? 1 : max_share_;
  }
  bool needs_progress() const { return packing_ == Packing::kAuto; }

  /// Takes the progress after `messages` more messages. Recomputes max_share() each time the link has been
  /// busy for kRateTime.
  ///
  /// If a link delivers R bytes per second, packed or not, and packing reduces data to the share s of their
  /// length, each byte of data takes 1 / R plain, and s / R + 1 / kPackingRate packed. Packing pays if the
  /// latter is less. R is computed from the busy time without a round trip for each message, because a
  /// message stays unacknowledged for a round trip longer than its bytes need. Messages that follow each
  /// other closely share round trips, so at most four fifths of the busy time are subtracted.
  void Observe(const SendProgress& now, unsigned messages) {
    messages_ += messages;
    const std::chrono::duration<double> busy = now.busy - last_.busy;
    if (busy < kRateTime) return;
    const std::chrono::duration<double> round_trips = now.round_trip * messages_;
    const double seconds = std::max(busy - round_trips, busy / 5).count();
    const double rate = static_cast<double>(now.bytes - last_.bytes) / seconds;
    max_share_ = std::min(kMaxShare, 1 - rate / kPackingRate);
    last_ = now;
    messages_ = 0;
  }

 private:
  const Packing packing_;
  double max_share_ = kMaxShare;
  SendProgress last_;      ///< the progress when the rate was last computed
  unsigned messages_ = 0;  ///< number of messages since then
};

}  // namespace warren::tcp
