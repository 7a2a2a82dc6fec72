#include "rabit_engine/bootstrap/tracker_bootstrap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <list>
#include <string_view>
#include <thread>
#include <utility>

#include "posix/host_name.h"
#include "posix/shortage.h"
#include "posix/sockets.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/base/tls_context.h"
#include "rabit_engine/bootstrap/tracker_connection.h"
#include "wire/membership.h"

namespace warren {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace classic = wire::classic;

// The first and the longest pause between rounds of connecting to the peers that the tracker names; it
// doubles after each round.
constexpr milliseconds kFirstLinkPause{50};
constexpr milliseconds kMaxLinkPause{2000};
// The maximum number of pending connections. Beyond it, the oldest one whose rank is unknown is dropped, or,
// if all ranks are known, the oldest one.
constexpr std::size_t kMaxPending = 256;

// The minimum time that a starting worker waits for the others. The trackers of dmlc-core and XGBoost link
// one worker after the other, so in a large job the first workers wait for a long time.
constexpr seconds kLeastPatience{1800};

// The engine's hello, sent on every new link after the rank. In a job with a token there are also nonces and
// proofs:
//
//   connector                                     acceptor
//   rank, nonce c, claim for c               ->
//                                            <-   rank, engine's hello, nonce a
//   engine's hello, proof for c and a        ->                                   the acceptor has its link
//                                            <-   proof for c and a
struct EngineHello {
  std::uint32_t magic = 0x4b4c5257;  // "WRLK"
  std::uint32_t version = 3;
  friend bool operator==(const EngineHello&, const EngineHello&) = default;
};
static_assert(sizeof(EngineHello) == 8);

// Returns the claim by which a connector shows that it belongs to this job. A peer without a valid claim
// receives no answer.
wire::Digest ClaimOf(const wire::JobToken& token, int connector, const wire::Nonce& of_connector) {
  return wire::HmacSha256(wire::BytesOf(token.Derive("link's claim")),
                          {wire::BytesOf(of_connector), std::to_string(connector)});
}

enum class LinkEnd { kConnector, kAcceptor };
// The ranks are part of the proof, so that it is valid for this link only.
wire::Digest ProofOf(LinkEnd end, const wire::JobToken& token, int connector, int acceptor,
                     const wire::Nonce& of_connector, const wire::Nonce& of_acceptor) {
  const wire::Digest key = token.Derive(end == LinkEnd::kConnector ? "connector" : "acceptor");
  const std::string ranks = fmt::format("{} {}", connector, acceptor);
  return wire::HmacSha256(wire::BytesOf(key),
                          {wire::BytesOf(of_connector), wire::BytesOf(of_acceptor), ranks});
}

template <typename Value>
std::string_view BytesIn(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Sends a handshake message on a fresh connection, whose send buffer has space for all of it. Returns false
// if the connection has broken.
bool SendSmall(tcp::Stream& stream, std::initializer_list<std::string_view> parts) {
  std::string bytes;
  for (const std::string_view part : parts) bytes += part;
  return stream.Send(bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

enum class ReadState { kWhole, kTimeout, kEnded };

ReadState ReadAll(tcp::Stream& stream, void* data, std::size_t bytes,
                  TrackerConnection::Clock::time_point deadline, int& error) {
  auto* out = static_cast<char*>(data);
  std::size_t done = 0;
  error = 0;
  while (done < bytes) {
    const ssize_t count = stream.Receive(out + done, bytes - done);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (count == 0) {
      return ReadState::kEnded;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!tcp::WaitFor(stream.fd(), POLLIN, deadline)) return ReadState::kTimeout;
    } else if (errno != EINTR) {
      error = errno;
      return ReadState::kEnded;
    }
  }
  return ReadState::kWhole;
}

std::string WhyNotRead(const tcp::Stream& stream, ReadState state, int error) {
  if (state == ReadState::kTimeout) return "no answer in time";
  return error == 0 ? "it closed the connection" : stream.TextOf(error);
}

bool HasEnded(int fd) {
  pollfd entry{fd, posix::kPeerDone, 0};
  return poll(&entry, 1, 0) > 0;
}

}  // namespace

/// An accepted connection whose peer has not sent its rank, or has not proved that it belongs to the job.
struct TrackerBootstrap::PendingConnection {
  tcp::Stream stream;
  Clock::time_point deadline;
  std::string received = {};
  int rank = -1;               ///< the peer's rank, or -1 until this rank has answered
  wire::Digest expected = {};  ///< the proof expected from the peer, set together with `rank`
  wire::Digest own = {};       ///< the proof that this rank will send in return
};

TrackerBootstrap::TrackerBootstrap(const Settings& settings, std::optional<int> rank)
    : settings_(settings),
      patience_(rank ? settings.recovery_timeout : std::max(settings.recovery_timeout, kLeastPatience)),
      tls_(TlsFor(settings, wire::kTlsOfLinks)),
      listener_(tcp::ListenAnywhere({settings.first_port, settings.last_port})) {
  assignment_.rank = rank.value_or(-1);
  assignment_.world_size = settings_.world_size;
  Join(rank ? classic::Command::kRecover : classic::Command::kStart);
  // While workers die and are restarted, another neighbor may have connected here in place of an expected one
  // (LinkBroker::kBorrowDelay in tracker/link_broker.h). The missing links are made when this worker
  // recovers.
  for (int round = 0; !MissingNeighbors().empty(); ++round) {
    if (round >= std::max(1, settings_.connect_retry)) {
      throw EngineError(fmt::format("{} has no links with ranks {}, asked the tracker {} times", Name(),
                                    fmt::join(MissingNeighbors(), ", "), round + 1));
    }
    Join(classic::Command::kRecover);
  }
  CheckEngines();
}

std::string TrackerBootstrap::Name() const {
  const std::string host = posix::HostName();
  return assignment_.rank < 0 ? fmt::format("task {} on {}", settings_.task_id, host)
                              : fmt::format("rank {} on {}", assignment_.rank, host);
}

// --- joining -----------------------------------------------------------------------------------------------

void TrackerBootstrap::Join(classic::Command command) {
  TrackerConnection tracker(settings_, Hello(command));
  local_host_ = tracker.local_host();
  const int wanted = settings_.world_size;
  // At the start of a job, the tracker decides how long workers may be missing.
  const Clock::time_point deadline =
      command == classic::Command::kRecover ? Clock::now() + patience_ : Clock::time_point::max();
  assignment_ = tracker.ReadAssignment("this worker's rank", deadline);
  if (wanted > 0 && wanted != assignment_.world_size) {
    throw Misuse(fmt::format("{} expects a world of {} ranks (rabit_world_size), but the tracker's has {}",
                             Name(), wanted, assignment_.world_size));
  }
  const classic::LinkPlan plan = MakeConnections(tracker, deadline);
  tracker.Send(classic::Encode(classic::ListenPort{tcp::Address::Local(listener_.fd()).port()}));
  AcceptLinks(plan.num_accept, tracker);
}

// Gets from the tracker the ranks to connect to, and connects to them; repeats both until all connections
// have succeeded. Returns the last plan.
classic::LinkPlan TrackerBootstrap::MakeConnections(TrackerConnection& tracker, Clock::time_point deadline) {
  milliseconds pause = kFirstLinkPause;
  Clock::time_point give_up{};
  for (int round = 1;; ++round) {
    classic::GoodLinks good;
    for (const auto& [rank, stream] : links_) {
      if (!HasEnded(stream.fd())) good.ranks.push_back(rank);
    }
    tracker.Send(classic::Encode(good));
    classic::LinkPlan plan = tracker.ReadLinkPlan("the list of ranks to link with", deadline);
    std::vector<std::string> failures;
    int shortage = 0;
    for (const classic::Endpoint& peer : plan.connect) {
      const std::string failure = ConnectTo(peer, shortage);
      if (!failure.empty()) {
        failures.push_back(fmt::format("rank {} at {}:{} ({})", peer.rank, peer.host, peer.port, failure));
      }
    }
    if (failures.empty()) {
      tracker.Send(classic::Encode(classic::LinkErrors{0}));
      return plan;
    }
    const bool has_tried_enough = round >= std::max(1, settings_.connect_retry);
    if (has_tried_enough && shortage != 0) {
      ThrowShortage(
          fmt::format("{} cannot link with {}, tried {} times", Name(), fmt::join(failures, ", "), round),
          "socket or connect", shortage);
    }
    // A peer that died may be restarted meanwhile, so the number of rounds alone is not a limit.
    if (round == 1) give_up = Clock::now() + settings_.connect_timeout;
    if (has_tried_enough && Clock::now() >= give_up) {
      throw LostPeer(
          plan.connect.size() == 1 ? plan.connect.front().rank : -1,
          fmt::format(
              "{} cannot connect to {}, tried {} times. Have they ended, or does a firewall stand between the hosts?",
              Name(), fmt::join(failures, ", "), round));
    }
    tracker.Send(classic::Encode(classic::LinkErrors{static_cast<std::int32_t>(failures.size())}));
    std::this_thread::sleep_for(pause);
    pause = std::min(kMaxLinkPause, pause * 2);
  }
}

// Returns an empty string if the link was made, otherwise the reason for the failure. If the cause is a lack
// of local resources, such as file descriptors, sets `shortage` to the errno.
std::string TrackerBootstrap::ConnectTo(const classic::Endpoint& peer, int& shortage) {
  if (!IsNeighbor(peer.rank)) return "it is not a neighbour of this rank";
  std::string failure = "its name has no address";
  tcp::ConnectFailures failures;
  try {
    for (const tcp::Address& address : tcp::Resolve(peer.host, peer.port)) {
      const Clock::time_point deadline = Clock::now() + settings_.connect_timeout;
      int error = 0;
      tcp::Stream stream(tcp::ConnectUntil(address, deadline, error));
      if (!stream) {
        failure = tcp::ErrorText(error);
        failures.Add(address, error, failure);
        continue;
      }
      failures.Add(address, 0, "connected");
      failure = Introduce(stream, peer.rank, deadline);
      if (!failure.empty()) continue;
      links_[peer.rank] = std::move(stream);
      return "";
    }
  } catch (const LocalShortage& error) {
    shortage = error.error();
    return error.what();
  } catch (const EngineError& error) {
    failure = error.what();
  }
  if (const int error = failures.OwnShortage(); error != 0) shortage = error;
  return failure;
}

// The connector's side of the exchange described at EngineHello. Returns an empty string on success,
// otherwise the reason for the failure.
std::string TrackerBootstrap::Introduce(tcp::Stream& stream, int peer, Clock::time_point deadline) {
  tcp::PrepareLink(stream.fd(), settings_.tcp_no_delay, settings_.host_timeout);
  tcp::SetUserTimeout(stream.fd(), settings_.host_timeout);
  if (tls_) stream.Encrypt(*tls_, tls::Role::kClient);
  if (const int why = stream.HandshakeUntil(deadline); why != 0) return stream.TextOf(why);

  const std::int32_t mine = assignment_.rank;
  std::int32_t theirs = -1;
  const auto nonce = settings_.job_token ? wire::RandomNonce() : wire::Nonce();
  const auto claim = settings_.job_token ? ClaimOf(*settings_.job_token, mine, nonce) : wire::Digest();
  if (!SendSmall(stream, {BytesIn(mine), IfProved(nonce), IfProved(claim)})) {
    return "the connection broke at once";
  }
  int error = 0;
  ReadState read = ReadAll(stream, &theirs, sizeof theirs, deadline, error);
  if (read != ReadState::kWhole) return WhyNotRead(stream, read, error);
  if (theirs != peer) return fmt::format("rank {} answered", theirs);

  wire::Digest proof{};
  if (settings_.job_token) {
    EngineHello hello;
    wire::Nonce answer;
    read = ReadAll(stream, &hello, sizeof hello, deadline, error);
    if (read == ReadState::kWhole) read = ReadAll(stream, &answer, sizeof answer, deadline, error);
    if (read != ReadState::kWhole) return WhyNotRead(stream, read, error);
    if (hello != EngineHello()) return "another engine answered";
    const auto proof_of = [&](LinkEnd end) {
      return ProofOf(end, *settings_.job_token, mine, theirs, nonce, answer);
    };
    proof = proof_of(LinkEnd::kConnector);
    awaited_proofs_[peer] = proof_of(LinkEnd::kAcceptor);
  }
  if (!SendSmall(stream, {BytesIn(EngineHello()), IfProved(proof)})) {
    return "the connection broke after the handshake";
  }
  return "";
}

void TrackerBootstrap::AcceptLinks(int count, TrackerConnection& tracker) {
  const Clock::time_point deadline = Clock::now() + patience_;
  std::list<PendingConnection> pending;  // oldest first
  // If the tracker dies before it has saved this rank's port, a restarted tracker tells no rank to connect
  // here. A tracker that supports job tokens confirms that the port is saved; this rank waits for that.
  bool noted = !settings_.job_token;
  while (count > 0 || !noted) {
    Clock::time_point next = deadline;
    if (!pending.empty()) next = std::min(next, pending.front().deadline);
    std::vector<pollfd> waits{{listener_.fd(), POLLIN, 0}};
    for (const PendingConnection& connection : pending) waits.push_back({connection.stream.fd(), POLLIN, 0});
    std::vector<int> linked;
    for (const auto& [rank, stream] : links_) {
      waits.push_back({stream.fd(), posix::kPeerDone, 0});
      linked.push_back(rank);
    }
    waits.push_back({tracker.descriptor(), static_cast<short>(noted ? 0 : POLLIN), 0});
    tcp::PollUntil(waits, next);
    if (noted) {
      tracker.ThrowIfBroken();
    } else {
      noted = tracker.HasNoted();
    }
    // If a link has broken, the peer may have abandoned this attempt and be waiting for all ranks in the next
    // one, so this rank must abandon the attempt, too.
    for (std::size_t link = 0; link < linked.size(); ++link) {
      if (waits[1 + pending.size() + link].revents != 0) ThrowLost(linked[link], 0);
    }
    std::size_t i = 1;
    for (auto connection = pending.begin(); connection != pending.end();) {
      const bool heard = waits[i++].revents != 0;
      const int links_before = static_cast<int>(links_.size());
      if ((heard && Greet(*connection)) || connection->deadline <= Clock::now()) {
        count -= static_cast<int>(links_.size()) - links_before;
        connection = pending.erase(connection);
      } else {
        ++connection;
      }
    }
    if (waits[0].revents != 0) AcceptOne(pending);
    if (Clock::now() >= deadline) {
      const std::string what =
          count > 0 ? fmt::format("ranks {} to connect to it", fmt::join(MissingNeighbors(), ", "))
                    : "the tracker to note where it listens";
      throw TimedOut(fmt::format("{} has waited {} s for {}", Name(), patience_.count(), what));
    }
  }
}

void TrackerBootstrap::AcceptOne(std::list<PendingConnection>& pending) {
  tcp::Socket socket(posix::Accept(listener_.fd(), posix::Blocking::kNo));
  if (socket) {
    if (pending.size() >= kMaxPending && !DropUnanswered(pending)) pending.pop_front();
    pending.push_back(
        {.stream = tcp::Stream(std::move(socket)), .deadline = Clock::now() + settings_.connect_timeout});
    if (tls_) pending.back().stream.Encrypt(*tls_, tls::Role::kServer);
  } else if (const int error = errno; !posix::ConcernsOneConnection(error) && posix::IsLocalShortage(error)) {
    if (!DropUnanswered(pending))
      ThrowShortage(fmt::format("{} cannot accept a connection from another rank", Name()), "accept", error);
  }
}

// Closes the oldest connection whose rank is unknown. Returns false if all ranks are known: those connections
// have been answered, and their peers regard them as links.
bool TrackerBootstrap::DropUnanswered(std::list<PendingConnection>& pending) {
  const auto unanswered =
      std::find_if(pending.begin(), pending.end(),
                   [](const PendingConnection& connection) { return connection.rank < 0; });
  if (unanswered == pending.end()) return false;
  pending.erase(unanswered);
  return true;
}

// Reads the bytes that have arrived. Returns true if the connection has become a link or is to be dropped.
bool TrackerBootstrap::Greet(PendingConnection& connection) {
  const std::size_t claim_bytes = settings_.job_token ? sizeof(wire::Nonce) + sizeof(wire::Digest) : 0;
  // Reads no more bytes than belong to the handshake; later bytes belong to the link.
  const std::size_t wanted =
      connection.rank < 0 ? sizeof(std::int32_t) + claim_bytes : sizeof(EngineHello) + sizeof(wire::Digest);
  std::array<char, 128> bytes;
  const ssize_t got = connection.stream.Receive(bytes.data(), wanted - connection.received.size());
  if (got < 0) return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
  if (got == 0) return true;
  connection.received.append(bytes.data(), static_cast<std::size_t>(got));
  if (connection.received.size() < wanted) return false;
  const std::string message = std::exchange(connection.received, {});
  if (connection.rank < 0) return Answer(connection, message);
  const std::string_view proof = std::string_view(message).substr(sizeof(EngineHello));
  if (message.starts_with(BytesIn(EngineHello())) && wire::Same(proof, wire::BytesOf(connection.expected)) &&
      IsWanted(connection.rank) && SendSmall(connection.stream, {wire::BytesOf(connection.own)})) {
    Keep(connection.rank, std::move(connection.stream));
  }
  return true;
}

// Answers a connector with this rank and the engine's hello, and with a nonce if the job has a token. Returns
// true under the same conditions as Greet.
bool TrackerBootstrap::Answer(PendingConnection& connection, const std::string& message) {
  std::int32_t theirs = -1;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  if (!IsWanted(theirs)) return true;
  wire::Nonce asked{};
  if (settings_.job_token) {
    std::memcpy(asked.data(), message.data() + sizeof theirs, asked.size());
    const std::string_view claim = std::string_view(message).substr(sizeof theirs + asked.size());
    if (!wire::Same(claim, wire::BytesOf(ClaimOf(*settings_.job_token, theirs, asked)))) return true;
  }
  const int fd = connection.stream.fd();
  tcp::PrepareLink(fd, settings_.tcp_no_delay, settings_.host_timeout);
  tcp::SetUserTimeout(fd, settings_.host_timeout);
  const std::int32_t mine = assignment_.rank;
  const auto nonce = settings_.job_token ? wire::RandomNonce() : wire::Nonce();
  if (!SendSmall(connection.stream, {BytesIn(mine), BytesIn(EngineHello()), IfProved(nonce)})) return true;
  if (!settings_.job_token) {
    Keep(theirs, std::move(connection.stream));
    return true;
  }
  const auto proof_of = [&](LinkEnd end) {
    return ProofOf(end, *settings_.job_token, theirs, mine, asked, nonce);
  };
  connection.rank = theirs;
  connection.expected = proof_of(LinkEnd::kConnector);
  connection.own = proof_of(LinkEnd::kAcceptor);
  return false;
}

void TrackerBootstrap::Keep(int rank, tcp::Stream stream) {
  links_[rank] = std::move(stream);
  awaited_proofs_.erase(rank);
}

bool TrackerBootstrap::IsWanted(int rank) const {
  const auto old = links_.find(rank);
  return IsNeighbor(rank) && (old == links_.end() || HasEnded(old->second.fd()));
}

// Returns the bytes of `digest` if the job has a token, otherwise an empty view.
std::string_view TrackerBootstrap::IfProved(const wire::Digest& digest) const {
  return settings_.job_token ? wire::BytesOf(digest) : std::string_view();
}

bool TrackerBootstrap::IsNeighbor(int rank) const {
  const auto& tree = assignment_.tree_neighbors;
  return rank >= 0 && (rank == assignment_.ring_prev || rank == assignment_.ring_next ||
                       std::find(tree.begin(), tree.end(), rank) != tree.end());
}

std::vector<int> TrackerBootstrap::MissingNeighbors() const {
  std::vector<int> neighbors(assignment_.tree_neighbors.begin(), assignment_.tree_neighbors.end());
  neighbors.insert(neighbors.end(), {assignment_.ring_prev, assignment_.ring_next});
  std::sort(neighbors.begin(), neighbors.end());
  neighbors.erase(std::unique(neighbors.begin(), neighbors.end()), neighbors.end());
  std::erase_if(neighbors, [&](int rank) { return rank < 0 || links_.contains(rank); });
  return neighbors;
}

// Throws EngineError unless the peer of each link uses this engine. Both ends send the engine's hello right
// after the handshake, so the peer's hello has arrived or is about to arrive. In a job with a token, the
// hellos have already been checked; then only the proofs of acceptors are read here.
void TrackerBootstrap::CheckEngines() {
  const Clock::time_point deadline = Clock::now() + settings_.connect_timeout;
  const auto read = [&](int rank, tcp::Stream& stream, void* data, std::size_t bytes) {
    int error = 0;
    const ReadState state = ReadAll(stream, data, bytes, deadline, error);
    if (state == ReadState::kTimeout && settings_.job_token) {
      throw TimedOut(
          fmt::format("{} has waited {} s for rank {} at {} to prove the job's token: stopped or stuck?",
                      Name(), settings_.connect_timeout.count(), rank,
                      tcp::Address::Remote(stream.fd()).ToString()),
          rank);
    }
    if (state == ReadState::kEnded) {
      throw LostPeer(
          rank,
          fmt::format("{} lost rank {} at {} while linking: {}. Look at what it printed last.", Name(), rank,
                      tcp::Address::Remote(stream.fd()).ToString(), WhyNotRead(stream, state, error)));
    }
    return state == ReadState::kWhole;
  };
  for (auto& [rank, stream] : links_) {
    const auto awaited = awaited_proofs_.find(rank);
    wire::Digest proof{};
    if (awaited != awaited_proofs_.end() &&
        !(read(rank, stream, &proof, sizeof proof) &&
          wire::Same(wire::BytesOf(proof), wire::BytesOf(awaited->second)))) {
      throw EngineError(
          fmt::format("the process that answered for rank {} at {} does not know the token of this job ({})",
                      rank, tcp::Address::Remote(stream.fd()).ToString(), wire::kTokenVariable));
    }
    if (settings_.job_token) continue;
    EngineHello theirs;
    const bool whole = read(rank, stream, &theirs, sizeof theirs);
    if (whole && theirs == EngineHello()) continue;
    throw EngineError(fmt::format(
        "rank {} at {} runs a different allreduce engine from {}: {}. All workers of a job must use the same version of this library.",
        rank, tcp::Address::Remote(stream.fd()).ToString(), Name(),
        whole ? fmt::format("it introduced itself as {:#x}, version {}", theirs.magic, theirs.version)
              : std::string("it has not introduced itself")));
  }
  awaited_proofs_.clear();
}

std::vector<ConnectedPeer> TrackerBootstrap::TakeLinks() {
  std::vector<ConnectedPeer> links;
  for (auto& [rank, stream] : links_) links.push_back({rank, std::move(stream)});
  links_.clear();
  return links;
}

std::vector<std::string> TrackerBootstrap::ListenAddresses() const {
  return tcp::ListenAddresses(listener_.fd(), local_host_);
}

// --- telling the tracker -----------------------------------------------------------------------------------

void TrackerBootstrap::Print(const std::string& text) {
  PrintAtTracker(
      settings_,
      {.rank = assignment_.rank, .world_size = assignment_.world_size, .task_id = settings_.task_id}, text);
}

void TrackerBootstrap::Shutdown() {
  try {
    TrackerConnection(settings_, Hello(classic::Command::kShutdown));
  } catch (const TrackerLost& error) {
    SayThatItLeavesUntold(error);
  }
}

bool TrackerBootstrap::ShutdownTogether() {
  for (int refusals = 0;;) {
    try {
      TrackerConnection tracker(settings_, Hello(classic::Command::kShutdown),
                                classic::Encode(classic::WaitForOthers{}));
      // All ranks have met in a barrier, so only lost ranks are awaited.
      try {
        return tracker.ReadRelease(Clock::now() + settings_.recovery_timeout);
      } catch (const TimedOut& error) {
        throw TimedOut(fmt::format(
            "{} has waited {} s (rabit_timeout_sec) at the end of the job: {}; one of them died there and has not returned",
            Name(), settings_.recovery_timeout.count(), error.what()));
      }
    } catch (const TrackerLost& error) {
      // The tracker may be restarted from its saved state; it then answers soon.
      if (error.when() == TrackerLost::When::kTalking && ++refusals < settings_.connect_retry) continue;
      SayThatItLeavesUntold(error);
      return true;
    }
  }
}

// This rank has finished, so a failure to inform the tracker is reported but is not an error. A member of an
// elastic job only leaves a generation here; it informs the tracker over another connection
// (wire/membership.h).
void TrackerBootstrap::SayThatItLeavesUntold(const TrackerLost& error) const {
  if (wire::SplitGeneration(settings_.task_id).second > 0) return;
  Say("rabit: {} has finished, but could not tell the tracker: {}", Name(), error.what());
}

classic::Hello TrackerBootstrap::Hello(classic::Command command) const {
  return {.rank = assignment_.rank,
          .world_size = assignment_.world_size,
          .task_id = settings_.task_id,
          .command = command};
}

}  // namespace warren
