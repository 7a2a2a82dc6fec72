// One TCP connection, encrypted or not. What is sent and received costs the system calls it takes and nothing
// more where it is not.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "rabit_engine/transport/tcp/socket.h"
#include "tls/session.h"

namespace warren::tcp {

/// Not thread safe.
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

  /// From now on TLS, as the client or the server of it. Nothing may have been sent or received.
  void Encrypt(const tls::Context& context, tls::Role role);
  bool is_encrypted() const { return session_ != nullptr; }
  /// Goes on with the handshake of TLS, as far as it can without waiting: 0 when it is over, at once where
  /// nothing is encrypted; EAGAIN when it has to wait for `awaited()`; else why it failed. A server need not
  /// call it: Send and Receive do.
  int Handshake();
  /// Calls it until it is over: 0, ETIMEDOUT, or why it failed.
  int HandshakeUntil(std::chrono::steady_clock::time_point deadline);
  /// What poll(2) has to wait for in the handshake.
  short awaited() const;

  /// As sendmsg(2) of both pieces without waiting and without a signal: how many bytes were taken, else -1
  /// and errno. What was not taken has to be sent next, in pieces of any size.
  ssize_t Send(const void* head, std::size_t head_bytes, const void* data, std::size_t bytes);
  ssize_t Send(const void* data, std::size_t bytes) { return Send(nullptr, 0, data, bytes); }
  /// As recv(2) without waiting. Fewer bytes than asked for: no more are there now.
  ssize_t Receive(void* data, std::size_t bytes);
  /// Something may be received, without that poll(2) or FIONREAD shows it.
  bool has_unread() const { return session_ && session_->has_unread(); }

  /// An error of these calls in words.
  std::string TextOf(int error) const;

 private:
  Socket socket_;
  std::unique_ptr<tls::Session> session_;  // goes first
};

}  // namespace warren::tcp
