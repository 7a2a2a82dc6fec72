#include "rabit_engine/bootstrap/slurm_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "rabit_engine/core/error.h"

namespace warren {

DeadlineStream::DeadlineStream(tcp::Socket socket) : socket_(std::move(socket)) {
  tcp::PrepareLink(socket_.fd(), /*no_delay=*/true);
}

DeadlineStream DeadlineStream::Connect(const std::string& host, int port, Clock::time_point deadline) {
  int error = 0;
  for (const tcp::Address& address : tcp::Resolve(host, port)) {
    if (tcp::Socket socket = tcp::ConnectUntil(address, deadline, error))
      return DeadlineStream(std::move(socket));
  }
  if (error == ETIMEDOUT) throw TimedOut(tcp::ErrorText(error));
  throw EngineError(tcp::ErrorText(error));
}

void DeadlineStream::WaitFor(short events, Clock::time_point deadline) const {
  if (!tcp::WaitFor(socket_.fd(), events, deadline)) throw TimedOut("nothing came before the deadline");
}

void DeadlineStream::Send(std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      WaitFor(POLLOUT, deadline);
    } else if (errno != EINTR) {
      throw EngineError(tcp::ErrorText(errno));
    }
  }
}

std::string DeadlineStream::ReceiveSome(std::size_t limit) {
  std::string bytes(limit, '\0');
  ssize_t received = 0;
  do {
    received = recv(socket_.fd(), bytes.data(), bytes.size(), 0);
  } while (received < 0 && errno == EINTR);
  if (received == 0) throw EngineError("the other side closed the connection");
  if (received < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK) throw EngineError(tcp::ErrorText(errno));
    received = 0;
  }
  bytes.resize(static_cast<std::size_t>(received));
  return bytes;
}

std::string DeadlineStream::Receive(std::size_t bytes, Clock::time_point deadline) {
  std::string all;
  while (all.size() < bytes) {
    const std::string piece = ReceiveSome(bytes - all.size());
    if (piece.empty()) WaitFor(POLLIN, deadline);
    all += piece;
  }
  return all;
}

}  // namespace warren
