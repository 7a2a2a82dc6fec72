// Detects when standard input closes, so that a program can end together with the process that started it: a
// pipe reports end of file when the process at its other end has exited.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <stdexcept>
#include <utility>

namespace warren::tracker {

/// Calls `closed` from the io_context when standard input closes; discards all input until then.
class InputWatch {
 public:
  /// Throws std::runtime_error unless standard input is a pipe, a socket or a terminal.
  InputWatch(boost::asio::io_context& io, std::function<void()> closed)
      : input_(io), closed_(std::move(closed)) {
    struct stat status {};
    if (::fstat(STDIN_FILENO, &status) != 0 ||
        !(S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || ::isatty(STDIN_FILENO) == 1)) {
      throw std::runtime_error(
          "--until-stdin-closes: standard input is a file or a device, expected a pipe, a socket or a terminal");
    }
    input_.assign(::dup(STDIN_FILENO));
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
