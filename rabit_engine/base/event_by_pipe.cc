// Event for systems without eventfd. If the pipe is full, further calls of Ring have no effect: a wake-up is
// pending anyway.
#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "posix/sockets.h"
#include "rabit_engine/base/event.h"

namespace warren {

Event Event::Make() {
  Event event;
  std::array<int, 2> ends{-1, -1};
  if (!posix::NewPipe(ends)) return event;
  for (const int end : ends) fcntl(end, F_SETFL, O_NONBLOCK);
  event.heard_ = CloseOnForkDescriptor(ends[0]);
  event.rung_ = CloseOnForkDescriptor(ends[1]);
  return event;
}

void Event::Ring() const noexcept {
  [[maybe_unused]] const ssize_t written = write(rung_.fd(), "", 1);
}

void Event::Drain() const noexcept {
  std::array<char, 64> rings;
  while (read(heard_.fd(), rings.data(), rings.size()) > 0) {
  }
}

}  // namespace warren
