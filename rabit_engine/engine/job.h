// What the communicators of a process share: where the ranks of its job are, and whether one was lost.
//
// The world is the communicator of all ranks; the others are made from it, or from one another (subgroup.h).
// They have links and shared memory of their own, so that threads may use several at once, but a death is
// found on the world's: its links hold the job together. Whoever waits in another communicator looks there.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/layout.h"
#include "rabit_engine/host/host_segment.h"

namespace warren {

class Job {
 public:
  // --- written while the world is made, then constant ---

  std::string secret;         ///< of the links
  HostLayout layout{{}};      ///< who shares memory
  std::vector<int> machines;  ///< by rank: the lowest one on the same machine
  std::vector<int> hosts;     ///< the same where WARREN_HOST_GROUP makes several hosts of one
  bool crowded = false;       ///< some machine has more than two ranks a core
  bool may_spin = false;      ///< each rank of this host has a core

  /// The world's, on this host; none where it has none, or was left.
  std::shared_ptr<HostSegment> Segment() const;
  void SetSegment(std::shared_ptr<HostSegment> segment);

  /// While a thread holds it, the world's links are its own. Free of charge until there are other
  /// communicators.
  std::unique_lock<std::mutex> TurnOfWorld() {
    return is_shared_.load(std::memory_order_relaxed) ? std::unique_lock(turn_)
                                                      : std::unique_lock<std::mutex>();
  }
  /// From now on other communicators may look into the world.
  void BeginSharing() { is_shared_ = true; }
  /// What the world does for the others, in a turn of its own: throws LostPeer where it knows of a loss;
  /// shows a line to the user. Nothing, before and after it can.
  struct World {
    std::function<void()> look_for_losses;
    std::function<bool(int rank)> has_ended;  ///< whether that process is there no more
    std::function<void(int rank)> give_up;    ///< tells all that it is lost
    std::function<void(const std::string& text)> print;
  };
  void SetWorld(World world);

  /// Throws LostPeer when a call of any communicator has found a rank lost.
  void ThrowIfLost() const;
  bool is_shared() const { return is_shared_.load(std::memory_order_relaxed); }
  /// The world's calls ended with this.
  void NoteLoss(const PeerError& loss);
  /// Throws LostPeer when the job has lost a rank, as far as the world's links tell by now. Does not wait. Of
  /// any thread.
  void LookForLosses();
  /// A call of another communicator ended with this: where a process has ended, all of the job are told,
  /// before this one ends for it and is taken for the one that was lost.
  void ReportLoss(const PeerError& loss);
  /// Shows a line to the user who watches the job.
  void Print(const std::string& text);

 private:
  std::atomic<bool> is_shared_ = false;
  std::mutex turn_;
  World world_;
  std::atomic<bool> has_lost_ = false;
  mutable std::mutex mutex_;  ///< of those below
  std::shared_ptr<HostSegment> segment_;
  std::optional<LostPeer> loss_;
};

}  // namespace warren
