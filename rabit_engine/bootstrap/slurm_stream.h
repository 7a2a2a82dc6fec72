// A TCP connection on which every call has a deadline: what the bootstraps without a tracker talk through.
// Errors say what was seen; the caller adds who and why.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "rabit_engine/transport/tcp/socket.h"

namespace warren {

/// Not thread safe.
class DeadlineStream {
 public:
  using Clock = std::chrono::steady_clock;

  DeadlineStream() = default;
  /// Takes a connected socket.
  explicit DeadlineStream(tcp::Socket socket);
  /// Connects to the first address of the host that answers. Throws EngineError or TimedOut.
  static DeadlineStream Connect(const std::string& host, int port, Clock::time_point deadline);

  bool is_open() const { return static_cast<bool>(socket_); }
  int fd() const { return socket_.fd(); }
  void Close() { socket_.Close(); }

  /// Sends all of the bytes. Throws EngineError when the connection is broken, TimedOut after the deadline.
  void Send(std::string_view bytes, Clock::time_point deadline);
  /// Receives exactly so many bytes. Throws as Send does.
  std::string Receive(std::size_t bytes, Clock::time_point deadline);
  /// What has arrived, at most `limit` bytes; empty when nothing has. Throws EngineError at the end.
  std::string ReceiveSome(std::size_t limit);

 private:
  void WaitFor(short events, Clock::time_point deadline) const;

  tcp::Socket socket_;
};

}  // namespace warren
