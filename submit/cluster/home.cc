#include "submit/cluster/home.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <deque>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "submit/cluster/script.h"
#include "tracker/host_address.h"
#include "wire/job_token.h"
#include "wire/printable.h"

namespace warren::submit {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxHelloBytes = 1024;
/// How long nothing comes from a process that has ended until it is taken for all.
constexpr std::chrono::milliseconds kDrainPatience{500};
/// How long the beginning of a line waits for its end.
constexpr std::chrono::milliseconds kLinePatience{20};
/// A stranger that says nothing is let go.
constexpr std::chrono::seconds kHelloPatience{20};

/// Connections that have not said who they are; beyond, the oldest goes. A script says it as soon as it has
/// connected.
std::size_t MostStrangers() {
  rlimit files{};
  const bool known = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY;
  return std::clamp<std::size_t>(known ? files.rlim_cur / 4 : 1024, 64, 1024);
}

/// Makes a connection end when its host has been silent for a minute.
void NoticeLoss(tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int option, int value) {
    setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, 20);
  set(TCP_KEEPINTVL, 10);
  set(TCP_KEEPCNT, 4);
  set(TCP_USER_TIMEOUT, 60'000);
}

}  // namespace

/// One of the two of a script.
struct Home::Connection : std::enable_shared_from_this<Connection> {
  Connection(asio::io_context& io, tcp::socket accepted)
      : socket(std::move(accepted)), patience(io), line_timer(io) {}

  tcp::socket socket;
  std::uint64_t number = 0;  ///< among strangers
  asio::steady_timer patience;
  asio::steady_timer line_timer;
  std::string hello;
  std::string line;                ///< the beginning of one whose end has not come
  std::shared_ptr<Caller> caller;  ///< once it has said whose it is
  Stream stream = Stream::kErr;
  bool listening = false;
  bool ended = false;
  std::deque<std::string> unwritten;
};

/// A script and its connections.
struct Home::Caller {
  Caller(std::size_t number, const std::string& job_mark) : index(number), reader(job_mark) {}

  std::size_t index;
  NoteReader reader;
  bool draining = false;  ///< its process has ended, what it wrote may not all be here
  std::unique_ptr<asio::steady_timer> drain_timer;
  std::string call;  ///< tells this script from another of the same index
  std::shared_ptr<Connection> err;
  std::shared_ptr<Connection> out;  ///< of the newest attempt
  bool told_to_end = false;
  int num_outs = 0;        ///< so many have been there
  int num_starts = 0;      ///< of so many processes, each with one, has been told
  std::deque<Note> notes;  ///< to be handed on

  bool OutIsOver() const { return num_outs >= num_starts && (!out || out->ended); }
  bool ErrIsOver() const { return !err || err->ended; }
};

Home::Home(asio::io_context& io, const std::string& job_mark, const std::string& key, const std::string& host,
           std::uint16_t port, std::uint16_t port_end, HomeEvents events)
    : io_(io),
      job_mark_(job_mark),
      key_(key),
      events_(std::move(events)),
      acceptor_(io),
      accept_pause_(io),
      beat_(io) {
  const std::string bind_address = tracker::BindAddressFor(host);
  const asio::ip::address address = bind_address.empty() ? asio::ip::address(asio::ip::address_v4::any())
                                                         : asio::ip::make_address(bind_address);
  boost::system::error_code error;
  for (int candidate = port; candidate <= port_end; ++candidate) {
    error = {};
    const tcp::endpoint endpoint(address, static_cast<std::uint16_t>(candidate));
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(4096, error);
    if (!error) break;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
  }
  if (error) {
    throw std::runtime_error(
        fmt::format("no port from {} to {} is free on {} to listen for the processes: {}", port, port_end,
                    host, error.message()));
  }
  Accept();
  Beat();
}

Home::~Home() {
  // They hold each other.
  for (const auto& [index, caller] : callers_) {
    for (const auto& connection : {caller->err, caller->out}) {
      if (connection) connection->caller.reset();
    }
  }
}

std::uint16_t Home::port() const {
  return acceptor_.local_endpoint().port();
}

void Home::Accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {  // out of descriptors, for one: others may end meanwhile
      DropOldestStranger();
      accept_pause_.expires_after(std::chrono::milliseconds{100});
      return accept_pause_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped) Accept();
      });
    }
    const auto connection = std::make_shared<Connection>(io_, std::move(socket));
    connection->patience.expires_after(kHelloPatience);
    connection->patience.async_wait([connection](const boost::system::error_code& stopped) {
      boost::system::error_code ignored;
      if (!stopped) connection->socket.close(ignored);
    });
    connection->number = ++last_stranger_;
    strangers_.emplace(connection->number, connection);
    if (strangers_.size() > MostStrangers()) DropOldestStranger();
    ReadHello(connection);
    Accept();
  });
}

