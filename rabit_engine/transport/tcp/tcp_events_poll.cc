// Reports events of the links, and of the connections that become links, with poll, which every system has.
// The poll set is derived from the state of the connections each time: a link known to have unread data is
// not polled for data again.
#include <poll.h>

#include <cerrno>
#include <cstddef>

#include "rabit_engine/base/error.h"
#include "rabit_engine/transport/tcp/tcp_connections.h"

namespace warren {

void TcpTransport::OpenEvents() {}

void TcpTransport::Watch(int /*fd*/, std::uint64_t /*key*/, std::uint32_t /*events*/) {}

void TcpTransport::WatchForRoom(const TcpLink& /*link*/, bool /*watch*/) {}

void TcpTransport::Poll(int timeout_ms) {
  if (!pending_.empty()) DropOldPending();
  std::vector<pollfd> waits;
  std::vector<std::uint64_t> keys;
  const auto wait_for = [&](int fd, Subject subject, std::uint64_t number, int events) {
    waits.push_back({fd, static_cast<short>(events), 0});
    keys.push_back(Key(subject, number));
  };
  if (listener_) wait_for(listener_.fd(), Subject::kListener, 0, POLLIN);
  if (interrupt_) wait_for(interrupt_.fd(), Subject::kInterrupt, 0, POLLIN);
  for (const int peer : linked_) {
    const TcpLink& link = *links_[peer];
    if (link.ended()) continue;
    const int events = (link.may_receive() ? 0 : POLLIN) | (link.may_send() ? 0 : POLLOUT);
    wait_for(link.fd(), Subject::kLink, static_cast<std::uint64_t>(peer), posix::kPeerDone | events);
  }
  for (const auto& [id, pending] : pending_)
    wait_for(pending.stream.fd(), Subject::kPending, id, kStreamEvents);
  for (const Dial& dial : dials_) {
    if (!dial.stream) continue;
    const bool connecting = dial.step == Dial::Step::kConnecting;
    const int events = connecting                            ? POLLOUT
                       : dial.step == Dial::Step::kHandshake ? dial.stream.awaited()
                                                             : POLLIN;
    wait_for(dial.stream.fd(), Subject::kDial, static_cast<std::uint64_t>(dial.peer),
             posix::kPeerDone | events);
  }
  for (const auto& [id, question] : own_questions_) {
    wait_for(question.stream.fd(), Subject::kQuestion, id, POLLOUT);
  }
  const int count = poll(waits.data(), static_cast<nfds_t>(waits.size()), timeout_ms);
  if (count < 0 && errno != EINTR) throw EngineError("poll failed: " + tcp::ErrorText(errno));
  for (std::size_t i = 0; count > 0 && i < waits.size(); ++i) {
    if (waits[i].revents != 0) Take(keys[i], static_cast<unsigned short>(waits[i].revents));
  }
}

}  // namespace warren
