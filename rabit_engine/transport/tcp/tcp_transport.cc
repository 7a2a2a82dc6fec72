#include "rabit_engine/transport/tcp/tcp_transport.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/transport/late_peer.h"
#include "rabit_engine/transport/tcp/tcp_connections.h"

namespace warren {
namespace {

using std::chrono::milliseconds;

// The time to wait for an explanation after a link ends: if the peer did not die but gave up, its alarm has
// already arrived or is about to.
constexpr milliseconds kExplanationGrace{50};
// The longest interval at which a waiting rank asks the kernel about hosts that do not answer.
constexpr milliseconds kSilenceCheck{5000};
// Up to this many awaited links are read directly; for more of them one epoll call is quicker.
constexpr std::size_t kMostReadAhead = 2;
constexpr unsigned kLooksPerPoll = 8;

}  // namespace

TcpTransport::TcpTransport(int rank, int world_size, int listener,
                           std::vector<std::vector<std::string>> addresses, const tcp::LinkKey& key,
                           const TcpOptions& options)
    : rank_(rank),
      options_(options),
      listener_(listener),
      addresses_(std::move(addresses)),
      key_(key),
      links_(static_cast<std::size_t>(world_size)) {
  OpenEvents();
  addresses_.resize(links_.size());
  if (listener_) {
    spare_ = OpenSpare();
    tcp::PrepareLink(listener_.fd(), options_.no_delay, options_.host_timeout);
    Watch(listener_.fd(), Key(Subject::kListener, 0), POLLIN);
  }
}

TcpTransport::~TcpTransport() = default;

void TcpTransport::Adopt(int peer, tcp::Stream stream) {
  if (peer < 0 || peer >= world_size() || peer == rank_ || links_[peer]) {
    throw Misuse(fmt::format("rank {} cannot take a link to rank {} of {}", rank_, peer, world_size()));
  }
  tcp::PrepareLink(stream.fd(), options_.no_delay, options_.host_timeout);
  tcp::SetUserTimeout(stream.fd(), std::chrono::seconds(0));  // the bootstrap may have set one
  AddLink(peer, std::move(stream));
}

void TcpTransport::AddLink(int peer, tcp::Stream stream) {
  Watch(stream.fd(), Key(Subject::kLink, static_cast<std::uint64_t>(peer)), kStreamEvents);
  links_[peer] = std::make_unique<TcpLink>(static_cast<TcpLink::Owner&>(*this), peer, std::move(stream),
                                           options_.packing);
  linked_.push_back(peer);
}

Link& TcpTransport::To(int peer) {
  if (peer < 0 || peer >= world_size() || !links_[peer]) {
    throw Misuse(fmt::format("rank {} has no link to rank {}: Connect was not called for it", rank_, peer));
  }
  return *links_[peer];
}

std::string TcpTransport::PeerName(int peer) const {
  if (links_[peer]) return fmt::format("rank {} at {}", peer, links_[peer]->address());
  if (!addresses_[peer].empty()) return fmt::format("rank {} at {}", peer, addresses_[peer].front());
  return fmt::format("rank {}", peer);
}

// --- waiting -----------------------------------------------------------------------------------------------

bool TcpTransport::AnyReady(std::span<const Interest> interests) const {
  return std::any_of(interests.begin(), interests.end(), [&](const Interest& interest) {
    const TcpLink* link = links_[interest.peer].get();
    return link != nullptr &&
           ((interest.to_send && link->may_send()) || (interest.to_receive && link->may_receive()));
  });
}

void TcpTransport::AllowInterrupts() {
  interrupt_ = Event::Make();
  if (!interrupt_) ThrowShortage(fmt::format("rank {} cannot create an event", rank_), "eventfd", errno);
  Watch(interrupt_.fd(), Key(Subject::kInterrupt, 0), POLLIN);
}

void TcpTransport::Interrupt() {
  is_interrupted_ = true;
  interrupt_.Ring();
}

// Losses are reported only if no awaited data is left to read, because the bytes that a peer sent before it
// gave up may explain why.
void TcpTransport::Wait(std::span<const Interest> interests, Clock::time_point deadline) {
  if (AnyReady(interests) || is_interrupted_) return;
  const Clock::time_point begin = Clock::now();
  WaitInPhases(
      options_.may_spin ? PeerCore::kOther : PeerCore::kCrowded, wait_policy_,
      [&] { return Look(interests) || is_interrupted_; },
      [&] {
        ThrowIfLost(interests);
        Poll(MillisecondsToWait(deadline));
        const Clock::time_point now = Clock::now();
        TakeEvents();
        if (AnyReady(interests) || is_interrupted_) return;
        ThrowIfHostIsSilent();
        if (wait_observer_ != nullptr) wait_observer_->OnWait(interests, begin, now);
        if (now < deadline) return;
        const int late = WhoIsLate(interests, deadline);
        if (late >= 0) ThrowLate(rank_, late, PeerName(late), now - begin);
      });
}

int TcpTransport::WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline) {
  return wait_observer_ != nullptr ? wait_observer_->WhoIsLate(awaited, deadline) : FirstOf(awaited, rank_);
}

