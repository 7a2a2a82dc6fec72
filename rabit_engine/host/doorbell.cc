#include "rabit_engine/host/doorbell.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>

namespace warren {
namespace {

bool Drain(int event) {
  eventfd_t rings = 0;
  return eventfd_read(event, &rings) == 0;
}

}  // namespace

void Doorbell::Ring() const noexcept {
  eventfd_write(event_.fd(), 1);
}

Doorbell::Seat::Seat(std::shared_ptr<Doorbell> doorbell) : doorbell_(std::move(doorbell)) {
  doorbell_->seats_.fetch_add(1);
}

Doorbell::Seat::~Seat() {
  doorbell_->seats_.fetch_sub(1);
}

/// Returns whether this is the only seat; if not, adds it to the list of sleepers. A single seat remains the
/// only one during the sleep: further seats are created only by the thread that uses the communicator of this
/// seat, when it splits it, and this thread is about to sleep.
bool Doorbell::Seat::Begin() {
  if (doorbell_->seats_.load() == 1) return true;
  if (!nudge_) nudge_ = CloseOnForkDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::lock_guard lock(doorbell_->mutex_);
  doorbell_->asleep_.push_back(nudge_.fd());
  return false;
}

void Doorbell::Seat::Poll(int other_descriptor, std::chrono::milliseconds limit) {
  pollfd descriptors[3] = {
      {doorbell_->fd(), POLLIN, 0}, {other_descriptor, POLLIN, 0}, {nudge_.fd(), POLLIN, 0}};
  poll(descriptors, 3, static_cast<int>(std::max<long>(limit.count(), 0)));
}

void Doorbell::Seat::End(bool alone) {
  const bool rang = Drain(doorbell_->fd());
  if (alone) return;
  const std::lock_guard lock(doorbell_->mutex_);
  std::erase(doorbell_->asleep_, nudge_.fd());
  Drain(nudge_.fd());
  if (!rang) return;
  for (const int other : doorbell_->asleep_) eventfd_write(other, 1);
}

}  // namespace warren
