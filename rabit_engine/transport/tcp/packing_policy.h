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
};

/// Not thread-safe.
class PackingPolicy {
 public:
  /// The share of its length below which a packed piece saves time on a slow link. A smaller gain is not
  /// worth the work of both ends.
  static constexpr double kMaxShare = 0.9;
  /// The bytes per second that are packed at one end and unpacked at the other, one after the other: less
  /// than half of what bench/results/packing.md has, since other work shares the cores and caches.
  static constexpr double kPackingRate = 1.5e9;
  /// How long a link must have been busy for its rate to be known. Many networks let a burst pass at once and
  /// then limit the rate. Until the rate is known, the link counts as slow.
  static constexpr std::chrono::milliseconds kRateTime{20};

  /// `stays_here`: both ends are on this machine.
  PackingPolicy(Packing packing, bool stays_here)
      : packing_(packing == Packing::kAuto && stays_here ? Packing::kOff : packing) {}

  /// Link::MaxPackedShare.
  double max_share() const {
    if (packing_ == Packing::kOff) return 0;
    return packing_ == Packing::kAlways ? 1 : max_share_;
  }
  bool needs_progress() const { return packing_ == Packing::kAuto; }

  /// A link that delivers R bytes per second takes 1 / R for a byte, and s / R for a packed one whose share
  /// is s. Packing pays if 1 / R > s / R + 1 / kPackingRate.
  void Observe(const SendProgress& now) {
    const std::chrono::duration<double> busy = now.busy - last_.busy;
    if (busy < kRateTime) return;
    const double rate = static_cast<double>(now.bytes - last_.bytes) / busy.count();
    max_share_ = std::min(kMaxShare, 1 - rate / kPackingRate);
    last_ = now;
  }

 private:
  const Packing packing_;
  double max_share_ = kMaxShare;
  SendProgress last_;  ///< when the rate was last computed
};

}  // namespace warren::tcp
