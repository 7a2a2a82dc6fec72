// For systems without epoll: waits for a short time instead, after which the caller tries to write again.
#include <sys/stat.h>

#include <chrono>
#include <utility>

#include "submit/output/when_writable.h"

namespace warren::submit {
namespace {

constexpr std::chrono::milliseconds kLookAgain{10};

}  // namespace

WhenWritable::WhenWritable(boost::asio::io_context& io, int fd) : ready_(io), timer_(io) {
  struct stat status {};
  may_wait_ = fstat(fd, &status) == 0 && !S_ISREG(status.st_mode);
}

void WhenWritable::Wait(std::function<void(const boost::system::error_code&)> then) {
  timer_.expires_after(kLookAgain);
  timer_.async_wait(std::move(then));
}

}  // namespace warren::submit
