#include "rabit_engine/transport/tcp/tcp_transport.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "posix/shortage.h"
#include "posix/sockets.h"
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
// The interval at which a waiting rank checks on the others.
constexpr milliseconds kWakeUp{200};
// The longest interval at which a waiting rank asks the kernel about hosts that do not answer.
constexpr milliseconds kSilenceCheck{5000};
// The time limit for sending all alarms when this rank gives up.
constexpr milliseconds kAlarmLimit{1000};
// The maximum number of a peer's addresses that are tried for an alarm. A peer rarely has more.
constexpr std::size_t kAlarmAddresses = 4;
// The time limit for each address in the first round if a peer has several: some may be unreachable, such as
// the address of a container bridge.
constexpr milliseconds kFirstRoundLimit{3000};
// Up to this many awaited links are read directly; for more of them one epoll call is quicker.
constexpr std::size_t kMostReadAhead = 2;
constexpr unsigned kLooksPerPoll = 8;
// The first pause before the addresses of a peer are tried again; doubled each time, up to kMaxRetryPause.
constexpr milliseconds kFirstRetryPause{50};
// The maximum number of unsent questions, probes and answers to one rank. If that rank is stopped, more would
// be of no use.
constexpr int kMostQuestions = 4;
// The time limit of HasEnded: a live host refuses a connection immediately if the port is closed.
constexpr milliseconds kProbeLimit{100};
constexpr milliseconds kMaxRetryPause{1000};
// The maximum number of connections that are not links yet. When it is reached, the oldest unanswered one is
// dropped. If all have been answered, there may be as many more as there are ranks.
constexpr std::size_t kMaxPending = 256;

// Sends a handshake message on a fresh connection, whose send buffer has space for all of it. Returns false
// if the connection is broken.
template <typename Message>
bool SendWhole(tcp::Stream& stream, const Message& message) {
  return stream.Send(&message, sizeof message) == sizeof message;
}

// Whether the peer has begun TLS. Only connections that become links are encrypted. Alarms, questions and
// probes are not, so that they can be sent without an answer from the peer, which may be busy.
bool BeginsTls(int fd) {
  char first = 0;
  return recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && first == tls::kFirstByte;
}

/// Returns the milliseconds until the deadline, at most kWakeUp; after the deadline a quarter of kWakeUp,
/// because a wait may continue (WaitObserver::WhoIsLate).
int MillisecondsToWait(Clock::time_point deadline) {
  const auto limit = static_cast<int>(kWakeUp.count());
  return Clock::now() < deadline ? tcp::MillisecondsUntil(deadline, limit) : limit / 4;
}

CloseOnForkDescriptor OpenSpare() {
  return CloseOnForkDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

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
  Watch(stream.fd(), Key(Subject::kLink, static_cast<std::uint64_t>(peer)), kStreamEvents);
  AddLink(peer, std::move(stream));
}

void TcpTransport::AddLink(int peer, tcp::Stream stream) {
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
    return std::any_of(interests.begin(), interests.end(), [&](const Interest& i) { return i.peer == peer; });
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

// --- incoming connections ---------------------------------------------------------------------------------

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
  Watch(proved.stream.fd(), Key(Subject::kLink, static_cast<std::uint64_t>(proved.peer)), kStreamEvents);
  AddLink(proved.peer, std::move(proved.stream));
}

