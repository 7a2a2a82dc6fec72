#include "rabit_engine/bootstrap/slurm_stream.h"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <utility>

#include "posix/shortage.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"

namespace warren {
namespace {

constexpr const char* kNothingCame = "nothing came before the deadline";

}  // namespace

DeadlineStream::DeadlineStream(tcp::Stream stream) : stream_(std::move(stream)) {
  tcp::PrepareLink(stream_.fd(), /*no_delay=*/true);
}

DeadlineStream DeadlineStream::Connect(const std::string& host, int port, Clock::time_point deadline,
                                       const std::optional<tls::Context>& tls) {
  int error = 0;
  std::string seen;
  tcp::ConnectFailures failures;
  for (const tcp::Address& address : tcp::Resolve(host, port)) {
    tcp::Stream stream(tcp::ConnectUntil(address, deadline, error));
    if (stream && tls) {
      stream.Encrypt(*tls, tls::Role::kClient);
      error = stream.HandshakeUntil(deadline);
    }
    if (stream && error == 0) return DeadlineStream(std::move(stream));
    seen = stream.TextOf(error);
    failures.Add(address, error, seen);
  }
  const std::string doing = fmt::format("this rank cannot connect to rank 0 ({})", failures.Text());
  ThrowIfShortage(doing, "socket or connect", failures.OwnShortage());
  if (error == ETIMEDOUT) throw TimedOut(seen);
  throw EngineError(seen);
}

void DeadlineStream::Send(std::string_view bytes, Clock::time_point deadline) {
  const int error = stream_.SendUntil(bytes, deadline);
  if (error == 0) return;
  if (error == EAGAIN) throw TimedOut(kNothingCame);
  if (!posix::ConcernsAddress(error))
    ThrowIfShortage("no data can be sent while the ranks meet", "send", error);
  throw EngineError(stream_.TextOf(error));
}

std::string DeadlineStream::ReceiveSome(std::size_t limit) {
  std::string bytes(limit, '\0');
  ssize_t received = 0;
  do {
    received = stream_.Receive(bytes.data(), bytes.size());
  } while (received < 0 && errno == EINTR);
  if (received == 0) throw EngineError("the other side closed the connection");
  if (received < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK) throw EngineError(stream_.TextOf(errno));
    received = 0;
  }
  bytes.resize(static_cast<std::size_t>(received));
  return bytes;
}

std::string DeadlineStream::Receive(std::size_t bytes, Clock::time_point deadline) {
  std::string all;
  while (all.size() < bytes) {
    const std::string piece = ReceiveSome(bytes - all.size());
    if (piece.empty() && !tcp::WaitFor(stream_.fd(), POLLIN, deadline)) throw TimedOut(kNothingCame);
    all += piece;
  }
  return all;
}

}  // namespace warren
