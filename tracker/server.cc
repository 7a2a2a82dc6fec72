#include "tracker/server.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <fstream>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "posix/shortage.h"
#include "posix/sockets.h"
#include "tls/first_record.h"
#include "tls/session.h"
#include "tracker/socket_owner.h"

namespace warren::tracker {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

/// The pause before accepting again when the process is out of file descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};
/// The maximum number of connections accepted from a listening socket before existing connections are served.
/// This is the maximum length of its queue on most systems (net.core.somaxconn).
constexpr int kAcceptBatch = 4096;
/// The maximum number of listening sockets. Their queues should hold the connections of all workers of a job
/// at once.
constexpr std::size_t kMostListeners = 64;
/// The buffer size of one read. Most messages of a worker are tens of bytes; longer ones are read in pieces.
constexpr std::size_t kReadBytes = 512;
/// The maximum number of unsent bytes for a peer that does not read. A worker's answers are below a kilobyte.
constexpr std::size_t kMaxUnsentBytes = 256 * 1024;
/// Descriptors that the process needs in addition to the workers' connections.
constexpr rlim_t kOtherDescriptors = 128;

/// Raises the soft limit on descriptors to the hard limit, and both further if the workers need more and the
/// process has the privilege. A worker usually has at most four connections: its own, the one to its error
/// port, and one or two for its reports. The job does not need those for reports.
void RaiseDescriptorLimit(int num_workers) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto workers = static_cast<rlim_t>(num_workers);
  const rlim_t needed = 2 * workers + kOtherDescriptors;
  const rlimit wanted = {4 * workers + kOtherDescriptors, 4 * workers + kOtherDescriptors};
  if (limit.rlim_max < wanted.rlim_max && setrlimit(RLIMIT_NOFILE, &wanted) == 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return;
  spdlog::warn(
      "tracker: {} workers may need {} open files at once, but this process may open only {}; raise the limit (ulimit -n)",
      num_workers, needed, limit.rlim_cur);
}

/// Makes the kernel acknowledge data immediately. Workers write a hello in small pieces without TCP_NODELAY,
/// so each piece waits until the previous one is acknowledged, and an acknowledgment that is not sent with an
/// answer is delayed by 40 ms. The kernel may reset this option at any time, so it is set again after each
/// read that was not answered.
void AcknowledgeAtOnce(tcp::socket& socket) {
#ifdef TCP_QUICKACK
  const int on = 1;
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
#else
  static_cast<void>(socket);  // each piece waits for a delayed acknowledgment
#endif
}

/// Prevents firewalls and NATs from dropping connections that are silent throughout the job, and detects a
/// host that vanishes, within about 4 minutes.
void KeepAlive(tcp::socket& socket) {
  const int on = 1;
  const int idle_seconds = 60;
  const int interval_seconds = 20;
  setsockopt(socket.native_handle(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket.native_handle(), IPPROTO_TCP, posix::kKeepIdle, &idle_seconds, sizeof idle_seconds);
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  posix::SetUserTimeout(socket.native_handle(), 240);  // while bytes are unacknowledged, there are no probes
}

/// The number of listening sockets whose queues hold the connections of a job's workers if all connect at
/// once, at most kMostListeners. The kernel drops connections to a full queue, and the peers retry only after
/// 1, 2, 4 seconds. Half of each queue stays in reserve, since the kernel distributes connections by a hash.
std::size_t ListenersFor(int num_workers) {
  long queue = 128;  // the default before Linux 5.4
  std::ifstream("/proc/sys/net/core/somaxconn") >> queue;
  const auto room = static_cast<std::size_t>(std::max(queue / 2, 1L));
  return std::clamp((static_cast<std::size_t>(std::max(num_workers, 1)) + room - 1) / room, std::size_t{1},
                    kMostListeners);
}

/// Allows several sockets to listen at one port; the kernel distributes connections among them.
bool SharePort(tcp::acceptor& acceptor) {
  const int on = 1;
  return setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
}

/// Listens at `endpoint`, which is then set to the actual address and port. `any`: the endpoint is the IPv6
/// address for all addresses, which also accepts IPv4; without IPv6, IPv4 is used.
error_code ListenAt(tcp::acceptor& acceptor, tcp::endpoint& endpoint, bool any, bool shares_port) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (any && error) {  // a machine without IPv6
    endpoint.address(asio::ip::address_v4::any());
    acceptor.open(endpoint.protocol(), error);
  }
  if (any && !error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && shares_port && !SharePort(acceptor)) error = asio::error::no_protocol_option;
  if (!error) acceptor.bind(endpoint, error);
  // Accepted sockets inherit this option.
  if (!error) acceptor.set_option(tcp::no_delay(true), error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) endpoint = acceptor.local_endpoint(error);
  return error;
}

/// Listens at one port with as many sockets as the job needs. The first socket shares its port only once it
/// listens, so that a port that another tracker already shares is not used.
std::vector<tcp::acceptor> Listen(asio::io_context& io, const ServerOptions& options) {
  const bool any = options.bind_address.empty();
  const auto address =
      any ? asio::ip::address(asio::ip::address_v6::any()) : asio::ip::make_address(options.bind_address);
  const std::uint16_t last = options.port == 0 ? options.port : std::max(options.port, options.port_end);
  const unsigned count = last - options.port + 1U;
  const unsigned offset = options.begin_anywhere ? std::random_device()() % count : 0;
  error_code error;
  for (unsigned i = 0; i < count; ++i) {
    tcp::endpoint endpoint(address, static_cast<std::uint16_t>(options.port + (offset + i) % count));
    std::vector<tcp::acceptor> acceptors;
    error = ListenAt(acceptors.emplace_back(io), endpoint, any, false);
    if (error == asio::error::address_in_use) continue;
    if (error) break;
    const std::size_t wanted = ListenersFor(options.job.num_workers);
    bool shares = wanted > 1 && SharePort(acceptors.front());
    while (shares && acceptors.size() < wanted) {
      tcp::acceptor another(io);
      shares = !ListenAt(another, endpoint, any, true);
      if (shares) acceptors.push_back(std::move(another));
    }
    return acceptors;
  }
  throw std::runtime_error(fmt::format("the tracker cannot listen on {}, port {}{}: {}",
                                       any ? std::string("any address") : options.bind_address, options.port,
                                       last > options.port ? fmt::format(" to {}", last) : std::string(),
                                       error.message()));
}

std::optional<tls::Context> TlsOf(const AdmissionOptions& admission) {
  if (!admission.tls || !admission.token) return std::nullopt;
  try {
    return tls::Context(std::string(wire::kTlsToTracker),
                        wire::TlsSecret(*admission.token, wire::kTlsToTracker));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("--tls: {}", error.what()));
  }
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Server::Impl> {
 public:
  Impl(asio::io_context& io, const ServerOptions& options, ServerEvents events)
      : events_(std::move(events)),
        acceptors_((RaiseDescriptorLimit(options.job.num_workers), Listen(io, options))),
        timer_(io),
        accept_pause_(io),
        tls_(TlsOf(options.job.admission)),
        job_(JobOptionsOf(options), steady_clock::now()) {
    if (!options.notes.empty()) job_.TakeOver(options.notes, steady_clock::now());
  }

  void Start() {
    for (tcp::acceptor& acceptor : acceptors_) {
      acceptor.non_blocking(true);
      WaitToAccept(acceptor);
    }
    Perform();
  }

  void Stop() {
    if (std::exchange(stopped_, true)) return;
    error_code ignored;
    for (const Send& message : job_.FinalMessages()) {
      const auto found = connections_.find(message.connection);
      if (found != connections_.end() && !found->second->connecting)
        Write(*found->second, message.bytes, ignored);
    }
    for (tcp::acceptor& acceptor : acceptors_) acceptor.close(ignored);
    timer_.cancel();
    accept_pause_.cancel();
    for (const auto& [id, connection] : connections_) {
      connection->closing = true;
      connection->socket.close(ignored);
    }
    connections_.clear();
  }

  std::uint16_t port() const { return acceptors_.front().local_endpoint().port(); }
  const Job& job() const { return job_; }

  /// Passes an event from the owner on to the job.
  template <typename Event>
  void Handle(const Event& event) {
    if (stopped_) return;
    event(job_, steady_clock::now());
    Perform();
  }

 private:
  struct Connection {
    explicit Connection(tcp::socket peer) : socket(std::move(peer)) {}
    tcp::socket socket;
    std::unique_ptr<tls::Session> tls;  ///< set if the connection is encrypted
    bool is_clear = false;              ///< known to be unencrypted
    std::size_t handshake_bytes = 0;    ///< TLS handshake bytes already reported to the job
    std::string unsent;
    std::array<char, kReadBytes> received;
    bool authenticated = false;  ///< has proved the token by TLS
    bool answered = false;       ///< whether an answer was sent since the last read
    bool connecting = false;
    bool closing = false;
    bool waits_to_write = false;
  };

  void WaitToAccept(tcp::acceptor& acceptor) {
    acceptor.async_wait(tcp::acceptor::wait_read, [self = shared_from_this(), &acceptor](error_code error) {
      if (!error && !self->stopped_) self->Accept(acceptor);
    });
  }

  void Accept(tcp::acceptor& acceptor) {
    for (int count = 0; count < kAcceptBatch && !stopped_; ++count) {
      tcp::socket socket(acceptor.get_executor());
      tcp::endpoint remote;
      error_code error;
      acceptor.accept(socket, remote, error);
      if (error == asio::error::would_block) break;
      if (error && posix::ConcernsOneConnection(error.value())) continue;
      if (error) return MakeRoom(acceptor, error);
      Add(std::move(socket), remote);
    }
    if (!stopped_) WaitToAccept(acceptor);
  }

  /// Called when accepting fails, usually because the process or the machine is out of descriptors. Drops a
  /// report connection or else the oldest pending connection, unless that is recent (kPendingGrace), so that
  /// workers can connect. If nothing can be dropped, accepting pauses for kAcceptPause or until a connection
  /// closes.
  void MakeRoom(tcp::acceptor& acceptor, error_code why) {
    if (!std::exchange(warned_of_limit_, true)) {
      spdlog::warn(
          "tracker: cannot accept more than the {} open connections: {}; dropping those for reports, and silent ones. {}",
          connections_.size(), why.message(), posix::ShortageAdvice(why.value()));
    }
    const bool made_room = job_.MakeRoom(steady_clock::now());
    Perform();
    if (stopped_) return;
    if (made_room) return WaitToAccept(acceptor);
    paused_.push_back(&acceptor);
    if (paused_.size() > 1) return;
    accept_pause_.expires_after(kAcceptPause);
    accept_pause_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->AcceptAgain();
    });
  }

  void AcceptAgain() {
    if (stopped_ || paused_.empty()) return;
    accept_pause_.cancel();
    for (tcp::acceptor* acceptor : std::exchange(paused_, {})) WaitToAccept(*acceptor);
  }

  void Add(tcp::socket socket, const tcp::endpoint& remote) {
    error_code error;
    socket.non_blocking(true, error);
    const std::string address = PlainAddress(remote.address()).to_string();
    if (error) {
      spdlog::warn("tracker: dropped {}:{}: {}", address, remote.port(), error.message());
      return;
    }
    KeepAlive(socket);  // detects a host that vanishes while its worker waits
    const ConnectionId id = next_id_++;
    connections_.emplace(id, std::make_shared<Connection>(std::move(socket)));
    job_.Opened(id, address, remote.port(), steady_clock::now());
    Perform();
    WaitToRead(id);
  }

  void WaitToRead(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const std::shared_ptr<Connection>& connection = found->second;
    if (tls_ && !connection->is_clear) {
      const bool to_write = connection->tls && connection->tls->wants_to_write();
      connection->socket.async_wait(to_write ? tcp::socket::wait_write : tcp::socket::wait_read,
                                    [self = shared_from_this(), id, connection](error_code error) {
                                      self->ReadEncrypted(id, *connection, error);
                                    });
      return;
    }
    // Reading at once is cheaper than waiting first, because data may already have arrived.
    connection->socket.async_read_some(
        asio::buffer(connection->received),
        [self = shared_from_this(), id, connection](error_code error, std::size_t count) {
          self->Read(id, *connection, error, count);
        });
  }

  void Read(ConnectionId id, Connection& connection, error_code error, std::size_t count) {
    if (connection.closing || stopped_ || error == asio::error::operation_aborted) return;
    if (error) {
      job_.Closed(id, error == asio::error::eof ? "it closed the connection" : error.message(),
                  steady_clock::now());
      Perform();
      return;
    }
    connection.answered = false;
    job_.Received(id, {connection.received.data(), count}, steady_clock::now());
    Perform();
    if (!connection.answered && !connection.closing) AcknowledgeAtOnce(connection.socket);
    WaitToRead(id);
  }

  /// Reads from a connection that is or may be encrypted, as its first bytes show.
  void ReadEncrypted(ConnectionId id, Connection& connection, error_code error) {
    if (connection.closing || stopped_ || error == asio::error::operation_aborted) return;
    if (!error && !connection.tls) {
      const tls::FirstRecord record = tls::LookAtFirstRecord(connection.socket.native_handle());
      if (record == tls::FirstRecord::kIncomplete) return WaitToRead(id);
      connection.is_clear = record == tls::FirstRecord::kNone;
      if (connection.is_clear) return WaitToRead(id);
      connection.tls =
          std::make_unique<tls::Session>(*tls_, tls::Role::kServer, connection.socket.native_handle());
    }
    for (bool more = !error; more && !connection.closing && !stopped_;) {
      const ssize_t count = connection.tls->Receive(connection.received.data(), connection.received.size());
      const int why = errno;
      more = count > 0;
      if (!connection.authenticated) CountHandshake(id, connection);
      if (count > 0) {
        job_.Received(id, {connection.received.data(), static_cast<std::size_t>(count)}, steady_clock::now());
      } else if (count == 0) {
        error = asio::error::eof;
      } else if (why == EPROTO) {
        job_.Closed(id, DescribeFailure(connection), steady_clock::now());
      } else if (why != EAGAIN && why != EWOULDBLOCK) {
        error = error_code(why, boost::system::system_category());
      }
      Perform();
    }
    if (connection.closing || stopped_) return;
    if (error) return Read(id, connection, error, 0);
    WaitToRead(id);
  }

  JobOptions JobOptionsOf(const ServerOptions& options) {
    JobOptions of_job = options.job;
    of_job.admission.seed = wire::RandomNonce();
    of_job.is_own_user = [this](ConnectionId id) { return IsOwnUser(id); };
    return of_job;
  }

  bool IsOwnUser(ConnectionId id) const {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return false;
    error_code error;
    const tcp::endpoint peer = found->second->socket.remote_endpoint(error);
    const tcp::endpoint own = error ? tcp::endpoint() : found->second->socket.local_endpoint(error);
    return !error && OwnerOfPeer(peer, own) == geteuid();
  }

  void CountHandshake(ConnectionId id, Connection& connection) {
    const std::size_t handshake_bytes = connection.tls->bytes_read();
    job_.ReceivedHandshake(id, handshake_bytes - connection.handshake_bytes);
    connection.handshake_bytes = handshake_bytes;
    connection.authenticated = connection.tls->established();
    if (connection.authenticated) job_.Authenticated(id);
  }

  static std::string DescribeFailure(const Connection& connection) {
    return fmt::format(
        "TLS: {}{}", connection.tls->error(),
        connection.authenticated
            ? ""
            : fmt::format("; it belongs to another job or to none, or its {} is not this tracker's",
                          wire::kTokenVariable));
  }

  static std::size_t Write(Connection& connection, const std::string& bytes, error_code& error) {
    if (!connection.tls) return connection.socket.write_some(asio::buffer(bytes), error);
    const ssize_t count = connection.tls->Send(nullptr, 0, bytes.data(), bytes.size());
    error = count < 0 ? error_code(errno, boost::system::system_category()) : error_code();
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }

  void Flush(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || found->second->waits_to_write || found->second->connecting) return;
    Connection& connection = *found->second;
    error_code error;
    while (!connection.unsent.empty() && !error) {
      const std::size_t sent = Write(connection, connection.unsent, error);
      connection.answered = true;
      connection.unsent.erase(0, sent);
    }
    if (error == asio::error::would_block && connection.unsent.size() < kMaxUnsentBytes) {
      return WaitToWrite(id, found->second);
    }
    if (error) connection.unsent.clear();
    if (connection.closing) {
      // The descriptor is closed here because a pending read may keep the connection object alive.
      connection.socket.close(error);
      connections_.erase(found);
      AcceptAgain();
    } else if (error) {
      job_.Closed(id, error.message(), steady_clock::now());
    }
  }

  void WaitToWrite(ConnectionId id, const std::shared_ptr<Connection>& connection) {
    connection->waits_to_write = true;
    connection->socket.async_wait(tcp::socket::wait_write,
                                  [self = shared_from_this(), id, connection](error_code error) {
                                    connection->waits_to_write = false;
                                    if (error || self->stopped_) return;
                                    self->Flush(id);
                                    self->Perform();
                                  });
  }

  /// Carries out the job's actions, including further actions that result from them.
  void Perform() {
    for (auto actions = job_.TakeActions(); !actions.empty() && !stopped_; actions = job_.TakeActions()) {
      for (Action& action : actions) {
        if (stopped_) return;
        std::visit([this](auto& wanted) { Do(wanted); }, action);
      }
    }
    if (!stopped_) ArmTimer();
  }

  void Do(Send& send) {
    const auto found = connections_.find(send.connection);
    if (found == connections_.end()) return;
    found->second->unsent += send.bytes;
    Flush(send.connection);
  }

  void Do(Connect& connect) {
    error_code error;
    const tcp::endpoint peer(asio::ip::make_address(connect.host, error), connect.port);
    auto connection = std::make_shared<Connection>(tcp::socket(timer_.get_executor()));
    if (!error) connection->socket.open(peer.protocol(), error);
    if (!error) connection->socket.non_blocking(true, error);
    if (error) return job_.Closed(connect.connection, error.message(), steady_clock::now());
    connection->connecting = true;
    connections_.emplace(connect.connection, connection);
    connection->socket.async_connect(
        peer, [self = shared_from_this(), id = connect.connection, connection](error_code failed) {
          if (!self->stopped_) self->ConnectDone(id, *connection, failed);
        });
  }

  void ConnectDone(ConnectionId id, Connection& connection, error_code error) {
    connection.connecting = false;
    if (error) {
      connection.unsent.clear();
      job_.Closed(id, fmt::format("connecting failed: {}", error.message()), steady_clock::now());
      if (connection.closing) connections_.erase(id);
    } else {
      KeepAlive(connection.socket);
      job_.Connected(id);
      Flush(id);
    }
    Perform();
    WaitToRead(id);
  }

  void Do(Close& close) {
    const auto found = connections_.find(close.connection);
    if (found == connections_.end()) return;
    found->second->closing = true;
    Flush(close.connection);
  }

  void Do(Report& report) {
    const auto level = report.severity == Severity::kWarning ? spdlog::level::warn
                       : report.severity == Severity::kInfo  ? spdlog::level::info
                                                             : spdlog::level::debug;
    spdlog::log(level, "tracker: {}", report.text);
  }

  void Do(Joined& joined) { Tell(events_.joined, joined.joined, joined.expected); }
  void Do(Assigned& assigned) { Tell(events_.assigned, assigned.task_id, assigned.rank, assigned.host); }
  void Do(Linked&) { Tell(events_.linked); }
  void Do(GenerationBegan& generation) { Tell(events_.generation_began, generation); }
  void Do(WorkDone& work) { Tell(events_.work_done, work.is_done); }
  void Do(Broken& broken) { Tell(events_.broken, broken.task_id, broken.story); }
  void Do(WorkerReported& reported) { Tell(events_.reported, *reported.report); }
  void Do(Print& print) { Tell(events_.print, print.rank, print.text); }
  void Do(Note& note) { Tell(events_.note, note); }
  void Do(Finished& finished) { Tell(events_.finished, finished.failure); }

  template <typename Event, typename... Arguments>
  static void Tell(const Event& event, const Arguments&... arguments) {
    if (event) event(arguments...);
  }

  void ArmTimer() {
    const auto deadline = job_.NextDeadline();
    // Deadlines change with each message. A timer that is set for an earlier time is left alone; it is set
    // again when it fires.
    if (!deadline || (armed_for_ && *armed_for_ <= *deadline)) return;
    armed_for_ = deadline;
    timer_.expires_at(*deadline);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (error || self->stopped_) return;
      self->armed_for_.reset();
      self->job_.Tick(steady_clock::now());
      self->Perform();
    });
  }

  ServerEvents events_;
  std::vector<tcp::acceptor> acceptors_;  ///< elements are never added or moved: handlers refer to them
  asio::steady_timer timer_;
  asio::steady_timer accept_pause_;
  std::optional<tls::Context> tls_;
  Job job_;
  std::unordered_map<ConnectionId, std::shared_ptr<Connection>> connections_;
  std::optional<TimePoint> armed_for_;
  ConnectionId next_id_ = 1;
  bool stopped_ = false;
  std::vector<tcp::acceptor*> paused_;
  bool warned_of_limit_ = false;
};

Server::Server(asio::io_context& io, const ServerOptions& options, ServerEvents events)
    : impl_(std::make_shared<Impl>(io, options, std::move(events))) {
  impl_->Start();
}

Server::~Server() {
  impl_->Stop();
}

std::uint16_t Server::port() const {
  return impl_->port();
}
const Job& Server::job() const {
  return impl_->job();
}
void Server::WaitAnew() {
  impl_->Handle([](Job& job, TimePoint now) { job.WaitAnew(now); });
}
void Server::TaskFailed(const std::string& task_id, const std::string& how) {
  impl_->Handle([&](Job& job, TimePoint now) { job.TaskFailed(task_id, how, now); });
}
void Server::Expect(int num_workers) {
  impl_->Handle([&](Job& job, TimePoint now) { job.Expect(num_workers, now); });
}
void Server::Stop() {
  impl_->Stop();
}

}  // namespace warren::tracker