void Home::DropOldestStranger() {
  if (strangers_.empty()) return;
  boost::system::error_code ignored;
  strangers_.begin()->second->socket.close(ignored);
  strangers_.erase(strangers_.begin());
}

void Home::ReadHello(const std::shared_ptr<Connection>& connection) {
  asio::async_read_until(connection->socket, asio::dynamic_buffer(connection->hello, kMaxHelloBytes), '\n',
                         [this, connection](const boost::system::error_code& error, std::size_t) {
                           connection->patience.cancel();
                           strangers_.erase(connection->number);
                           if (!error) TakeIn(connection);
                         });
}

/// "KEY INDEX out|err CALL HOST", then what it wrote already; "MARK INDEX keyless CALL HOST" of a script that
/// could not read the key.
void Home::TakeIn(const std::shared_ptr<Connection>& connection) {
  const std::size_t end = connection->hello.find('\n');
  std::istringstream words(connection->hello.substr(0, end));
  const std::string rest = connection->hello.substr(end + 1);
  std::string key, stream, call, host;
  std::size_t index = 0;
  words >> key >> index >> stream >> call >> host;
  host = wire::Printable(host);
  if (words && key == job_mark_ && stream == "keyless") return events_.keyless(index, host);
  if (!words || !wire::Same(key, key_) || (stream != "out" && stream != "err")) {
    spdlog::debug("a connection that is none of this job's was closed");
    return;
  }
  boost::system::error_code ignored;
  connection->socket.set_option(tcp::no_delay(true), ignored);
  NoticeLoss(connection->socket);
  std::shared_ptr<Caller>& caller = callers_[index];
  if (caller && caller->call != call) {
    // Another script for the same place: the one before is gone, and its connections will end.
    caller = nullptr;
    events_.left(index);
  }
  if (!caller) {
    caller = std::make_shared<Caller>(index, job_mark_);
    caller->call = call;
  }
  connection->caller = caller;
  connection->stream = stream == "out" ? Stream::kOut : Stream::kErr;
  if (connection->stream == Stream::kOut) {
    ++caller->num_outs;
    caller->out = connection;
  } else {
    caller->err = connection;
  }
  if (!rest.empty()) OnBytes(*connection, rest);
  Read(connection);
  if (connection->stream == Stream::kErr) events_.arrived(index, host);
}

void Home::Read(const std::shared_ptr<Connection>& connection) {
  // A little is taken even then: an end that is told behind it has to be heard.
  const bool paused = paused_ && !connection->caller->told_to_end && connection->line.size() >= kReadBytes;
  if (paused || connection->listening || connection->ended) return;
  connection->listening = true;
  connection->socket.async_wait(
      tcp::socket::wait_read, [this, connection](const boost::system::error_code& failed) {
        connection->listening = false;
        static std::array<char, kReadBytes> buffer;  // one for all: there is one thread
        boost::system::error_code error = failed;
        connection->socket.non_blocking(true, error);
        const std::size_t count = error ? 0 : connection->socket.read_some(asio::buffer(buffer), error);
        if (count > 0) OnBytes(*connection, {buffer.data(), count});
        if (error && error != asio::error::would_block) return OnEnd(connection);
        Read(connection);
      });
}

void Home::OnBytes(Connection& connection, std::string_view bytes) {
  const std::shared_ptr<Caller> caller = connection.caller;
  if (connection.stream == Stream::kOut) {
    HandOn(connection, bytes);
    return Drain(caller);
  }
  caller->reader.Append(
      bytes, [&](std::string_view text) { HandOn(connection, text); },
      [&](const Note& note) {
        if (note.kind == "start") ++caller->num_starts;
        if (note.kind == "start" || note.kind == "ended") caller->draining = note.kind == "ended";
        caller->notes.push_back(note);
      });
  HandNotesOn(*caller);
  Drain(caller);
}

/// A process has ended, and somebody holds its output open: not waited for once nothing has come for a while.
void Home::Drain(const std::shared_ptr<Caller>& caller) {
  if (!caller->draining) return;
  if (!caller->drain_timer) caller->drain_timer = std::make_unique<asio::steady_timer>(io_);
  caller->drain_timer->expires_after(kDrainPatience);
  caller->drain_timer->async_wait([this, caller](const boost::system::error_code& error) {
    if (error || !caller->draining) return;
    if (paused_ && !caller->told_to_end) return Drain(caller);
    caller->draining = false;
    if (caller->err && !caller->err->ended) Write(caller->err, "done\n");
  });
}

