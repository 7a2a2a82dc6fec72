#include "rabit_engine/engine/job.h"

#include <utility>

namespace warren {

void Job::SetWorld(World world) {
  const std::lock_guard lock(turn_);
  world_ = std::move(world);
}

std::shared_ptr<HostSegment> Job::Segment() const {
  const std::lock_guard lock(mutex_);
  return segment_;
}

void Job::SetSegment(std::shared_ptr<HostSegment> segment) {
  const std::lock_guard lock(mutex_);
  std::swap(segment_, segment);
}

void Job::NoteLoss(const PeerError& loss) {
  const std::lock_guard lock(mutex_);
  if (loss_) return;
  loss_.emplace(loss.rank(), loss.what(), loss.shortage());
  has_lost_ = true;
}

void Job::ThrowIfLost() const {
  if (!has_lost_) return;
  const std::lock_guard lock(mutex_);
  throw LostPeer(*loss_);
}

void Job::LookForLosses() {
  ThrowIfLost();
  // A thread that holds the turn is in a call of the world and looks for losses itself.
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (lock && world_.look_for_losses) world_.look_for_losses();
}

void Job::ReportLoss(const PeerError& loss) {
  if (has_lost_ || loss.rank() < 0) return;
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (!lock || !world_.has_ended || !world_.has_ended(loss.rank())) return;
  NoteLoss(loss);
  world_.give_up(loss.rank());
}

void Job::Print(const std::string& text) {
  const std::lock_guard lock(turn_);
  if (world_.print) world_.print(text);
}

}  // namespace warren
