#include "rabit_engine/base/event.h"

#include <sys/eventfd.h>

namespace warren {

Event Event::Make() {
  Event event;
  event.heard_ = CloseOnForkDescriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  return event;
}

void Event::Ring() const noexcept {
  eventfd_write(heard_.fd(), 1);
}

void Event::Drain() const noexcept {
  eventfd_t rings = 0;
  eventfd_read(heard_.fd(), &rings);
}

}  // namespace warren
