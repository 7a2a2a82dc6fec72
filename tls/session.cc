#include "tls/session.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "tls/openssl_library.h"

namespace warren::tls {
namespace {

// The maximum number of data bytes in a record.
constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
// The size of the read buffer once the peer is authenticated. One system call can then read several records.
constexpr std::size_t kReadBufferBytes = std::size_t{64} << 10;
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
constexpr char kSuites[] = "TLS_AES_128_GCM_SHA256";

// --- how OpenSSL reads and writes ---

/// The socket of one connection, for both directions.
struct Socket {
  int fd = -1;
  bool keeps_silent = false;  ///< whether alerts are suppressed: an unauthenticated client gets no bytes
  bool ended = false;
  std::size_t bytes_read = 0;
};

struct SocketMethods {
  BIO_METHOD* reading = nullptr;
  BIO_METHOD* writing = nullptr;
  decltype(std::declval<OpenSsl>().BIO_meth_get_write(nullptr)) write_of_openssl = nullptr;
};

const SocketMethods& Sockets();

bool WouldBlock() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

template <typename Call>
int WithRetryFlag(BIO* bio, int flag, const Call& call) {
  const OpenSsl& ssl = LoadOpenSsl();
  ssl.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  ssize_t count = 0;
  do {
    count = call();
  } while (count < 0 && errno == EINTR);
  if (count < 0 && WouldBlock()) ssl.BIO_set_flags(bio, flag | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(count);
}

// Replaces OpenSSL's own function, which would raise SIGPIPE if the peer has closed the connection, and
// thereby end a program that uses this library.
int Write(BIO* bio, const char* data, int bytes) {
  const OpenSsl& ssl = LoadOpenSsl();
  // With kernel TLS, records other than data need a control message, which OpenSSL's own function creates.
  if (ssl.BIO_ctrl(bio, BIO_CTRL_GET_KTLS_SEND, 0, nullptr) > 0)
    return Sockets().write_of_openssl(bio, data, bytes);
  const auto& socket = *static_cast<const Socket*>(ssl.BIO_get_ex_data(bio, 0));
  if (socket.keeps_silent && bytes > 0 && data[0] == SSL3_RT_ALERT) return bytes;
  return WithRetryFlag(bio, BIO_FLAGS_WRITE, [&] {
    return send(socket.fd, data, static_cast<std::size_t>(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

int Read(BIO* bio, char* data, int bytes) {
  auto& socket = *static_cast<Socket*>(LoadOpenSsl().BIO_get_ex_data(bio, 0));
  const int count = WithRetryFlag(bio, BIO_FLAGS_READ, [&] {
    return recv(socket.fd, data, static_cast<std::size_t>(bytes), MSG_DONTWAIT);
  });
  if (count > 0) socket.bytes_read += static_cast<std::size_t>(count);
  socket.ended = count == 0;
  return count;
}

// Refuses all operations on the reading side except a flush and the query for the end of the stream. In
// particular it refuses kernel TLS for receiving: before Linux 6.14 the kernel cannot handle a key change by
// the peer, and would end the connection. Kernel TLS for sending is allowed: its key is never changed.
long ControlReading(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  return command == BIO_CTRL_EOF && static_cast<const Socket*>(LoadOpenSsl().BIO_get_ex_data(bio, 0))->ended;
}

SocketMethods MakeSockets() {
  const OpenSsl& ssl = LoadOpenSsl();
  const BIO_METHOD* const openssl = ssl.BIO_s_socket();
  SocketMethods made{ssl.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "reading from a socket"),
                     ssl.BIO_meth_new(BIO_TYPE_SOCKET, "writing to a socket"),
                     ssl.BIO_meth_get_write(openssl)};
  if (made.reading == nullptr || made.writing == nullptr) throw std::bad_alloc();
  ssl.BIO_meth_set_read(made.reading, &Read);
  ssl.BIO_meth_set_ctrl(made.reading, &ControlReading);
  ssl.BIO_meth_set_write(made.writing, &Write);
  ssl.BIO_meth_set_ctrl(made.writing, ssl.BIO_meth_get_ctrl(openssl));
  ssl.BIO_meth_set_create(made.writing, ssl.BIO_meth_get_create(openssl));
  ssl.BIO_meth_set_destroy(made.writing, ssl.BIO_meth_get_destroy(openssl));
  return made;
}

const SocketMethods& Sockets() {
  static const SocketMethods sockets = MakeSockets();
  return sockets;
}

// --- the secret ---

struct PreSharedKey {
  std::string purpose;
  Secret secret;

  /// Returns the key as a new session, the form in which OpenSSL takes external keys; null on failure.
  /// OpenSSL takes ownership.
  SSL_SESSION* AsSession(SSL* connection) const {
    const OpenSsl& ssl = LoadOpenSsl();
    SSL_SESSION* session = ssl.SSL_SESSION_new();
    const SSL_CIPHER* suite = ssl.SSL_CIPHER_find(connection, kAes128GcmSha256);
    if (session != nullptr && suite != nullptr &&
        ssl.SSL_SESSION_set1_master_key(session, secret.data(), secret.size()) == 1 &&
        ssl.SSL_SESSION_set_cipher(session, suite) == 1 &&
        ssl.SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
      return session;
    }
    ssl.SSL_SESSION_free(session);
    return nullptr;
  }
};

const PreSharedKey& KeyOf(SSL* connection) {
  return *static_cast<const PreSharedKey*>(LoadOpenSsl().SSL_get_ex_data(connection, 0));
}

int OfferKey(SSL* connection, const EVP_MD*, const unsigned char** identity, std::size_t* bytes,
             SSL_SESSION** session) {
  const PreSharedKey& key = KeyOf(connection);
  *identity = reinterpret_cast<const unsigned char*>(key.purpose.data());
  *bytes = key.purpose.size();
  *session = key.AsSession(connection);
  return *session != nullptr;
}

int FindKey(SSL* connection, const unsigned char* identity, std::size_t bytes, SSL_SESSION** session) {
  const PreSharedKey& key = KeyOf(connection);
  const std::string_view asked(reinterpret_cast<const char*>(identity), bytes);
  *session = asked == key.purpose ? key.AsSession(connection) : nullptr;
  return asked != key.purpose || *session != nullptr;
}

}  // namespace

// --- Context ---

struct Context::Impl {
  const OpenSsl& ssl = LoadOpenSsl();
  PreSharedKey key;
  std::uint64_t records_per_key;
  SSL_CTX* context = nullptr;

  bool is_web = false;  ///< whether peers are authenticated by certificates instead of the key

  Impl(std::string purpose, const Secret& secret, std::uint64_t records)
      : key{std::move(purpose), secret},
        records_per_key(records),
        context(ssl.SSL_CTX_new(ssl.TLS_method())) {
    if (context == nullptr) throw std::bad_alloc();
    const bool ok = ssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr) == 1 &&
                    ssl.SSL_CTX_set_ciphersuites(context, kSuites) == 1 &&
                    ssl.SSL_CTX_set_num_tickets(context, 0) == 1;
    if (!ok) {
      ssl.SSL_CTX_free(context);
      throw std::runtime_error(
          fmt::format("this machine's OpenSSL does not support TLS 1.3 with {}", kSuites));
    }
    SetModes(SSL_OP_ENABLE_KTLS);
    ssl.SSL_CTX_set_psk_use_session_callback(context, &OfferKey);
    ssl.SSL_CTX_set_psk_find_session_callback(context, &FindKey);
  }
  /// See ForWebClients.
  explicit Impl(const std::string& authorities)
      : key{}, records_per_key(kRecordsPerKey), context(ssl.SSL_CTX_new(ssl.TLS_method())), is_web(true) {
    if (context == nullptr) throw std::bad_alloc();
    ssl.ERR_clear_error();
    const bool ok = ssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr) == 1 &&
                    (authorities.empty() ? ssl.SSL_CTX_set_default_verify_paths(context)
                                         : ssl.SSL_CTX_load_verify_file(context, authorities.c_str())) == 1;
    if (!ok) {
      const char* reason = ssl.ERR_reason_error_string(ssl.ERR_peek_error());
      const std::string why = reason != nullptr ? reason : "there is no such file, or it has no certificates";
      ssl.ERR_clear_error();
      ssl.SSL_CTX_free(context);
      throw std::runtime_error(fmt::format("cannot read the certificates of authorities{}: {}",
                                           authorities.empty() ? "" : fmt::format(" in '{}'", authorities),
                                           why));
    }
    SetModes(0);
  }
  void SetModes(std::uint64_t options) const {
    // The end of the connection counts as the end of the stream, as without TLS.
    ssl.SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF | options);
    ssl.SSL_CTX_ctrl(context, SSL_CTRL_MODE, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS,
                     nullptr);
    ssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
    ssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_READ_AHEAD, 1, nullptr);
  }
  ~Impl() { ssl.SSL_CTX_free(context); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

Context::Context(std::string purpose, const Secret& secret, std::uint64_t records_per_key)
    : impl_(std::make_shared<const Impl>(std::move(purpose), secret, records_per_key)) {}

Context Context::ForWebClients(const std::string& authorities) {
  return Context(std::make_shared<const Impl>(authorities));
}

// --- Session ---

struct Session::Impl {
  const OpenSsl& ssl = LoadOpenSsl();
  const std::shared_ptr<const Context::Impl> context;
  Socket socket;
  SSL* connection = nullptr;
  bool established = false;
  bool wants_to_write = false;
  bool kernel_sends = false;
  int failure = 0;  ///< errno of a permanent failure, or 0
  std::string error;
  std::uint64_t records = 0;  ///< number of records sent under the current key
  /// The content of a record that consists of both pieces of a Send, or that must be written again because
  /// there was no space.
  std::vector<char> staged;
  bool has_to_repeat = false;
  /// The number of bytes that have been sent although Send has not reported them as taken yet.
  std::size_t ahead = 0;

  Impl(std::shared_ptr<const Context::Impl> of, Role role, int fd)
      : context(std::move(of)), socket{fd, role == Role::kServer} {
    connection = ssl.SSL_new(context->context);
    BIO* const reading = ssl.BIO_new(Sockets().reading);
    BIO* const writing = ssl.BIO_new(Sockets().writing);
    if (connection == nullptr || reading == nullptr || writing == nullptr) throw std::bad_alloc();
    ssl.BIO_int_ctrl(writing, BIO_C_SET_FD, BIO_NOCLOSE, fd);
    for (BIO* const bio : {reading, writing}) ssl.BIO_set_ex_data(bio, 0, &socket);
    ssl.SSL_set_bio(connection, reading, writing);
    ssl.SSL_set_ex_data(connection, 0, const_cast<PreSharedKey*>(&context->key));
    if (role == Role::kServer) {
      ssl.SSL_set_accept_state(connection);
    } else {
      ssl.SSL_set_connect_state(connection);
      // Except for web clients, no certificate authority is trusted: a server that presents a certificate
      // does not belong to this job and is rejected.
      ssl.SSL_set_verify(connection, SSL_VERIFY_PEER, nullptr);
    }
  }
  ~Impl() { ssl.SSL_free(connection); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Converts the return value of a failed call to an errno; 0 means the end of the stream. Permanent failures
  // are also stored in `failure` and `error`.
  int Classify(int returned) {
    const int seen = errno;
    switch (ssl.SSL_get_error(connection, returned)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return EAGAIN;
      case SSL_ERROR_ZERO_RETURN:
        return 0;
      case SSL_ERROR_SYSCALL:
        failure = seen == 0 ? ECONNRESET : seen;
        break;
      default: {
        // Use the first error: later ones may only report that some layer has failed.
        const char* reason = ssl.ERR_reason_error_string(ssl.ERR_peek_error());
        error = reason == nullptr ? "unknown error" : reason;
        if (const long verdict = ssl.SSL_get_verify_result(connection);
            context->is_web && verdict != X509_V_OK)
          error += fmt::format(": {}", ssl.X509_verify_cert_error_string(verdict));
        failure = EPROTO;
        break;
      }
    }
    ssl.ERR_clear_error();
    return failure;
  }

  ssize_t Failed(int why) {
    errno = why;
    return why == 0 ? 0 : -1;
  }

  // Continues the handshake. Returns 0 if it is complete, kEnded at the end of the stream, otherwise an
  // errno.
  static constexpr int kEnded = -1;
  int Shake() {
    if (established) return 0;
    if (failure != 0) return failure;
    ssl.ERR_clear_error();
    errno = 0;
    const int returned = ssl.SSL_do_handshake(connection);
    if (returned != 1) {
      wants_to_write = ssl.SSL_get_error(connection, returned) == SSL_ERROR_WANT_WRITE;
      const int why = Classify(returned);
      return why == 0 ? kEnded : why;
    }
    wants_to_write = false;
    if (!context->is_web && ssl.SSL_session_reused(connection) != 1) {
      error = "the other side did not prove that it knows the secret";
      return failure = EPROTO;
    }
    established = true;
    socket.keeps_silent = false;
    ssl.SSL_set_default_read_buffer_len(connection, kReadBufferBytes);
    kernel_sends = ssl.BIO_ctrl(ssl.SSL_get_wbio(connection), BIO_CTRL_GET_KTLS_SEND, 0, nullptr) > 0;
    // If the peer changes its key, OpenSSL 3.5 tries to enable kernel TLS again and loses the part of the
    // next record that it has already read.
    ssl.SSL_clear_options(connection, SSL_OP_ENABLE_KTLS);
    return 0;
  }

  // Writes one record. Returns 0 or an errno.
  int Write(const char* data, std::size_t bytes) {
    ssl.ERR_clear_error();
    errno = 0;
    std::size_t written = 0;
    const int returned = ssl.SSL_write_ex(connection, data, bytes, &written);
    if (returned != 1) {
      const int why = Classify(returned);
      return why == 0 ? failure = EPIPE : why;
    }
    if (++records == context->records_per_key) {
      records = 0;
      ssl.SSL_key_update(connection, SSL_KEY_UPDATE_NOT_REQUESTED);
    }
    return 0;
  }
};

Session::Session(const Context& context, Role role, int fd)
    : impl_(std::make_unique<Impl>(context.impl_, role, fd)) {}
Session::Session(const Context& context, const std::string& server, int fd)
    : impl_(std::make_unique<Impl>(context.impl_, Role::kClient, fd)) {
  SSL* const connection = impl_->connection;
  const OpenSsl& ssl = impl_->ssl;
  // Names in certificates lack the trailing dot of a fully qualified name.
  std::string name = server;
  if (name.ends_with('.')) name.pop_back();
  // An address must not be sent as the server's name (RFC 6066, section 3).
  in6_addr address{};
  const bool is_address =
      inet_pton(AF_INET, name.c_str(), &address) == 1 || inet_pton(AF_INET6, name.c_str(), &address) == 1;
  const bool named = is_address || ssl.SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                                TLSEXT_NAMETYPE_host_name, name.data()) == 1;
  if (!named || ssl.SSL_set1_host(connection, name.c_str()) != 1)
    throw std::runtime_error(fmt::format("'{}' is not the name of a server", server));
}
Session::~Session() = default;

Session::Step Session::Handshake() {
  const int why = impl_->Shake();
  if (why == 0) return Step::kDone;
  if (why == EAGAIN) return impl_->wants_to_write ? Step::kWantsToWrite : Step::kWantsToRead;
  errno = why == Impl::kEnded ? ECONNRESET : why;
  return Step::kFailed;
}

ssize_t Session::Send(const void* head, std::size_t head_bytes, const void* data, std::size_t bytes) {
  Impl& it = *impl_;
  if (const int why = it.Shake(); why != 0) return it.Failed(why == Impl::kEnded ? EPIPE : why);
  if (it.failure != 0) return it.Failed(it.failure);
  if (it.kernel_sends) {
    iovec pieces[2] = {{const_cast<void*>(head), head_bytes}, {const_cast<void*>(data), bytes}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    return sendmsg(it.socket.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  if (it.has_to_repeat) {
    if (const int why = it.Write(it.staged.data(), it.staged.size()); why != 0) return it.Failed(why);
    it.has_to_repeat = false;
    it.ahead += it.staged.size();
  }
  const std::size_t total = head_bytes + bytes;
  std::size_t taken = std::min(it.ahead, total);
  it.ahead -= taken;
  const auto* const first = static_cast<const char*>(head);
  const auto* const second = static_cast<const char*>(data);
  while (taken < total) {
    const std::size_t count = std::min(kRecordBytes, total - taken);
    const char* from = second + (taken - std::min(taken, head_bytes));
    if (taken < head_bytes) {
      const std::size_t of_head = std::min(count, head_bytes - taken);
      it.staged.assign(first + taken, first + taken + of_head);
      it.staged.insert(it.staged.end(), second, second + (count - of_head));
      from = it.staged.data();
    }
    if (const int why = it.Write(from, count); why != 0) {
      if (why == EAGAIN) {
        if (from != it.staged.data()) it.staged.assign(from, from + count);
        it.has_to_repeat = true;
      }
      return taken > 0 ? static_cast<ssize_t>(taken) : it.Failed(why);
    }
    taken += count;
  }
  return static_cast<ssize_t>(taken);
}

ssize_t Session::Receive(void* data, std::size_t bytes) {
  Impl& it = *impl_;
  if (const int why = it.Shake(); why != 0) return it.Failed(why == Impl::kEnded ? 0 : why);
  std::size_t taken = 0;
  while (taken < bytes) {
    if (it.failure != 0) return taken > 0 ? static_cast<ssize_t>(taken) : it.Failed(it.failure);
    it.ssl.ERR_clear_error();
    errno = 0;
    std::size_t count = 0;
    const int returned =
        it.ssl.SSL_read_ex(it.connection, static_cast<char*>(data) + taken, bytes - taken, &count);
    if (returned != 1) {
      const int why = it.Classify(returned);
      return taken > 0 ? static_cast<ssize_t>(taken) : it.Failed(why);
    }
    taken += count;
  }
  return static_cast<ssize_t>(taken);
}

bool Session::established() const {
  return impl_->established;
}
bool Session::wants_to_write() const {
  return impl_->wants_to_write;
}
bool Session::has_unread() const {
  return impl_->established && impl_->ssl.SSL_has_pending(impl_->connection) != 0;
}
std::size_t Session::bytes_read() const {
  return impl_->socket.bytes_read;
}
const std::string& Session::error() const {
  return impl_->error;
}
bool Session::kernel_sends() const {
  return impl_->kernel_sends;
}

}  // namespace warren::tls