/// Lines are handed on whole, as far as possible: where they are cut on the way says nothing. What has no end
/// waits a moment for it.
void Home::HandOn(Connection& connection, std::string_view bytes) {
  // Of one that is to end the end is waited for, even while nobody takes what it writes.
  if (paused_ && connection.caller->told_to_end) return;
  connection.line += bytes;
  if (paused_) return;
  const std::size_t newline = connection.line.rfind('\n');
  const std::size_t whole = newline == std::string::npos ? 0 : newline + 1;
  if (whole > 0) {
    events_.output(connection.caller->index, connection.stream,
                   std::string_view(connection.line).substr(0, whole));
    connection.line.erase(0, whole);
  }
  if (connection.line.size() > kReadBytes) HandRestOn(connection);
  if (connection.line.empty()) return;
  connection.line_timer.expires_after(kLinePatience);
  connection.line_timer.async_wait(
      [this, self = connection.shared_from_this()](const boost::system::error_code& error) {
        if (!error && !paused_) HandRestOn(*self);
      });
}

void Home::HandRestOn(Connection& connection) {
  connection.line_timer.cancel();
  const std::string rest = std::exchange(connection.line, {});
  if (!rest.empty()) events_.output(connection.caller->index, connection.stream, rest);
}

/// The end of a process is told when all that it wrote has come.
void Home::HandNotesOn(Caller& caller) {
  while (!caller.notes.empty()) {
    const bool is_end = caller.notes.front().kind == "exit" || caller.notes.front().kind == "stopped";
    if (is_end && !caller.OutIsOver()) return;
    const Note note = std::move(caller.notes.front());
    caller.notes.pop_front();
    if (is_end && caller.out) HandRestOn(*caller.out);
    if (is_end && caller.err) HandRestOn(*caller.err);
    events_.note(caller.index, note);
  }
}

void Home::OnEnd(const std::shared_ptr<Connection>& connection) {
  if (std::exchange(connection->ended, true)) return;
  boost::system::error_code ignored;
  connection->socket.close(ignored);
  const std::shared_ptr<Caller> caller = connection->caller;
  HandRestOn(*connection);
  if (caller->ErrIsOver()) caller->num_starts = 0;  // nothing is known of others
  HandNotesOn(*caller);
  if (!caller->OutIsOver() || !caller->ErrIsOver()) return;
  caller->draining = false;
  if (caller->drain_timer) caller->drain_timer->cancel();
  caller->reader.Finish([&](std::string_view text) { events_.output(caller->index, Stream::kErr, text); });
  const auto found = callers_.find(caller->index);
  if (found == callers_.end() || found->second != caller) return;
  callers_.erase(found);
  events_.left(caller->index);
}

bool Home::IsHere(std::size_t index) const {
  const auto found = callers_.find(index);
  return found != callers_.end() && !found->second->told_to_end;
}

void Home::Go(std::size_t index, int attempt, std::uint16_t port) {
  const auto found = callers_.find(index);
  if (found != callers_.end() && found->second->err) {
    Write(found->second->err, fmt::format("go {} {}\n", attempt, port));
  }
}

void Home::End(std::size_t index) {
  const auto found = callers_.find(index);
  if (found == callers_.end()) return;
  found->second->told_to_end = true;
  boost::system::error_code ignored;
  // Its last words still come.
  const std::shared_ptr<Caller> caller = found->second;
  if (caller->err) caller->err->socket.shutdown(tcp::socket::shutdown_send, ignored);
  if (caller->err) Read(caller->err);
  if (caller->out) Read(caller->out);
}

void Home::Write(const std::shared_ptr<Connection>& connection, std::string line) {
  connection->unwritten.push_back(std::move(line));
  if (connection->unwritten.size() == 1) WriteNext(connection);
}

void Home::WriteNext(const std::shared_ptr<Connection>& connection) {
  asio::async_write(connection->socket, asio::buffer(connection->unwritten.front()),
                    [this, connection](const boost::system::error_code& error, std::size_t) {
                      connection->unwritten.pop_front();
                      if (error) connection->unwritten.clear();
                      if (!connection->unwritten.empty()) WriteNext(connection);
                    });
}

void Home::PauseOutput() {
  paused_ = true;
}

void Home::ResumeOutput() {
  paused_ = false;
  for (const auto& [index, caller] : callers_) {
    for (const auto& connection : {caller->out, caller->err}) {
      if (!connection) continue;
      HandOn(*connection, {});
      Read(connection);
    }
  }
}

void Home::Beat() {
  beat_.expires_after(kBeatInterval);
  beat_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (const auto& [index, caller] : callers_) {
      if (caller->err && caller->err->unwritten.empty()) Write(caller->err, "\n");
    }
    Beat();
  });
}

}  // namespace warren::submit
