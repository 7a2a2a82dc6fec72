// The part of TcpTransport that sends short messages on connections of their own: questions and probes of
// waiting ranks, and alarms of ranks that give up.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "posix/shortage.h"
#include "rabit_engine/transport/tcp/tcp_connections.h"
#include "rabit_engine/transport/tcp/tcp_transport.h"

namespace warren {
namespace {

using std::chrono::milliseconds;

// The maximum number of unsent questions, probes and answers to one rank. If its host does not answer, more
// would be of no use.
constexpr int kMostQuestions = 4;
// The time limit of HasEnded: a live host refuses a connection immediately if the port is closed.
constexpr milliseconds kProbeLimit{100};
// The time limit for sending all alarms when this rank gives up.
constexpr milliseconds kAlarmLimit{1000};
// The maximum number of a peer's addresses that are tried for an alarm. A peer rarely has more.
constexpr std::size_t kAlarmAddresses = 4;

}  // namespace

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
  ConnectQuestion({{}, hello, 0});
}

/// Connects to the peer's next address, to send the question there; drops it after the last address.
void TcpTransport::ConnectQuestion(Question question) {
  const std::vector<tcp::Address> addresses = AddressesOf(question.hello.to);
  while (question.next_address < addresses.size()) {
    int error = 0;
    tcp::Socket socket = tcp::StartConnect(addresses[question.next_address++], error);
    if (!socket) continue;
    const std::uint64_t id = next_question_++;
    Watch(socket.fd(), Key(Subject::kQuestion, id), POLLOUT);
    question.stream = tcp::Stream(std::move(socket));
    own_questions_[id] = std::move(question);
    return;
  }
}

/// Returns the addresses of a peer, the most promising first. Addresses that this host has, too, such as
/// loopback and container bridges, lead to this host, so they are left out unless the peer has no others.
std::vector<tcp::Address> TcpTransport::AddressesOf(int peer) const {
  std::set<std::string> own_hosts;
  for (const std::string& text : addresses_[rank_]) {
    if (const auto address = tcp::Address::Parse(text)) own_hosts.insert(address->host());
  }
  std::vector<tcp::Address> all;
  std::vector<tcp::Address> away;
  for (const std::string& text : addresses_[peer]) {
    const auto address = tcp::Address::Parse(text);
    if (!address) continue;
    all.push_back(*address);
    if (!own_hosts.contains(address->host())) away.push_back(*address);
  }
  return away.empty() ? all : away;
}

bool TcpTransport::HasEnded(int peer) const {
  const Clock::time_point end = Clock::now() + kProbeLimit;
  bool refused = false;
  for (const tcp::Address& address : AddressesOf(peer)) {
    int error = 0;
    const tcp::Socket socket = tcp::StartConnect(address, error);
    if (socket) {
      if (!tcp::WaitFor(socket.fd(), POLLOUT, end)) continue;
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
  Question question = std::move(found->second);
  own_questions_.erase(found);
  const int error = tcp::ConnectError(question.stream.fd());
  if (error == 0) {
    SendWhole(question.stream, tcp::Proved(question.hello, key_));
  } else if (error == ECONNREFUSED && HasEnded(question.hello.to)) {
    absent_.push_back(question.hello.to);
  } else {
    question.stream.Close();
    ConnectQuestion(std::move(question));
  }
}

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

/// Returns the ranks that may be waiting for this one, except those that need no alarm.
std::set<int> TcpTransport::PeersToAlarm(int lost_rank) const {
  std::set<int> peers(linked_.begin(), linked_.end());
  for (const auto& [rank, call] : questions_) peers.insert(rank);  // may wait for this rank without a link
  for (const auto& [id, pending] : pending_) {
    if (pending.peer >= 0) peers.insert(pending.peer);  // was answered: on its side the link exists
  }
  peers.insert(awaited_.begin(), awaited_.end());  // may be waiting for a link with this rank
  std::erase_if(peers, [&](int peer) {
    const bool ended = links_[peer] && links_[peer]->ended();
    return peer == lost_rank || ended || (alarm_ && alarm_->from == peer);
  });
  return peers;
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
  const std::set<int> peers = PeersToAlarm(lost_rank);
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
    tcp::PollUntil(waits, end);
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
