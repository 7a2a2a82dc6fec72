#include "submit/cluster/agent_server.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <boost/asio/write.hpp>
#include <chrono>
#include <deque>
#include <stdexcept>
#include <utility>

#include "posix/shortage.h"
#include "posix/sockets.h"
#include "tracker/host_address.h"

namespace warren::submit {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;

/// The maximum number of unidentified connections: a quarter of the process's descriptor limit, but between
/// 64 and 1024, and at least two for each process, whose agents may all connect at the same moment.
std::size_t MaxPending(std::size_t num_processes) {
  rlimit files{};
  const bool known = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY;
  return std::max(std::clamp<std::size_t>(known ? files.rlim_cur / 4 : 1024, 64, 1024), 2 * num_processes);
}

/// Makes a connection fail when the peer's host has been silent for a minute.
void NoticeLoss(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int option, int value) {
    setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
  };
  set(posix::kKeepIdle, 20);
  set(TCP_KEEPINTVL, 10);
  set(TCP_KEEPCNT, 4);
  posix::SetUserTimeout(socket.native_handle(), 60);
}

}  // namespace

struct AgentServer::Connection {
  explicit Connection(tcp::socket accepted) : socket(std::move(accepted)) {}

  tcp::socket socket;
  bool reading = false;
  std::deque<std::string> unwritten;  ///< buffers to write; the first one is being written
};

AgentServer::AgentServer(asio::io_context& io, const std::string& job_mark, const std::string& key,
                         std::size_t num_processes, const std::string& host, std::uint16_t port,
                         std::uint16_t port_end, std::function<void(const AgentEvent&)> on_event)
    : on_event_(std::move(on_event)),
      acceptor_(io),
      accept_pause_(io),
      sessions_(job_mark, key, MaxPending(num_processes), steady_clock::now()),
      loop_(io, sessions_, [this](const auto& action) { Do(action); }) {
  Listen(host, port, port_end);
  Accept();
  loop_.Run();
}

void AgentServer::Listen(const std::string& host, std::uint16_t port, std::uint16_t port_end) {
  const std::string bind_address = tracker::BindAddressFor(host);
  const asio::ip::address address = bind_address.empty() ? asio::ip::address(asio::ip::address_v4::any())
                                                         : asio::ip::make_address(bind_address);
  error_code error;
  for (int candidate = port; candidate <= port_end; ++candidate) {
    error = {};
    const tcp::endpoint endpoint(address, static_cast<std::uint16_t>(candidate));
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(4096, error);
    if (!error) return;
    error_code ignored;
    acceptor_.close(ignored);
  }
  throw std::runtime_error(fmt::format("no port from {} to {} is free on {} to listen for the processes: {}",
                                       port, port_end, host, error.message()));
}

std::uint16_t AgentServer::port() const {
  return acceptor_.local_endpoint().port();
}

void AgentServer::Accept() {
  acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error && posix::ConcernsOneConnection(error.value())) return Accept();
    if (error) {  // a shortage, e.g. of descriptors, which may pass
      if (!std::exchange(warned_of_shortage_, true)) {
        spdlog::warn("cannot accept a connection from a host: {}; retrying. {}", error.message(),
                     posix::ShortageAdvice(error.value()));
      }
      sessions_.DropOldestPending();
      loop_.Run();
      accept_pause_.expires_after(std::chrono::milliseconds{100});
      return accept_pause_.async_wait([this](const error_code& stopped) {
        if (!stopped) Accept();
      });
    }
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    NoticeLoss(socket);
    const tcp::endpoint peer = socket.remote_endpoint(ignored);
    const std::string address = peer.address().to_string();
    const ConnectionId id = ++last_connection_;
    connections_.emplace(id, std::make_shared<Connection>(std::move(socket)));
    sessions_.Opened(id, address, steady_clock::now());
    loop_.Run();
    Read(id);
    Accept();
  });
}

std::shared_ptr<AgentServer::Connection> AgentServer::Find(ConnectionId id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second;
}

void AgentServer::Read(ConnectionId id) {
  const std::shared_ptr<Connection> connection = Find(id);
  if (!connection || connection->reading || !sessions_.WantsBytes(id)) return;
  connection->reading = true;
  connection->socket.async_wait(tcp::socket::wait_read, [this, id, connection](const error_code& error) {
    connection->reading = false;
    if (Find(id)) OnReadable(id, *connection, error);
  });
}

void AgentServer::OnReadable(ConnectionId id, Connection& connection, error_code error) {
  static std::array<char, kReadBytes> buffer;  // shared by all connections, since there is only one thread
  const std::size_t count = error ? 0 : connection.socket.read_some(asio::buffer(buffer), error);
  if (count > 0) sessions_.Received(id, {buffer.data(), count}, steady_clock::now());
  if (error && error != asio::error::would_block) sessions_.Closed(id);
  loop_.Run();
  Read(id);
}

void AgentServer::Write(ConnectionId id, std::string bytes) {
  const std::shared_ptr<Connection> connection = Find(id);
  if (!connection) return;
  connection->unwritten.push_back(std::move(bytes));
  if (connection->unwritten.size() == 1) WriteNext(connection);
}

void AgentServer::WriteNext(const std::shared_ptr<Connection>& connection) {
  asio::async_write(connection->socket, asio::buffer(connection->unwritten.front()),
                    [this, connection](const error_code& error, std::size_t) {
                      connection->unwritten.pop_front();
                      if (error) connection->unwritten.clear();
                      if (!connection->unwritten.empty()) WriteNext(connection);
                    });
}

void AgentServer::Launch(std::size_t index, int attempt, std::uint16_t port, const std::string& master) {
  sessions_.Launch(index, attempt, port, master);
  loop_.RunSoon();
}

bool AgentServer::AskForStacks(std::size_t index) {
  const bool asked = sessions_.AskForStacks(index);
  loop_.RunSoon();
  return asked;
}

void AgentServer::End(std::size_t index) {
  sessions_.End(index);
  loop_.RunSoon();
}

void AgentServer::ResumeOutput() {
  sessions_.ResumeOutput(steady_clock::now());
  loop_.RunSoon();
}

void AgentServer::Do(const AgentSend& send) {
  Write(send.connection, send.bytes);
}

void AgentServer::Do(const AgentHeartbeat& heartbeat) {
  const std::shared_ptr<Connection> connection = Find(heartbeat.connection);
  if (connection && connection->unwritten.empty()) Write(heartbeat.connection, "\n");
}

void AgentServer::Do(const AgentEndSending& end) {
  error_code ignored;
  if (const auto connection = Find(end.connection)) {
    connection->socket.shutdown(tcp::socket::shutdown_send, ignored);
  }
}

void AgentServer::Do(const AgentRead& read) {
  Read(read.connection);
}

void AgentServer::Do(const AgentClose& close) {
  error_code ignored;
  if (const auto connection = Find(close.connection)) connection->socket.close(ignored);
  connections_.erase(close.connection);
}

void AgentServer::Do(const AgentEvent& event) {
  on_event_(event);
}

}  // namespace warren::submit
