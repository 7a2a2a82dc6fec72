// The part of TcpTransport that accepts connections: links, and the alarms, questions and probes of other
// ranks.
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "posix/shortage.h"
#include "posix/sockets.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/transport/tcp/tcp_connections.h"
#include "rabit_engine/transport/tcp/tcp_transport.h"

namespace warren {
namespace {

// The maximum number of connections that are not links yet. When it is reached, the oldest unanswered one is
// dropped. If all have been answered, there may be as many more as there are ranks.
constexpr std::size_t kMaxPending = 256;

// Whether the peer has begun TLS. Only connections that become links are encrypted. Alarms, questions and
// probes are not, so that they can be sent without an answer from the peer, which may be busy.
bool BeginsTls(int fd) {
  char first = 0;
  return recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && first == tls::kFirstByte;
}

}  // namespace

void TcpTransport::AcceptAll() {
  DropOldPending();
  if (!spare_) spare_ = OpenSpare();
  for (;;) {
    tcp::Socket socket(posix::Accept(listener_.fd(), posix::Blocking::kNo));
    if (!socket) {
      const int error = errno;
      if (posix::ConcernsOneConnection(error)) continue;
      if (!posix::IsLocalShortage(error)) return;
      if (!posix::HasConnection(listener_.fd())) return;
      if (spare_) {
        spare_.Close();
      } else if (!DropUnanswered()) {
        ThrowShortage(fmt::format("rank {} cannot accept a connection from another rank", rank_), "accept",
                      error);
      }
      continue;
    }
    // Only ranks of the job are answered, so there are at most as many answered connections as ranks, unless
    // an attacker replays an overheard hello.
    if (pending_.size() >= kMaxPending && !DropUnanswered() &&
        pending_.size() >= kMaxPending + links_.size()) {
      pending_.erase(pending_.begin());
    }
    const std::uint64_t id = next_pending_++;
    Watch(socket.fd(), Key(Subject::kPending, id), kStreamEvents);
    pending_[id] = {.stream = tcp::Stream(std::move(socket)),
                    .deadline = Clock::now() + options_.connect_timeout};
    Hear(id);
  }
}

/// Closes the oldest unanswered connection. Returns false if all are answered: the peer regards an answered
/// connection as a link and would never connect again.
bool TcpTransport::DropUnanswered() {
  const auto unanswered = std::find_if(pending_.begin(), pending_.end(),
                                       [](const auto& pending) { return pending.second.peer < 0; });
  if (unanswered == pending_.end()) return false;
  pending_.erase(unanswered);
  return true;
}

void TcpTransport::DropOldPending() {
  const Clock::time_point now = Clock::now();
  std::erase_if(pending_, [now](const auto& pending) { return pending.second.deadline < now; });
}

void TcpTransport::Hear(std::uint64_t id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  PendingConnection& pending = found->second;
  int error = 0;
  if (options_.tls && !pending.stream.is_encrypted() && pending.hello.count == 0 &&
      BeginsTls(pending.stream.fd())) {
    pending.stream.Encrypt(*options_.tls, tls::Role::kServer);
  }
  if (pending.peer < 0) {
    const HelloBuffer::State state = pending.hello.Read(pending.stream, error);
    if (state == HelloBuffer::State::kMore) return;
    if (state == HelloBuffer::State::kEnded || !Answer(pending)) {
      pending_.erase(found);
      return;
    }
  }
  const ProofBuffer::State state = pending.proof.Read(pending.stream, error);
  if (state == ProofBuffer::State::kMore) return;
  PendingConnection proved = std::move(pending);
  pending_.erase(found);
  const std::string_view proof(reinterpret_cast<const char*>(proved.proof.bytes.data()),
                               proved.proof.bytes.size());
  if (state == ProofBuffer::State::kEnded || links_[proved.peer] ||
      !wire::Same(proof, wire::BytesOf(proved.expected))) {
    return;
  }
  AddLink(proved.peer, std::move(proved.stream));
}

/// Handles the first message of a connection, once it is complete. Returns true if the peer requested a link
/// and was answered.
bool TcpTransport::Answer(PendingConnection& pending) {
  const auto hello = tcp::ReadHello(pending.hello.bytes, key_, rank_, world_size());
  if (!hello) return false;
  switch (hello->kind) {
    case tcp::HelloKind::kAlarm:
      if (!alarm_) alarm_ = hello;
      return false;
    case tcp::HelloKind::kQuestion:
      questions_[hello->from] = hello->call;
      return false;
    case tcp::HelloKind::kProbe:
      probes_[hello->probe.origin] = hello->probe;
      return false;
    case tcp::HelloKind::kDoYouWait:
      those_who_ask_.insert(hello->from);
      return false;
    case tcp::HelloKind::kIWait:
      waiting_.insert(hello->from);
      return false;
    case tcp::HelloKind::kLink:
      break;
  }
  if (hello->from > rank_ || links_[hello->from]) return false;
  if (options_.tls && !pending.stream.is_encrypted()) return false;
  tcp::PrepareLink(pending.stream.fd(), options_.no_delay, options_.host_timeout);
  const tcp::Hello answer = tcp::Proved(MakeHello(tcp::HelloKind::kLink, hello->from), key_, hello->nonce);
  if (!SendWhole(pending.stream, answer)) return false;
  pending.peer = hello->from;
  pending.deadline = kNoDeadline;  // either the proof arrives or the connection ends
  pending.expected = tcp::LinkProof(key_, *hello, answer);
  return true;
}

}  // namespace warren