// Reading directly takes one system call if a message has arrived; epoll would take another one to announce
// it. One in kLooksPerPoll calls polls anyway, because epoll also covers new connections and links that are
// not awaited.
bool TcpTransport::Look(std::span<const Interest> interests) {
  const auto is_read_ahead = [&](const Interest& interest) {
    const TcpLink* link = links_[interest.peer].get();
    return link != nullptr && !interest.to_send && link->awaits_little();
  };
  if (interests.size() > kMostReadAhead || ++looks_ % kLooksPerPoll == 0 ||
      !std::all_of(interests.begin(), interests.end(), is_read_ahead)) {
    Poll(0);
  } else {
    for (const Interest& interest : interests) links_[interest.peer]->ReadAhead();
  }
  return AnyReady(interests);
}

void TcpTransport::ThrowIfHostIsSilent() {
  const Clock::time_point now = Clock::now();
  if (now < next_silence_check_) return;
  next_silence_check_ =
      now + std::min<Clock::duration>(kSilenceCheck, Clock::duration(options_.host_timeout) / 6);
  for (const int peer : linked_) {
    if (!links_[peer]->HostIsSilent(now, options_.host_timeout)) continue;
    ThrowLost(peer, fmt::format("its host has not answered for {} s (WARREN_HOST_TIMEOUT)",
                                options_.host_timeout.count()));
  }
}

void TcpTransport::ThrowIfLost(std::span<const Interest> interests) {
  if (alarm_) ThrowLost(alarm_->from, "");
  const auto awaited = [&](int peer) {
    return std::ranges::find(interests, peer, &Interest::peer) != interests.end();
  };
  // Only peers without a link are checked here: the loss of a linked peer shows on its link.
  for (const int peer : absent_) {
    if (!links_[peer] && awaited(peer)) {
      ThrowLost(peer,
                "it no longer accepts links: it has left this communicator, or given up after an error");
    }
  }
  if (!any_ended_) return;
  for (const int peer : linked_) {
    const TcpLink& link = *links_[peer];
    if (link.ended() && (!peers_may_leave_ || awaited(peer))) ThrowLost(peer, link.DescribeEnd());
  }
}

void TcpTransport::AwaitAlarm() {
  const Clock::time_point end = Clock::now() + kExplanationGrace;
  while (!alarm_ && Clock::now() < end) {
    Poll(tcp::MillisecondsUntil(end, static_cast<int>(kExplanationGrace.count())));
  }
}

void TcpTransport::ThrowIfTold() {
  AwaitAlarm();
  if (alarm_) ThrowLost(alarm_->from, "");
}

void TcpTransport::ThrowLost(int peer, const std::string& seen) {
  AwaitAlarm();
  const int shortage = alarm_ ? alarm_->shortage : 0;
  const std::string gave_up =
      shortage != 0 ? fmt::format("gave up {}", DescribeShortage(shortage)) : "gave up after an error";
  if (!alarm_ || alarm_->lost == peer) {
    const bool itself = alarm_ && (alarm_->from == peer || shortage != 0);
    throw LostPeer(peer,
                   fmt::format("rank {} lost {}: {}. {}", rank_, PeerName(peer),
                               itself         ? fmt::format("it {}", gave_up)
                               : seen.empty() ? fmt::format("rank {} reported it", alarm_->from)
                                              : seen,
                               "Look at what it printed last."),
                   shortage);
  }
  if (alarm_->lost == rank_) {
    throw LostPeer(
        alarm_->from,
        fmt::format(
            "rank {} lost {}: it gave up because it lost the connection to this rank. Look at what it printed last.",
            rank_, PeerName(alarm_->from)));
  }
  throw LostPeer(alarm_->lost,
                 fmt::format("rank {} gives up because {} is lost: {}. Look at what rank {} printed last.",
                             rank_, PeerName(alarm_->lost),
                             alarm_->from == alarm_->lost || shortage != 0
                                 ? fmt::format("it {}", gave_up)
                                 : fmt::format("{} noticed it", PeerName(alarm_->from)),
                             alarm_->lost),
                 shortage);
}

// --- events ------------------------------------------------------------------------------------------------

void TcpTransport::Take(std::uint64_t key, std::uint32_t events) {
  const std::uint64_t number = NumberOf(key);
  switch (SubjectOf(key)) {
    case Subject::kLink:
      links_[number]->Note(events);
      any_ended_ = any_ended_ || links_[number]->ended();
      break;
    case Subject::kListener:
      AcceptAll();
      break;
    case Subject::kPending:
      Hear(number);
      break;
    case Subject::kDial:
      ContinueDial(static_cast<int>(number));
      break;
    case Subject::kQuestion:
      SendQuestion(number);
      break;
    case Subject::kInterrupt:
      interrupt_.Drain();
      break;
  }
}

}  // namespace warren
