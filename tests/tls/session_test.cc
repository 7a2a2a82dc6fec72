// Two ends of a session, in one thread, over a pair of sockets; and foreign peers at one of the ends.
#include "tls/session.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/memory_file.h"
#include "tls/first_record.h"

namespace warren::tls {
namespace {

using Step = Session::Step;

Secret SecretOf(std::uint8_t byte) {
  Secret secret;
  secret.fill(byte);
  return secret;
}

/// A pair of connected sockets.
class Wire {
 public:
  enum class Kind { kPair, kTcp };
  explicit Wire(Kind kind = Kind::kPair) {
    if (kind == Kind::kTcp) {
      ConnectByTcp();
    } else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends_.data()) != 0) {
      throw std::bad_alloc();
    }
  }
  ~Wire() {
    for (const int end : ends_) close(end);
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int client() const { return ends_[0]; }
  int server() const { return ends_[1]; }
  /// Makes the send buffers small, so that a send may stop after any byte.
  void MakeNarrow() const {
    const int bytes = 1;  // the kernel raises it to 4.5 KiB
    for (const int end : ends_) setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  }
  /// Whether the kernel supports TLS. Enables it on the client's socket to find out.
  bool KernelHasTls() const { return setsockopt(client(), IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls") == 0; }
  /// Returns everything that can be read at this end, up to 64 KiB.
  static std::string Drain(int end) {
    std::string all(1 << 16, '\0');
    const ssize_t count = recv(end, all.data(), all.size(), MSG_DONTWAIT);
    all.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return all;
  }

 private:
  void ConnectByTcp() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    ends_[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, plain, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, plain, &length) != 0 || connect(ends_[0], plain, length) != 0) {
      throw std::bad_alloc();
    }
    ends_[1] = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    close(listener);
    for (const int end : ends_) fcntl(end, F_SETFL, O_NONBLOCK);
  }

  std::array<int, 2> ends_{};
};

/// Makes both ends continue the handshake ten times, which is more than they need. Returns their last steps.
std::pair<Step, Step> ShakeHands(Session& client, Session& server) {
  Step of_client = Step::kWantsToRead;
  Step of_server = Step::kWantsToRead;
  for (int round = 0; round < 10; ++round) {
    of_client = client.Handshake();
    of_server = server.Handshake();
  }
  return {of_client, of_server};
}

struct Pair {
  explicit Pair(std::uint64_t records_per_key = kRecordsPerKey, Wire::Kind kind = Wire::Kind::kPair)
      : wire(kind), context("test", SecretOf(1), records_per_key) {
    EXPECT_EQ(ShakeHands(client, server), std::pair(Step::kDone, Step::kDone));
  }
  Wire wire;
  Context context;
  Session client{context, Role::kClient, wire.client()};
  Session server{context, Role::kServer, wire.server()};
};

std::string ReceiveAll(Session& session, std::size_t limit = 1 << 20) {
  std::string all(limit, '\0');
  const ssize_t count = session.Receive(all.data(), all.size());
  if (count < 0 && errno != EAGAIN) throw std::runtime_error(session.error());
  all.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return all;
}

ssize_t Send(Session& session, const std::string& bytes) {
  return session.Send(nullptr, 0, bytes.data(), bytes.size());
}

std::string Noise(std::size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  std::mt19937 random(seed);
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

TEST(TlsSession, BothDirectionsAndNothingInTheClear) {
  Pair pair;
  EXPECT_EQ(Send(pair.client, "what the client says"), 20);
  const std::string seen = Wire::Drain(pair.wire.server());
  EXPECT_GT(seen.size(), 20U);
  EXPECT_EQ(seen.find("client"), std::string::npos);
  ASSERT_EQ(send(pair.wire.client(), seen.data(), seen.size(), 0),
            static_cast<ssize_t>(seen.size()));  // puts the bytes back for the server
  EXPECT_EQ(ReceiveAll(pair.server), "what the client says");
  EXPECT_EQ(pair.server.Send("head, ", 6, "body", 4), 10);
  EXPECT_EQ(ReceiveAll(pair.client), "head, body");
  EXPECT_EQ(ReceiveAll(pair.client), "");
  EXPECT_EQ(errno, EAGAIN);
}

TEST(TlsSession, SendAndReceiveShakeHandsByThemselves) {
  Wire wire;
  Context context("test", SecretOf(1));
  Session client(context, Role::kClient, wire.client());
  Session server(context, Role::kServer, wire.server());
  EXPECT_EQ(Send(client, "hello"), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(ReceiveAll(server), "");
  EXPECT_EQ(Send(client, "hello"), 5);
  EXPECT_EQ(ReceiveAll(server), "hello");
}

TEST(TlsSession, AnotherSecretAnotherPurposeAndNonsenseHearNothing) {
  const auto heard_by = [](std::optional<Context> other, const std::string& instead) {
    Wire wire;
    Context context("test", SecretOf(1));
    Session server(context, Role::kServer, wire.server());
    std::optional<Session> client;
    if (other) {
      client.emplace(*other, Role::kClient, wire.client());
      EXPECT_EQ(client->Handshake(), Step::kWantsToRead);
    } else {
      send(wire.client(), instead.data(), instead.size(), MSG_NOSIGNAL);
    }
    EXPECT_EQ(server.Handshake(), Step::kFailed);
    EXPECT_NE(server.error(), "");
    EXPECT_EQ(server.Handshake(), Step::kFailed);
    char byte = 0;
    EXPECT_EQ(server.Receive(&byte, 1), -1);
    EXPECT_EQ(errno, EPROTO);
    return Wire::Drain(wire.client());
  };
  EXPECT_EQ(heard_by(Context("test", SecretOf(2)), ""), "");
  EXPECT_EQ(heard_by(Context("else", SecretOf(1)), ""), "");
  EXPECT_EQ(heard_by(std::nullopt, "GET / HTTP/1.0\r\n\r\n"), "");
  EXPECT_EQ(heard_by(std::nullopt, Noise(400, 3)), "");
}

TEST(TlsSession, AChangedByteIsNoticed) {
  Pair pair;
  Send(pair.client, "important");
  std::string seen = Wire::Drain(pair.wire.server());
  seen[seen.size() / 2] ^= 1;
  ASSERT_GT(send(pair.wire.client(), seen.data(), seen.size(), 0), 0);
  char byte = 0;
  EXPECT_EQ(pair.server.Receive(&byte, 1), -1);
  EXPECT_EQ(errno, EPROTO);
  EXPECT_THAT(pair.server.error(), testing::HasSubstr("bad record mac"));
}

TEST(TlsSession, TheEndOfTheConnectionIsTheEndOfTheStream) {
  Pair pair;
  Send(pair.client, "last");
  shutdown(pair.wire.client(), SHUT_WR);
  EXPECT_EQ(ReceiveAll(pair.server), "last");
  char byte = 0;
  EXPECT_EQ(pair.server.Receive(&byte, 1), 0);
  EXPECT_EQ(pair.server.Receive(&byte, 1), 0);
}

TEST(TlsSession, ASendToWhoHasGoneIsAnErrorAndNoSignal) {
  Pair pair;
  shutdown(pair.wire.server(), SHUT_RDWR);
  signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(Send(pair.client, "anybody?"), -1);
  EXPECT_EQ(errno, EPIPE);
}

// After each send that found no space, the caller divides the remaining bytes differently, as collectives do.
TEST(TlsSession, PiecesOfAnySizeArriveInOrderThroughANarrowPipe) {
  for (const std::uint64_t records_per_key : {kRecordsPerKey, std::uint64_t{3}}) {
    Pair pair(records_per_key);
    pair.wire.MakeNarrow();
    const std::string message = Noise(1 << 20, 5);
    std::mt19937 random(7);
    std::string received;
    std::size_t sent = 0;
    while (received.size() < message.size()) {
      for (int call = 0; call < 4 && sent < message.size(); ++call) {
        const std::size_t bytes = std::min<std::size_t>(message.size() - sent, random() % 40'000);
        const std::size_t head = std::min<std::size_t>(bytes, random() % 3 * 1000);
        const char* from = message.data() + sent;
        const ssize_t count = pair.client.Send(from, head, from + head, bytes - head);
        if (count < 0) {
          ASSERT_EQ(errno, EAGAIN);
        } else {
          sent += static_cast<std::size_t>(count);
        }
      }
      received += ReceiveAll(pair.server, 1 + random() % 50'000);
    }
    EXPECT_EQ(received, message);
  }
}

bool Readable(int fd) {
  pollfd look{fd, POLLIN, 0};
  return poll(&look, 1, 100) > 0;
}

TEST(FirstRecord, IsKnownWhenItIsWholeAndTheSocketKeepsSilentUntilThen) {
  const Wire wire(Wire::Kind::kTcp);
  EXPECT_EQ(LookAtFirstRecord(wire.server()), FirstRecord::kIncomplete);
  const std::string record = std::string("\x16\x03\x01\x01\x02", 5) + std::string(0x102, 'x');
  std::size_t sent = 0;
  for (const std::size_t piece : {1, 3, 1, 257}) {
    send(wire.client(), record.data() + sent, piece, MSG_NOSIGNAL);
    sent += piece;
    // The socket becomes readable when it holds the bytes that LookAtFirstRecord waits for: 1 byte, then the
    // 5 bytes of the header, then the whole record.
    EXPECT_EQ(Readable(wire.server()), sent == 1 || sent == 5) << sent;
    EXPECT_EQ(LookAtFirstRecord(wire.server()), FirstRecord::kIncomplete);
  }
  send(wire.client(), "x", 1, MSG_NOSIGNAL);
  EXPECT_TRUE(Readable(wire.server()));
  EXPECT_EQ(LookAtFirstRecord(wire.server()), FirstRecord::kWhole);
  EXPECT_EQ(Wire::Drain(wire.server()), record);
  send(wire.client(), "y", 1, MSG_NOSIGNAL);
  EXPECT_TRUE(Readable(wire.server()));
}

TEST(FirstRecord, IsNoneOfAnythingElse) {
  for (const std::string& begin :
       {std::string("GET /"), std::string(1, '\0'), std::string("\x16\x03\x01\x10\x01")}) {
    const Wire wire(Wire::Kind::kTcp);
    send(wire.client(), begin.data(), begin.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(Readable(wire.server()));
    EXPECT_EQ(LookAtFirstRecord(wire.server()), FirstRecord::kNone) << begin;
  }
  const Wire wire(Wire::Kind::kTcp);
  send(wire.client(), "\x16\x03", 2, MSG_NOSIGNAL);
  EXPECT_TRUE(Readable(wire.server()));
  EXPECT_EQ(LookAtFirstRecord(wire.server()), FirstRecord::kIncomplete);
  shutdown(wire.client(), SHUT_WR);
  EXPECT_TRUE(Readable(wire.server()));
  EXPECT_EQ(LookAtFirstRecord(wire.server()), FirstRecord::kNone);
}

TEST(TlsSession, TheKeyChangesAfterSoManyRecords) {
  Pair pair(3);
  Wire::Drain(pair.wire.server());
  for (int record = 0; record < 7; ++record) EXPECT_EQ(Send(pair.client, "x"), 1);
  const std::string sent = Wire::Drain(pair.wire.server());
  std::vector<int> lengths;
  for (std::size_t at = 0; at + 5 <= sent.size(); at += 5 + static_cast<std::size_t>(lengths.back())) {
    lengths.push_back(static_cast<unsigned char>(sent[at + 3]) << 8 |
                      static_cast<unsigned char>(sent[at + 4]));
  }
  // RFC 8446, 5.2: the content, one byte for its type, and 16 bytes for authentication. A KeyUpdate (4.6.3)
  // has five bytes.
  EXPECT_THAT(lengths, testing::ElementsAre(18, 18, 18, 22, 18, 18, 18, 22, 18));
}

// The kernel encrypts sent data. OpenSSL decrypts received data, whether the kernel or OpenSSL has encrypted
// it.
TEST(TlsSession, TheKernelEncryptsWhereItCan) {
  if (!Wire(Wire::Kind::kTcp).KernelHasTls()) GTEST_SKIP() << "SKIPPED: this kernel has no TLS";
  Pair pair(kRecordsPerKey, Wire::Kind::kTcp);
  EXPECT_TRUE(pair.client.kernel_sends());
  EXPECT_TRUE(pair.server.kernel_sends());
  const std::string message = Noise(8 << 20, 9);
  std::string received;
  for (std::size_t sent = 0; received.size() < message.size();) {
    const char* from = message.data() + sent;
    const std::size_t head = std::min<std::size_t>(24, message.size() - sent);
    const ssize_t count = pair.client.Send(from, head, from + head,
                                           std::min<std::size_t>(message.size() - sent - head, 300'000));
    ASSERT_TRUE(count >= 0 || errno == EAGAIN);
    sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    received += ReceiveAll(pair.server, 77'777);
  }
  EXPECT_EQ(received, message);
  EXPECT_EQ(Send(pair.server, "answer"), 6);
  std::string answer;
  while (answer.empty()) answer = ReceiveAll(pair.client);
  EXPECT_EQ(answer, "answer");
}

TEST(TlsSession, TellsOfBytesThatTheSocketDoesNotShow) {
  Pair pair;
  Send(pair.client, "two words");
  EXPECT_EQ(ReceiveAll(pair.server, 3), "two");
  EXPECT_EQ(Wire::Drain(pair.wire.server()), "");
  EXPECT_TRUE(pair.server.has_unread());
  EXPECT_EQ(ReceiveAll(pair.server), " words");
  EXPECT_FALSE(pair.server.has_unread());
}

/// A foreign peer that supports TLS and has a self-signed certificate for server.example and 192.0.2.1.
struct WithACertificate {
  SSL_CTX* context = SSL_CTX_new(TLS_method());
  SSL* ssl = nullptr;
  std::string pem;  ///< the certificate

  explicit WithACertificate(int fd) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_EXTENSION* names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:server.example,IP:192.0.2.1");
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
    X509_sign(certificate, key, EVP_sha256());
    SSL_CTX_use_certificate(context, certificate);
    SSL_CTX_use_PrivateKey(context, key);
    BIO* text = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(text, certificate);
    char* bytes = nullptr;
    const long count = BIO_get_mem_data(text, &bytes);
    pem.assign(bytes, static_cast<std::size_t>(count));
    BIO_free(text);
    X509_free(certificate);
    EVP_PKEY_free(key);
    ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
  }
  ~WithACertificate() {
    SSL_free(ssl);
    SSL_CTX_free(context);
  }
  WithACertificate(const WithACertificate&) = delete;
  WithACertificate& operator=(const WithACertificate&) = delete;
};

TEST(TlsSession, NoCertificateDoesInPlaceOfTheSecret) {
  {
    Wire wire;
    Context context("test", SecretOf(1));
    Session client(context, Role::kClient, wire.client());
    WithACertificate server(wire.server());
    SSL_set_accept_state(server.ssl);
    Step step = Step::kWantsToRead;
    for (int round = 0; round < 10 && step == Step::kWantsToRead; ++round) {
      step = client.Handshake();
      SSL_do_handshake(server.ssl);
    }
    EXPECT_EQ(step, Step::kFailed);
    EXPECT_FALSE(client.established());
  }
  Wire wire;
  Context context("test", SecretOf(1));
  Session server(context, Role::kServer, wire.server());
  WithACertificate client(wire.client());
  SSL_set_connect_state(client.ssl);
  SSL_do_handshake(client.ssl);
  EXPECT_EQ(server.Handshake(), Step::kFailed);
  EXPECT_EQ(Wire::Drain(wire.client()), "");
}

TEST(TlsSession, AWebClientTrustsACertificateOfItsAuthoritiesWithTheNameOfTheServer) {
  const std::string another = WithACertificate(-1).pem;
  /// Returns the error; empty if the client has sent a request and received the answer.
  const auto error_of = [&](const std::string& name, bool trusts) {
    Wire wire;
    WithACertificate server(wire.server());
    SSL_set_accept_state(server.ssl);
    Session client(Context::ForWebClients(MemoryFile(trusts ? server.pem : another).path()), name,
                   wire.client());
    const std::string request = "request";
    std::string seen(7, ' '), answer;
    bool sent = false;
    for (int round = 0; round < 10 && answer.empty(); ++round) {
      const ssize_t count = sent ? 0 : Send(client, request);
      if (count < 0 && errno != EAGAIN) return client.error();
      sent = sent || count > 0;
      if (SSL_read(server.ssl, seen.data(), 7) == 7) SSL_write(server.ssl, "answer", 6);
      if (sent) answer = ReceiveAll(client);
    }
    EXPECT_EQ(seen, request);
    EXPECT_EQ(answer, "answer");
    return std::string();
  };
  EXPECT_EQ(error_of("server.example", true), "");
  EXPECT_EQ(error_of("server.example.", true), "");
  EXPECT_EQ(error_of("192.0.2.1", true), "");
  EXPECT_THAT(error_of("server.example", false), testing::HasSubstr("certificate verify failed: "));
  EXPECT_THAT(error_of("other.example", true), testing::HasSubstr("hostname mismatch"));
  EXPECT_THAT(error_of("192.0.2.2", true), testing::HasSubstr("IP address mismatch"));
  EXPECT_THROW(Context::ForWebClients("/none.pem"), std::runtime_error);
}

}  // namespace
}  // namespace warren::tls
