// A TCP connection on which every wait has a deadline, used by slurm_meeting.cc. Messages of errors name
// neither the peer nor the purpose of the call; the caller adds both. The exceptions are LocalShortage and
// the error for a name that cannot be resolved.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "rabit_engine/transport/tcp/stream.h"

namespace warren {

/// Not thread-safe.
class DeadlineStream {
 public:
  using Clock = std::chrono::steady_clock;

  DeadlineStream() = default;
  /// Takes ownership of a connection and makes it non-blocking.
  explicit DeadlineStream(tcp::Stream stream);
  /// Connects to the first of the host's addresses that answers, with TLS if `tls` is given. Throws
  /// EngineError or TimedOut if none does.
  static DeadlineStream Connect(const std::string& host, int port, Clock::time_point deadline,
                                const std::optional<tls::Context>& tls = std::nullopt);

  bool is_open() const { return static_cast<bool>(stream_); }
  int fd() const { return stream_.fd(); }
  void Close() { stream_.Close(); }

  /// Sends all of the bytes. Throws EngineError if the connection is broken, TimedOut after the deadline.
  void Send(std::string_view bytes, Clock::time_point deadline);
  /// Receives exactly this many bytes. Throws like Send.
  std::string Receive(std::size_t bytes, Clock::time_point deadline);
  /// Returns the bytes that have arrived, at most `limit`, without waiting; may be empty. Throws EngineError
  /// if the connection has ended.
  std::string ReceiveSome(std::size_t limit);

 private:
  tcp::Stream stream_;
};

}  // namespace warren
