#include "submit/output/when_writable.h"

#include <sys/epoll.h>

#include <utility>

#include "posix/descriptor.h"

namespace warren::submit {

// Asio watches a private epoll descriptor, which watches the shared descriptor.
WhenWritable::WhenWritable(boost::asio::io_context& io, int fd) : ready_(io), timer_(io) {
  posix::Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLOUT;
  // epoll_ctl fails for regular files, which are always writable.
  may_wait_ = epoll && epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  if (may_wait_) ready_.assign(epoll.release());
}

void WhenWritable::Wait(std::function<void(const boost::system::error_code&)> then) {
  ready_.async_wait(boost::asio::posix::descriptor_base::wait_read, std::move(then));
}

}  // namespace warren::submit
