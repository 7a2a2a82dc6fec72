// Tells when standard input closes, which ends a program that another process has started on its behalf: with
// a pipe, that is when the process at its other end exits.
#pragma once

#include <unistd.h>

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <stdexcept>
#include <utility>

namespace warren::tracker {

/// Calls `closed` when standard input closes; discards what arrives on it.
class InputWatch {
 public:
  /// Throws std::runtime_error if standard input is a file, which does not close.
  InputWatch(boost::asio::io_context& io, std::function<void()> closed)
      : input_(io), closed_(std::move(closed)) {
    boost::system::error_code error;
    const int input = ::dup(STDIN_FILENO);
    input_.assign(input, error);
    if (error) {
      ::close(input);
      throw std::runtime_error(
          "--until-stdin-closes: standard input is a file or a device, expected a pipe, a socket or a terminal");
    }
    Wait();
  }

 private:
  void Wait() {
    input_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [this](boost::system::error_code error) {
                        if (error == boost::asio::error::operation_aborted) return;
                        std::array<char, 256> ignored{};
                        if (!error && ::read(input_.native_handle(), ignored.data(), ignored.size()) > 0)
                          return Wait();
                        closed_();
                      });
  }

  boost::asio::posix::stream_descriptor input_;
  std::function<void()> closed_;
};

}  // namespace warren::tracker
