// One TCP connection, encrypted or not. Without encryption, sending and receiving cost only their system
// calls.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "rabit_engine/transport/tcp/socket.h"
#include "tls/session.h"

namespace warren::tcp {

/// Not thread-safe.
class Stream {
 public:
  Stream() = default;
  explicit Stream(Socket socket) : socket_(std::move(socket)) {}
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept;
  ~Stream() = default;

  int fd() const { return socket_.fd(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  void Close();

  /// Encrypts the connection from now on, as the TLS client or server. Nothing may have been sent or received
  /// before.
  void Encrypt(const tls::Context& context, tls::Role role);
  bool is_encrypted() const { return session_ != nullptr; }
  /// Continues the TLS handshake as far as possible without waiting. Returns 0 when it is complete or the
  /// connection is not encrypted, EAGAIN if it must wait for `awaited()`, otherwise the errno of the failure.
  /// Send and Receive do the same, so a server need not call it.
  int Handshake();
  /// Calls Handshake until it completes or fails. Returns 0, ETIMEDOUT, or the errno of the failure.
  int HandshakeUntil(std::chrono::steady_clock::time_point deadline);
  /// The poll(2) event that the handshake waits for.
  short awaited() const;

  /// Like sendmsg(2) for both pieces, without waiting and without SIGPIPE: returns the number of bytes taken,
  /// or -1 with errno set. The caller must send the rest next, in pieces of any size.
  ssize_t Send(const void* head, std::size_t head_bytes, const void* data, std::size_t bytes);
  ssize_t Send(const void* data, std::size_t bytes) { return Send(nullptr, 0, data, bytes); }
  /// Sends all of the bytes. Returns 0, EAGAIN after the deadline, or the errno of the failure.
  int SendUntil(std::string_view bytes, std::chrono::steady_clock::time_point deadline);
  /// Like recv(2) without waiting. Fewer bytes than asked for mean that no more have arrived.
  ssize_t Receive(void* data, std::size_t bytes);
  /// Whether Receive may return bytes that poll(2) and FIONREAD do not report.
  bool has_unread() const { return session_ && session_->has_unread(); }

  /// Describes an errno that these calls have set or returned.
  std::string TextOf(int error) const;

 private:
  Socket socket_;
  std::unique_ptr<tls::Session> session_;  // destroyed before the socket
};

}  // namespace warren::tcp
