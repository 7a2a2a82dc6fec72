// Decides from the progress of a link whether packing its messages saves time (word_packing.h). Values in,
// values out; tcp_link.cc asks the kernel.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "rabit_engine/base/settings.h"

namespace warren::tcp {

/// The progress of the bytes that one end of a connection sends.
struct SendProgress {
  std::uint64_t bytes = 0;  ///< acknowledged by the peer's kernel
  /// How long there were bytes to acknowledge, without waiting for the peer to read. A sum of the kernel's
  /// ticks, of up to 10 ms each.
  std::chrono::microseconds busy{0};
  std::chrono::microseconds round_trip{0};  ///< the shortest so far
};

/// Not thread-safe.
class PackingPolicy {
 public:
  /// The share of its length below which a packed piece saves time on a slow link. A smaller gain is not
  /// worth the work of both ends.
  static constexpr double kMaxShare = 0.9;
  /// The bytes per second that are packed at one end and unpacked at the other, one after the other: about
  /// half of what bench/results/packing.md has for half-empty data, since other work shares the cores and
  /// caches.
  static constexpr double kPackingRate = 1.5e9;
  /// How long a link must have been busy for its rate to be known: many ticks of the kernel, and longer than
  /// the burst that many networks let pass at once before they limit the rate. Until then, and if the kernel
  /// does not tell, the link counts as slow.
  static constexpr std::chrono::milliseconds kRateTime{50};

  /// `stays_here`: both ends have the same address.
  PackingPolicy(Packing packing, bool stays_here)
      : packing_(packing == Packing::kAuto && stays_here ? Packing::kOff : packing) {}

  /// Link::MaxPackedShare.
  double max_share() const {
    if (packing_ == Packing::kOff) return 0;
    return packing_ == Packing::kAlways ? 1 : max_share_;
  }
  bool needs_progress() const { return packing_ == Packing::kAuto; }

  /// Takes the progress after `messages` more messages.
  ///
  /// A link that delivers R bytes per second takes 1 / R for a byte, and s / R for a packed one whose share
  /// is s. Packing pays if 1 / R > s / R + 1 / kPackingRate. R is that of the bytes on the wire, whether
  /// packed or not. A message is on its way for a round trip longer than its bytes need; with messages that
  /// follow each other closely this is not so, and at most four fifths of the time are taken for round trips.
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
  SendProgress last_;      ///< when the rate was last computed
  unsigned messages_ = 0;  ///< sent since then
};

}  // namespace warren::tcp
