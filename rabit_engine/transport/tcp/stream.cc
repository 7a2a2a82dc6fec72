#include "rabit_engine/transport/tcp/stream.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace warren::tcp {

Stream& Stream::operator=(Stream&& other) noexcept {
  session_ = std::move(other.session_);
  socket_ = std::move(other.socket_);
  return *this;
}

void Stream::Close() {
  session_.reset();
  socket_.Close();
}

void Stream::Encrypt(const tls::Context& context, tls::Role role) {
  session_ = std::make_unique<tls::Session>(context, role, socket_.fd());
}

int Stream::Handshake() {
  if (!session_) return 0;
  switch (session_->Handshake()) {
    case tls::Session::Step::kDone:
      return 0;
    case tls::Session::Step::kFailed:
      return errno;
    default:
      return EAGAIN;
  }
}

short Stream::awaited() const {
  return session_ && session_->wants_to_write() ? POLLOUT : POLLIN;
}

int Stream::HandshakeUntil(std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const int error = Handshake();
    if (error != EAGAIN) return error;
    if (!WaitFor(fd(), awaited(), deadline)) return ETIMEDOUT;
  }
}

ssize_t Stream::Send(const void* head, std::size_t head_bytes, const void* data, std::size_t bytes) {
  if (session_) return session_->Send(head, head_bytes, data, bytes);
  if (head_bytes == 0) return send(fd(), data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  iovec pieces[2] = {{const_cast<void*>(head), head_bytes}, {const_cast<void*>(data), bytes}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  return sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int Stream::SendUntil(std::string_view bytes, std::chrono::steady_clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = Send(bytes.data(), bytes.size());
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!WaitFor(fd(), POLLOUT, deadline)) return EAGAIN;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

ssize_t Stream::Receive(void* data, std::size_t bytes) {
  if (session_) return session_->Receive(data, bytes);
  return recv(fd(), data, bytes, MSG_DONTWAIT);
}

std::string Stream::TextOf(int error) const {
  if (error == EPROTO && session_ && !session_->error().empty())
    return fmt::format("TLS: {}", session_->error());
  return ErrorText(error);
}

}  // namespace warren::tcp