/// Handles the first message of a connection, once it is complete. Returns true if the peer requested a link
/// and was answered.
bool TcpTransport::Answer(PendingConnection& pending) {
  const auto hello = tcp::ReadHello(pending.hello.bytes, key_, rank_, world_size());
  if (!hello) return false;
  if (hello->kind == tcp::HelloKind::kAlarm) {
    if (!alarm_) alarm_ = hello;
    return false;
  }
  if (hello->kind == tcp::HelloKind::kQuestion) {
    questions_[hello->from] = hello->call;
    return false;
  }
  if (hello->kind == tcp::HelloKind::kProbe) {
    probes_[hello->probe.origin] = hello->probe;
    return false;
  }
  if (hello->kind == tcp::HelloKind::kDoYouWait) {
    those_who_ask_.insert(hello->from);
    return false;
  }
  if (hello->kind == tcp::HelloKind::kIWait) {
    waiting_.insert(hello->from);
    return false;
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

// --- outgoing connections ---------------------------------------------------------------------------------

tcp::Hello TcpTransport::MakeHello(tcp::HelloKind kind, int to) const {
  tcp::Hello hello;
  hello.kind = kind;
  hello.from = rank_;
  hello.to = to;
  return hello;
}

void TcpTransport::ConnectWithin(std::span<const int> peers, milliseconds limit) {
  const auto linked = [&](int peer) { return links_[peer] != nullptr; };
  if (std::all_of(peers.begin(), peers.end(), linked)) return;
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
  const auto dial =
      std::find_if(dials_.begin(), dials_.end(), [&](const Dial& entry) { return entry.peer == peer; });
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
  Watch(dial.stream.fd(), Key(Subject::kLink, static_cast<std::uint64_t>(dial.peer)), kStreamEvents);
  AddLink(dial.peer, std::move(dial.stream));
}

// --- asking ---

void TcpTransport::Ask(int peer, const CallTag& call) {
  tcp::Hello hello = MakeHello(tcp::HelloKind::kQuestion, peer);
  hello.call = call;
  Tell(hello);
}

void TcpTransport::Send(int peer, const WaitProbe& probe) {
  tcp::Hello hello = MakeHello(tcp::HelloKind::kProbe, peer);
  hello.probe = probe;
  Tell(hello);
}

void TcpTransport::AskWhetherItWaits(int peer) {
  waiting_.erase(peer);
  Tell(MakeHello(tcp::HelloKind::kDoYouWait, peer));
}

void TcpTransport::SayThatThisWaits() {
  for (const int peer : those_who_ask_) Tell(MakeHello(tcp::HelloKind::kIWait, peer));
  those_who_ask_.clear();
}

std::map<int, WaitProbe> TcpTransport::TakeProbes() {
  return std::exchange(probes_, {});
}

void TcpTransport::Tell(const tcp::Hello& hello) {
  const int peer = hello.to;
  const auto is_to_peer = [peer](const auto& question) { return question.second.hello.to == peer; };
  if (std::count_if(own_questions_.begin(), own_questions_.end(), is_to_peer) >= kMostQuestions) return;
  for (const std::string& text : addresses_[peer]) {
    const auto address = tcp::Address::Parse(text);
    int error = 0;
    tcp::Socket socket = address ? tcp::StartConnect(*address, error) : tcp::Socket();
    if (!socket) continue;
    const std::uint64_t id = next_question_++;
    Watch(socket.fd(), Key(Subject::kQuestion, id), POLLOUT);
    own_questions_[id] = {tcp::Stream(std::move(socket)), hello};
    return;
  }
}

bool TcpTransport::HasEnded(int peer) const {
  const Clock::time_point end = Clock::now() + kProbeLimit;
  bool refused = false;
  for (const std::string& text : addresses_[peer]) {
    const auto address = tcp::Address::Parse(text);
    int error = 0;
    const tcp::Socket socket = address ? tcp::StartConnect(*address, error) : tcp::Socket();
    if (socket) {
      pollfd done{socket.fd(), POLLOUT, 0};
      if (poll(&done, 1, tcp::MillisecondsUntil(end, static_cast<int>(kProbeLimit.count()))) <= 0) continue;
      error = tcp::ConnectError(socket.fd());
      if (error == 0) return false;
    }
    refused = refused || error == ECONNREFUSED;
  }
  return refused;
}

void TcpTransport::SendQuestion(std::uint64_t id) {
  const auto found = own_questions_.find(id);
  if (found == own_questions_.end()) return;
  Question& question = found->second;
  const int error = tcp::ConnectError(question.stream.fd());
  if (error == 0) {
    SendWhole(question.stream, tcp::Proved(question.hello, key_));
  } else if (error == ECONNREFUSED && HasEnded(question.hello.to)) {
    absent_.push_back(question.hello.to);
  }
  own_questions_.erase(found);
}

// --- giving up ---------------------------------------------------------------------------------------------

void TcpTransport::Abort(int lost_rank, int shortage) noexcept {
  try {
    // Frees descriptors for the alarms.
    spare_.Close();
    std::erase_if(pending_, [](const auto& pending) { return pending.second.peer < 0; });
    dials_.clear();
    own_questions_.clear();
    if (posix::DescriptorShortage() != 0) listener_.Close();
    SendAlarms(lost_rank, shortage);
  } catch (const std::exception&) {
    // This process is out of memory or descriptors. The end of the links also informs the peers, though
    // without the reason.
  }
  for (const int peer : linked_) links_[peer]->CloseSending();
  // From now on the kernel refuses ranks that still try to link with this one.
  pending_.clear();
  listener_.Close();
}

void TcpTransport::SendAlarms(int lost_rank, int shortage) {
  struct Alarm {
    tcp::Stream stream;
    int peer;
  };
  struct Target {
    tcp::Address address;
    int peer;
  };
  std::vector<int> peers = linked_;
  for (const auto& [rank, call] : questions_) {  // ranks that wait for this one without a link
    if (!links_[rank]) peers.push_back(rank);
  }
  for (const auto& [id, pending] : pending_) {  // answered ranks, on whose side the link exists
    if (pending.peer >= 0 && !links_[pending.peer]) peers.push_back(pending.peer);
  }
  for (const int peer : awaited_) {  // ranks that may be waiting for a link with this one
    if (!links_[peer]) peers.push_back(peer);
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  std::erase_if(peers, [&](int peer) {
    const bool ended = links_[peer] && links_[peer]->ended();
    return peer == lost_rank || ended || (alarm_ && alarm_->from == peer);
  });
  // Targets are taken from the back of the list, so each peer's most promising address is added last.
  std::vector<Target> targets;
  for (std::size_t i = kAlarmAddresses; i-- > 0;) {
    for (const int peer : peers) {
      const auto address =
          i < addresses_[peer].size() ? tcp::Address::Parse(addresses_[peer][i]) : std::nullopt;
      if (address) targets.push_back({*address, peer});
    }
  }
  std::vector<Alarm> alarms;
  // Opens as many connections as the free descriptors allow.
  const auto begin = [&] {
    while (!targets.empty()) {
      int error = 0;
      tcp::Socket socket = tcp::StartConnect(targets.back().address, error);
      const bool may_come_later = posix::IsLocalShortage(error) && !posix::ConcernsAddress(error);
      if (may_come_later && !alarms.empty()) return;
      if (socket) alarms.push_back({tcp::Stream(std::move(socket)), targets.back().peer});
      targets.pop_back();
    }
  };
  const Clock::time_point end = Clock::now() + kAlarmLimit;
  std::vector<pollfd> waits;
  for (begin(); !alarms.empty() && Clock::now() < end; begin()) {
    waits.clear();
    for (const Alarm& alarm : alarms) waits.push_back({alarm.stream.fd(), POLLOUT, 0});
    if (poll(waits.data(), waits.size(),
             tcp::MillisecondsUntil(end, static_cast<int>(kAlarmLimit.count()))) <= 0) {
      continue;
    }
    for (std::size_t i = alarms.size(); i-- > 0;) {
      if (waits[i].revents == 0) continue;
      if (tcp::ConnectError(alarms[i].stream.fd()) == 0) {
        tcp::Hello hello = MakeHello(tcp::HelloKind::kAlarm, alarms[i].peer);
        hello.lost = lost_rank;
        hello.shortage = shortage;
        if (SendWhole(alarms[i].stream, tcp::Proved(hello, key_)))
          std::erase_if(targets, [&](const Target& target) { return target.peer == hello.to; });
      }
      alarms.erase(alarms.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace warren
