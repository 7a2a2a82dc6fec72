// TLS 1.3 on a connected socket that does not block. Both ends show that they know one secret, an external
// pre-shared key (RFC 8446, section 4.2.11), and make fresh keys besides (psk_dhe_ke), so that who learns the
// secret later reads nothing of what was said before. There are no certificates, tickets or early data, and
// one cipher suite, TLS_AES_128_GCM_SHA256.
//
// Where the kernel has TLS, it encrypts: what is sent goes to the socket as without TLS. What comes is
// decrypted here.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace warren::tls {

using Secret = std::array<std::uint8_t, 32>;

enum class Role { kClient, kServer };

/// Messages of at most 2^14 bytes each that go out under one key before another is made of it: far below the
/// 2^24.5 that RFC 8446, section 5.5, allows AES-GCM.
inline constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 22;

/// Of what a client sends, of each record of the handshake: a server that listens for others besides can
/// tell.
inline constexpr char kFirstByte = 0x16;

/// What connections for one purpose have in common; copies share it. Thread safe.
class Context {
 public:
  /// `purpose` is the name of the secret and travels in the clear. Throws std::runtime_error where there is
  /// no OpenSSL 3.
  Context(std::string purpose, const Secret& secret, std::uint64_t records_per_key = kRecordsPerKey);

 private:
  friend class Session;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// The TLS of one connection. Not thread safe. The socket outlives it and is not closed by it; its end is the
/// end of the stream: there is no farewell.
class Session {
 public:
  Session(const Context& context, Role role, int fd);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  enum class Step { kDone, kWantsToRead, kWantsToWrite, kFailed };
  /// Goes on with the handshake as far as it can without waiting. Send and Receive do so, too. kFailed: errno
  /// says why. A server that refuses a client says nothing to it.
  Step Handshake();
  bool established() const;
  /// The handshake waits for room to send.
  bool wants_to_write() const;

  /// As sendmsg(2) of both pieces, as far as there is room now: how many bytes were taken, else -1 and errno
  /// (EAGAIN: no room; EPROTO: error() says more). What was not taken has to be sent in the next calls, in
  /// pieces of any size: a part of it may be encrypted already.
  ssize_t Send(const void* head, std::size_t head_bytes, const void* data, std::size_t bytes);
  /// As recv(2), as far as something is there: fewer bytes than asked for only when no more are there now.
  ssize_t Receive(void* data, std::size_t bytes);
  /// Something has been taken from the socket and not been received yet: the socket does not show it.
  bool has_unread() const;
  /// Taken from the socket so far, the handshake included.
  std::size_t bytes_read() const;
  /// What went wrong, after EPROTO.
  const std::string& error() const;
  /// True when the kernel encrypts what is sent.
  bool kernel_sends() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warren::tls
