#include "rabit_engine/transport/tcp/tcp_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "posix/shortage.h"
#include "posix/sockets.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/transport/tcp/connection_state.h"

namespace warren {
namespace {

// The maximum number of bytes per system call: few enough that sending and receiving alternate while the data
// is in the cache, yet enough that the cost of the call does not matter.
constexpr std::size_t kMaxCallBytes = std::size_t{1} << 20;
// Reads of at least this size go directly to the destination, not through stash_.
constexpr std::size_t kDirectBytes = 2048;
// A host counts as gone if several retransmissions or probes in a row have gone unanswered for about the
// whole timeout. The number alone is not enough: if this host's cable is unplugged, the kernel retries every
// half second. Nor is the time alone: on a bad line, each check may happen to find a packet that is being
// retransmitted. (TCP_USER_TIMEOUT would be simpler, but it also ends connections to a process that computes
// and does not read.)
//
// The kernel first retransmits after about 200 ms, and doubles the interval each time. The required number is
// the number of retransmissions that fit into the timeout, at least 2 and at most 7.
constexpr double kFirstRetransmission_s = 0.2;
constexpr int kMostUnanswered = 7;
int MaxUnanswered(std::chrono::seconds timeout) {
  const double doublings = std::log2(static_cast<double>(timeout.count()) / kFirstRetransmission_s);
  return std::clamp(static_cast<int>(doublings), 2, kMostUnanswered);
}

// The number of frames between two system calls that ask the kernel for the progress of a link.
constexpr unsigned kFramesPerLook = 16;

}  // namespace

TcpLink::TcpLink(Owner& owner, int peer, tcp::Stream stream, Packing packing)
    : owner_(owner),
      peer_(peer),
      stream_(std::move(stream)),
      address_(tcp::Address::Remote(stream_.fd()).ToString()),
      packing_(packing, tcp::StaysHere(stream_.fd())) {}

double TcpLink::MaxPackedShare(bool begins_message) {
  if (!packing_.needs_progress()) return packing_.max_share();
  if (begins_message) ++messages_;
  if (++frames_ % kFramesPerLook == 0)
    packing_.Observe(tcp::ProgressOf(stream_.fd()), std::exchange(messages_, 0));
  return packing_.max_share();
}

std::size_t TcpLink::TrySend(const void* data, std::size_t bytes) {
  return TrySendWithHead(nullptr, 0, data, bytes);
}

std::size_t TcpLink::TrySendWithHead(const void* head, std::size_t head_bytes, const void* data,
                                     std::size_t bytes) {
  bytes = std::min(bytes, kMaxCallBytes);
  const std::size_t wanted = head_bytes + bytes;
  if (wanted == 0) return 0;
  for (;;) {
    const ssize_t sent = stream_.Send(head, head_bytes, data, bytes);
    if (sent >= 0) {
      bytes_sent_ += static_cast<std::size_t>(sent);
      if (static_cast<std::size_t>(sent) < wanted) NoteFull();
      return static_cast<std::size_t>(sent);
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      NoteFull();
      return 0;
    }
    if (errno != EINTR) return FailedSend(errno);
  }
}

/// Throws LocalShortage if this host lacked a resource for the call. Errors about addresses do not count: on
/// an existing connection they come from the network.
void TcpLink::ThrowIfShort(const char* call, int error) const {
  if (posix::ConcernsAddress(error)) return;
  ThrowIfShortage(fmt::format("no data can be exchanged with rank {} at {}", peer_, address_), call, error);
}

void TcpLink::NoteFull() {
  may_send_ = false;
  if (!watched_for_room_) owner_.WatchForRoom(*this, watched_for_room_ = true);
}

// Throws LostPeer if no received data is left. Otherwise returns 0, so that the caller reads that data first:
// it may explain why the peer ended, for example because it called another collective. If the data is never
// read, the transport's Wait throws.
std::size_t TcpLink::FailedSend(int error) {
  ThrowIfShort("send", error);
  if (error_ == 0) error_ = error;
  ended_ = true;
  may_send_ = false;
  may_receive_ = true;
  int unread = 0;
  const bool something = stash_begin_ < stash_end_ || stream_.has_unread() ||
                         (ioctl(stream_.fd(), FIONREAD, &unread) == 0 && unread > 0);
  if (!something) owner_.ThrowLost(peer_, DescribeEnd());
  owner_.NoteEnd();
  return 0;
}

std::size_t TcpLink::TryReceive(void* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  awaits_little_ = bytes < kDirectBytes;
  if (stash_begin_ == stash_end_ && !awaits_little_) {
    const std::size_t count = Receive(data, std::min(bytes, kMaxCallBytes));
    bytes_received_ += count;
    return count;
  }
  ReadAhead();
  const std::size_t count = std::min(bytes, stash_end_ - stash_begin_);
  std::memcpy(data, stash_.data() + stash_begin_, count);
  stash_begin_ += count;
  bytes_received_ += count;
  return count;
}

void TcpLink::ReadAhead() {
  if (stash_begin_ < stash_end_) return;
  stash_begin_ = 0;
  stash_end_ = 0;
  stash_end_ = Receive(stash_.data(), stash_.size());
}

std::size_t TcpLink::Receive(void* data, std::size_t bytes) {
  for (;;) {
    const ssize_t count = stream_.Receive(data, bytes);
    if (count > 0) {
      // Fewer bytes than asked for mean that the socket is empty; an event reports later data.
      may_receive_ = ended_ || static_cast<std::size_t>(count) == bytes;
      return static_cast<std::size_t>(count);
    }
    if (count == 0) {
      ended_ = true;
      owner_.ThrowLost(peer_, DescribeEnd());
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      may_receive_ = false;
      return 0;
    }
    if (errno == EINTR) continue;
    ThrowIfShort("recv", errno);
    ended_ = true;
    if (error_ == 0) error_ = errno;
    owner_.ThrowLost(peer_, DescribeEnd());
  }
}

void TcpLink::Note(std::uint32_t events) {
  if ((events & POLLOUT) != 0) {
    // If the link already had space, the event is redundant and is turned off. A peer that reads data as it
    // arrives would cause many such events, which slow down small messages.
    if (may_send_ && watched_for_room_) owner_.WatchForRoom(*this, watched_for_room_ = false);
    may_send_ = true;
  }
  if ((events & POLLIN) != 0) may_receive_ = true;
  if ((events & (static_cast<unsigned>(posix::kPeerDone) | POLLHUP | POLLERR)) != 0) {
    ended_ = true;
    may_receive_ = true;
    may_send_ = true;
  }
}

std::string TcpLink::DescribeEnd() const {
  const int error = error_ != 0 ? error_ : tcp::ConnectError(stream_.fd());
  if (error == 0 || error == EPIPE) return "it closed the connection: its process has ended";
  if (error == ETIMEDOUT || error == EHOSTUNREACH) {
    return fmt::format("its host does not answer: {}", tcp::ErrorText(error));
  }
  return fmt::format("the connection broke: {}", stream_.TextOf(error));
}

bool TcpLink::HostIsSilent(Clock::time_point now, std::chrono::seconds timeout) {
  const int unanswered = tcp::Unanswered(stream_.fd());
  if (unanswered == 0) silent_since_ = kNoDeadline;
  if (unanswered > 0 && silent_since_ == kNoDeadline) silent_since_ = now;
  // `silent_since_` is the time of the first check that found unanswered packets. The silence began earlier,
  // so less than the whole timeout is required.
  return unanswered >= MaxUnanswered(timeout) && now - silent_since_ >= timeout * 5 / 6;
}

bool TcpLink::IsFull() const {
  return tcp::IsFull(stream_.fd());
}

void TcpLink::CloseSending() {
  shutdown(stream_.fd(), SHUT_WR);
}

}  // namespace warren
