// Waits until a descriptor that is shared with other programs accepts more data. Asio would set O_NONBLOCK on
// a descriptor that it is given. That flag belongs to the open file, which the user's shell and others also
// use, so the descriptor is not passed to Asio.
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

  /// False for descriptors that never block, such as regular files.
  bool may_wait() const { return may_wait_; }
  /// Only one wait may be pending at a time.
  void Wait(std::function<void(const boost::system::error_code&)> then);

 private:
  bool may_wait_ = false;
  boost::asio::posix::stream_descriptor ready_;  ///< with epoll: readable when the descriptor is writable
  boost::asio::steady_timer timer_;              ///< without epoll: until the next attempt to write
};

}  // namespace warren::submit
