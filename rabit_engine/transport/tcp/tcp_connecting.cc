// The part of TcpTransport that makes links to other ranks.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/transport/late_peer.h"
#include "rabit_engine/transport/tcp/tcp_connections.h"
#include "rabit_engine/transport/tcp/tcp_transport.h"

namespace warren {
namespace {

using std::chrono::milliseconds;

// The time limit for each address in the first round if a peer has several: some may be unreachable, such as
// the address of a container bridge.
constexpr milliseconds kFirstRoundLimit{3000};
// The first pause before the addresses of a peer are tried again; doubled each time, up to kMaxRetryPause.
constexpr milliseconds kFirstRetryPause{50};
constexpr milliseconds kMaxRetryPause{1000};

}  // namespace

tcp::Hello TcpTransport::MakeHello(tcp::HelloKind kind, int to) const {
  tcp::Hello hello;
  hello.kind = kind;
  hello.from = rank_;
  hello.to = to;
  return hello;
}

void TcpTransport::ConnectWithin(std::span<const int> named, milliseconds limit) {
  const auto linked = [&](int peer) { return links_[peer] != nullptr; };
  if (std::all_of(named.begin(), named.end(), linked)) return;
  const std::set<int> peers(named.begin(), named.end());
  const Clock::time_point begin = Clock::now();
  const Clock::time_point deadline = limit.count() == 0 ? kNoDeadline : begin + limit;
  awaited_.assign(peers.begin(), peers.end());
  dials_.clear();
  for (const int peer : peers) {
    if (peer < rank_ || linked(peer)) continue;
    dials_.emplace_back().peer = peer;
  }
  for (Dial& dial : dials_) DialNext(dial);
  while (!std::all_of(peers.begin(), peers.end(), linked)) {
    ThrowIfLost({});
    Clock::time_point next = deadline;
    for (const Dial& dial : dials_) {
      if (!linked(dial.peer)) next = std::min(next, dial.deadline);
    }
    Poll(MillisecondsToWait(next));
    ThrowIfHostIsSilent();
    const Clock::time_point now = Clock::now();
    TakeEvents();
    std::vector<Interest> awaited;
    for (const int peer : peers) {
      if (!linked(peer)) awaited.push_back({peer, false, true});
    }
    if (wait_observer_ != nullptr) {
      if (!awaited.empty()) wait_observer_->OnWait(awaited, begin, now);
      ThrowIfLost(awaited);
    }
    for (Dial& dial : dials_) {
      if (linked(dial.peer) || now < dial.deadline) continue;
      if (dial.step == Dial::Step::kPause) {
        DialNext(dial);
      } else {
        TryNextAddress(dial, ETIMEDOUT, tcp::ErrorText(ETIMEDOUT));
      }
    }
    if (now >= deadline && !std::all_of(peers.begin(), peers.end(), linked)) {
      const int late = WhoIsLate(awaited, deadline);
      if (late < 0) continue;
      dials_.clear();
      throw TimedOut(
          fmt::format("rank {} has waited {} s for a link with {}, which has not come to the same call",
                      rank_, std::chrono::duration<double>(limit).count(), PeerName(late)),
          late);
    }
  }
  awaited_.clear();
  dials_.clear();
}

// Connects to the next address of this dial. After the last address, begins a pause, or throws if it was the
// last round.
void TcpTransport::DialNext(Dial& dial) {
  const std::vector<std::string>& addresses = addresses_[dial.peer];
  if (dial.next_address == 0) dial.failures.Clear();
  while (dial.next_address < addresses.size()) {
    const auto address = tcp::Address::Parse(addresses[dial.next_address++]);
    int error = EINVAL;
    dial.address = address.value_or(tcp::Address());
    if (address) dial.stream = tcp::Stream(tcp::StartConnect(*address, error));
    if (dial.stream) {
      const bool hurry = dial.round == 0 && addresses.size() > 1;
      dial.step = Dial::Step::kConnecting;
      dial.deadline = Clock::now() + (hurry ? std::min(kFirstRoundLimit, options_.connect_timeout)
                                            : options_.connect_timeout);
      Watch(dial.stream.fd(), Key(Subject::kDial, static_cast<std::uint64_t>(dial.peer)),
            kStreamEvents | POLLOUT);
      return;
    }
    dial.failures.Add(dial.address, error, tcp::ErrorText(error));
  }
  ++dial.round;
  if (addresses.empty() || dial.round >= std::max(1, options_.connect_retry)) ThrowUnreachable(dial);
  dial.next_address = 0;
  dial.step = Dial::Step::kPause;
  dial.deadline =
      Clock::now() + std::min(kMaxRetryPause, kFirstRetryPause * (1 << std::min(dial.round - 1, 5)));
}

/// Called after the last round. Throws LostPeer for the peer, or LocalShortage if this host has kept this
/// rank from connecting.
void TcpTransport::ThrowUnreachable(const Dial& dial) {
  std::vector<std::string> own_hosts;
  for (const std::string& text : addresses_[rank_]) {
    if (const auto address = tcp::Address::Parse(text)) own_hosts.push_back(address->host());
  }
  if (const int shortage = dial.failures.OwnShortage(own_hosts); shortage != 0) {
    ThrowShortage(fmt::format("rank {} cannot link with {}, tried {} times ({})", rank_, PeerName(dial.peer),
                              dial.round, dial.failures.Text()),
                  "socket or connect", shortage);
  }
  ThrowLost(dial.peer, dial.failures.empty()
                           ? std::string("there is no address to connect to")
                           : fmt::format("no connection could be made in {} rounds over its addresses ({})",
                                         dial.round, dial.failures.Text()));
}

/// `error` is 0 if the connection was made but did not lead to the peer.
void TcpTransport::TryNextAddress(Dial& dial, int error, const std::string& why) {
  dial.failures.Add(dial.address, error, why);
  dial.stream.Close();
  DialNext(dial);
}

void TcpTransport::ContinueDial(int peer) {
  const auto dial = std::ranges::find(dials_, peer, &Dial::peer);
  if (dial == dials_.end() || !dial->stream) return;
  if (dial->step == Dial::Step::kConnecting) {
    pollfd writable{dial->stream.fd(), POLLOUT, 0};
    if (poll(&writable, 1, 0) == 0) return;
    const int error = tcp::ConnectError(dial->stream.fd());
    if (error != 0) return TryNextAddress(*dial, error, tcp::ErrorText(error));
    tcp::PrepareLink(dial->stream.fd(), options_.no_delay, options_.host_timeout);
    if (options_.tls) dial->stream.Encrypt(*options_.tls, tls::Role::kClient);
    dial->step = Dial::Step::kHandshake;
    dial->deadline = kNoDeadline;  // Connect has one deadline for all links
  }
  if (dial->step == Dial::Step::kHandshake) {
    const int error = dial->stream.Handshake();
    if (error == EAGAIN) return;
    if (error != 0) return TryNextAddress(*dial, error, dial->stream.TextOf(error));
    dial->hello = tcp::Proved(MakeHello(tcp::HelloKind::kLink, peer), key_);
    if (!SendWhole(dial->stream, dial->hello)) {
      return TryNextAddress(*dial, 0, "the connection broke at once");
    }
    dial->step = Dial::Step::kAnswer;
    dial->answer = {};
  }
  ReadAnswer(*dial);
}

void TcpTransport::ReadAnswer(Dial& dial) {
  int error = 0;
  const HelloBuffer::State state = dial.answer.Read(dial.stream, error);
  if (state == HelloBuffer::State::kMore) return;
  if (state == HelloBuffer::State::kEnded) {
    return TryNextAddress(
        dial, error,
        error == 0 ? "it closed the connection during the handshake" : dial.stream.TextOf(error));
  }
  const auto answer = tcp::ReadHello(dial.answer.bytes, key_, rank_, world_size(), dial.hello.nonce);
  if (!answer || answer->kind != tcp::HelloKind::kLink || answer->from != dial.peer) {
    return TryNextAddress(dial, 0, "another process answered");
  }
  if (!SendWhole(dial.stream, tcp::LinkProof(key_, dial.hello, *answer))) {
    return TryNextAddress(dial, 0, "the connection broke during the handshake");
  }
  AddLink(dial.peer, std::move(dial.stream));
}

}  // namespace warren
