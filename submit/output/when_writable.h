// Waits until a descriptor that is shared with other programs takes more. O_NONBLOCK belongs to the open
// file, which is shared with the user's shell and others, so it is not set; asio would set it, and is not
// given the descriptor.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <functional>

namespace warren::submit {

class WhenWritable {
 public:
  WhenWritable(boost::asio::io_context& io, int fd);

  /// False for what always is, as regular files are.
  bool may_wait() const { return may_wait_; }
  /// One wait at a time.
  void Wait(std::function<void(const boost::system::error_code&)> then);

 private:
  bool may_wait_ = false;
  boost::asio::posix::stream_descriptor ready_;  ///< by epoll: readable when the other can be written
  boost::asio::steady_timer timer_;              ///< without: when to look again
};

}  // namespace warren::submit
