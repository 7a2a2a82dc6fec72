// The state shared by the communicators of a process: where the ranks of the job are, and whether a rank has
// been lost.
//
// The world is the communicator of all ranks; the others are split off from it or from one another. Each
// communicator has its own links and shared memory, so that threads may use several communicators
// concurrently. The death of any rank is detected on the world's links; a rank that waits in another
// communicator checks these links, too.
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
  // --- written while the world is created, then constant ---

  std::string secret;         ///< the secret that link keys are derived from
  HostLayout layout{{}};      ///< which ranks share memory
  std::vector<int> machines;  ///< by rank: the lowest rank with the same HostKey
  /// By rank: the lowest rank with the same HostKey and the same WARREN_HOST_GROUP, which may divide one
  /// machine into several hosts.
  std::vector<int> hosts;
  bool crowded = false;   ///< whether some machine has more than two ranks per core
  bool may_spin = false;  ///< whether each rank on this host has its own core

  /// The world's segment on this host; nullptr if none exists or this process has left the job.
  /// Thread-safe, as is SetSegment.
  std::shared_ptr<HostSegment> Segment() const;
  void SetSegment(std::shared_ptr<HostSegment> segment);

  /// Locks the world's links for the calling thread. Does nothing until BeginSharing has been called.
  std::unique_lock<std::mutex> TurnOfWorld() {
    return is_shared_.load(std::memory_order_relaxed) ? std::unique_lock(turn_)
                                                      : std::unique_lock<std::mutex>();
  }
  /// From now on other communicators may use the world's links.
  void BeginSharing() { is_shared_ = true; }
  /// Functions of the world for the other communicators, called by a thread that holds TurnOfWorld().
  /// `look_for_losses` throws LostPeer if a rank has been lost, according to the world's links; `print` shows
  /// a line to the user. Empty before the world is ready and after it has been left.
  struct World {
    std::function<void()> look_for_losses;
    std::function<bool(int rank)> has_ended;  ///< whether the process of that rank has ended
    std::function<void(int rank)> give_up;    ///< tells all ranks that `rank` is lost
    std::function<void(const std::string& text)> print;
  };
  void SetWorld(World world);

  /// Throws LostPeer if NoteLoss or ReportLoss has recorded a loss.
  void ThrowIfLost() const;
  bool is_shared() const { return is_shared_.load(std::memory_order_relaxed); }
  /// Records a loss, if it is the first one.
  void NoteLoss(const PeerError& loss);
  /// Throws LostPeer if a loss has been recorded or the world's links show one. Does not wait: does not check
  /// the links while another thread uses them. Thread-safe.
  void LookForLosses();
  /// Handles the loss that ended a call of another communicator: if the lost rank's process has ended,
  /// records the loss and reports it to the whole job, because this process may end as a consequence and
  /// would otherwise be taken for the first rank lost. Does nothing if a loss has already been recorded, the
  /// rank is unknown, or another thread is using the world's links.
  void ReportLoss(const PeerError& loss);
  /// Shows a line to the user.
  void Print(const std::string& text);

 private:
  std::atomic<bool> is_shared_ = false;
  std::mutex turn_;
  World world_;
  std::atomic<bool> has_lost_ = false;
  mutable std::mutex mutex_;  ///< guards segment_ and loss_
  std::shared_ptr<HostSegment> segment_;
  std::optional<LostPeer> loss_;
};

}  // namespace warren
