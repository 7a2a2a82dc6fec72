// TLS 1.3 on a connected, non-blocking socket. Both ends prove that they know a common secret, an external
// pre-shared key (RFC 8446, section 4.2.11), and also agree on fresh keys (psk_dhe_ke), so that a secret that
// leaks later does not reveal earlier traffic. There are no certificates, tickets or early data, and only one
// cipher suite, TLS_AES_128_GCM_SHA256. Clients of web servers are an exception: they have no secret in
// common with the server, check its certificate instead, and may use TLS 1.2 (Context::ForWebClients).
//
// If the kernel supports TLS, it encrypts sent data, so data is written to the socket as without TLS.
// Received data is always decrypted here.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace warren::tls {

using Secret = std::array<std::uint8_t, 32>;

enum class Role { kClient, kServer };

/// The number of records, of at most 2^14 bytes each, that are sent under one key before it is replaced: far
/// below the 2^24.5 that RFC 8446, section 5.5, allows for AES-GCM. Keys are not replaced if the kernel
/// encrypts (docs/how-to/security.md).
inline constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 22;

/// The first byte of a handshake record, and therefore the first byte that a client sends. A server that also
/// accepts connections without TLS can recognize TLS by it.
inline constexpr char kFirstByte = 0x16;

/// The state shared by all connections for one purpose; copies share the same state. Thread-safe.
class Context {
 public:
  /// `purpose` names the secret and is sent in the clear. Throws std::runtime_error if OpenSSL 3 is not
  /// available or does not support the cipher suite.
  Context(std::string purpose, const Secret& secret, std::uint64_t records_per_key = kRecordsPerKey);
  /// Makes a context for clients of web servers. They use TLS 1.2 or 1.3, and accept servers whose
  /// certificates are signed by an authority in the file `authorities` (PEM) or, if that name is empty, by an
  /// authority that this machine trusts. Throws std::runtime_error if OpenSSL 3 is not available or the file
  /// cannot be read.
  static Context ForWebClients(const std::string& authorities);

 private:
  friend class Session;
  struct Impl;
  explicit Context(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// TLS on one connection. Not thread-safe. The socket must outlive the session, which does not close it. No
/// closing message is sent or expected: the end of the connection is the end of the stream.
class Session {
 public:
  Session(const Context& context, Role role, int fd);
  /// Makes a client of a web server. `server` is the name or address for which the server's certificate must
  /// be valid. `context` must come from ForWebClients. Throws std::runtime_error if `server` cannot be the
  /// name of a server.
  Session(const Context& context, const std::string& server, int fd);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  enum class Step { kDone, kWantsToRead, kWantsToWrite, kFailed };
  /// Continues the handshake as far as possible without waiting; Send and Receive do so, too. kFailed: errno
  /// holds the reason. A server sends nothing to a client that it rejects.
  Step Handshake();
  bool established() const;
  /// Whether the handshake can continue only when the socket is writable.
  bool wants_to_write() const;

  /// Like sendmsg(2) for both pieces, without waiting for space: returns the number of bytes taken, or -1
  /// with errno set (EAGAIN: no space, or the handshake is not complete; EPROTO: see error()). The next calls
  /// must send the rest, in pieces of any size, since part of it may already be encrypted.
  ssize_t Send(const void* head, std::size_t head_bytes, const void* data, std::size_t bytes);
  /// Like recv(2), without waiting: returns fewer bytes than requested only if no more have arrived, 0 at the
  /// end of the stream, or -1 with errno set, as Send does.
  ssize_t Receive(void* data, std::size_t bytes);
  /// Whether bytes have been read from the socket that Receive has not returned yet; poll(2) on the socket
  /// does not report them.
  bool has_unread() const;
  /// The number of bytes read from the socket so far, including those of the handshake.
  std::size_t bytes_read() const;
  /// The description of a failure with EPROTO; empty before one.
  const std::string& error() const;
  /// Whether the kernel encrypts sent data.
  bool kernel_sends() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warren::tls
