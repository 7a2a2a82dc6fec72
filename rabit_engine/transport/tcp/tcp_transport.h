// Links over TCP: non-blocking sockets under one epoll (tcp_events_epoll.cc), or poll on systems other than
// Linux (tcp_events_poll.cc).
//
// Links are made on demand: of two ranks the lower connects and the higher accepts, whenever that comes, so
// neither has to be in Connect at the same moment. Handshakes never block; one who connects and says
// nothing, or nonsense, costs a descriptor for a while and nothing else.
//
// The data stream is raw (tcp_link.h). When a rank gives up, it says so through a second, short connection to
// the listening socket of each linked peer (an alarm, handshake.h). That works in the middle of a message of
// many GiB to a peer whose buffers are full, where a mark in the data stream would be stuck behind it. The
// listening socket is waited for with the links, so a waiting rank hears an alarm at once, and names the rank
// that was lost first rather than the neighbour that passed the news on.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "posix/sockets.h"
#include "rabit_engine/base/event.h"
#include "rabit_engine/transport/tcp/handshake.h"
#include "rabit_engine/transport/tcp/socket.h"
#include "rabit_engine/transport/tcp/stream.h"
#include "rabit_engine/transport/tcp/tcp_link.h"
#include "rabit_engine/transport/transport.h"
#include "rabit_engine/transport/waiting.h"

namespace warren {

struct TcpOptions {
  /// Send small messages at once.
  bool no_delay = true;
  /// The limit for making one TCP connection.
  std::chrono::milliseconds connect_timeout{30'000};
  /// Silence after which a host is taken for gone.
  std::chrono::seconds host_timeout = tcp::kHostTimeout;
  /// How often all addresses of a peer are tried.
  int connect_retry = 5;
  /// For a peer to make the same Connect call, which it may do after an hour of computing; 0: for ever. A
  /// peer that dies meanwhile is noticed by its links.
  std::chrono::milliseconds answer_timeout{0};
  /// Links are encrypted with it, those that are adopted excepted.
  std::optional<tls::Context> tls;
  /// Look for data for a few microseconds before giving the core away. Set only if each rank has its own
  /// core.
  bool may_spin = false;
};

class TcpTransport final : public Transport, private TcpLink::Owner {
 public:
  /// `listener` is a listening socket (-1: none; then no links can be made), owned from now on.
  /// `addresses[r]` are the "ip:port" texts under which rank r listens, the likeliest first. `key` is
  /// the same on all ranks, unknown to others.
  TcpTransport(int rank, int world_size, int listener, std::vector<std::vector<std::string>> addresses,
               const tcp::LinkKey& key, const TcpOptions& options);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  /// A link that was made elsewhere (by the bootstrap).
  void Adopt(int peer, tcp::Stream stream);

  int rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(links_.size()); }
  void Connect(std::span<const int> peers) override { ConnectWithin(peers, options_.answer_timeout); }
  /// See TcpOptions; from the next Connect on.
  void set_answer_timeout(std::chrono::milliseconds timeout) { options_.answer_timeout = timeout; }
  /// Connect for peers that come within so long (0: whenever they come).
  void ConnectWithin(std::span<const int> peers, std::chrono::milliseconds limit);
  Link& To(int peer) override;
  void Wait(std::span<const Interest> interests, Clock::time_point deadline) override;
  void SetWaitObserver(WaitObserver* observer) override { wait_observer_ = observer; }
  using Transport::Abort;
  void Abort(int lost_rank, int shortage) noexcept override;
  void ExpectPeersToLeave() override { peers_may_leave_ = true; }
  void AllowInterrupts() override;
  void Interrupt() override;
  void Resume() override { is_interrupted_ = false; }

  /// Whether nobody listens any more where this rank said that it does: its process has ended, or has given
  /// up. Takes up to a tenth of a second; false when it cannot be told. Of any thread.
  bool HasEnded(int peer) const;
  /// Tells a rank that this one waits for it in this call, so that it can tell whether it is in another. Does
  /// not wait. When nobody listens there, ThrowIfLost knows it from then on.
  void Ask(int peer, const CallTag& call);
  bool IsLinked(int peer) const { return links_[peer] != nullptr; }
  /// The last call that each rank has asked about so, as far as the events taken so far tell.
  const std::map<int, CallTag>& questions() const { return questions_; }

  // The same way, without waiting; see WaitProbe.
  void Send(int peer, const WaitProbe& probe);
  /// Those that have come since, the last one of each origin.
  std::map<int, WaitProbe> TakeProbes();
  /// Asks a rank whether it waits in a call itself.
  void AskWhetherItWaits(int peer);
  /// Whether it has said so since it was asked.
  bool SaysThatItWaits(int peer) const { return waiting_.contains(peer); }
  /// Answers those who have asked.
  void SayThatThisWaits();

  /// Bytes given to the link with a peer so far, and taken from it; 0 if there is no link.
  std::uint64_t BytesSent(int peer) const { return links_[peer] ? links_[peer]->bytes_sent() : 0; }
  std::uint64_t BytesReceived(int peer) const { return links_[peer] ? links_[peer]->bytes_received() : 0; }
  /// Whether what this rank has sent lies with the peer, which has no room for more until it reads.
  bool IsFull(int peer) const { return links_[peer] && links_[peer]->IsFull(); }

  // --- for a transport that has other links beside these ---

  /// Throws LostPeer when a linked host has not answered for `host_timeout`, though its connection is open.
  /// Looks every few seconds, however often it is called.
  void ThrowIfHostIsSilent();
  /// "rank 3 at 10.0.0.7:4100", as far as known.
  std::string PeerName(int peer) const;
  /// Becomes readable when TakeEvents has something to do; -1 where there is no such descriptor.
  int descriptor() const { return events_.fd(); }
  void TakeEvents() { Poll(0); }
  /// Takes events, or reads ahead on links where little is awaited; then what AnyReady says. For somebody
  /// who looks again and again.
  bool Look(std::span<const Interest> interests);
  /// True when one of the interests (those in ranks without a link here are passed over) may make progress,
  /// as far as the events taken so far tell.
  bool AnyReady(std::span<const Interest> interests) const;
  /// Throws LostPeer when a peer is gone or a rank has given up, as far as the events taken so far tell. To
  /// be asked when no interest is ready, for what a peer sent before it gave up may say why.
  void ThrowIfLost(std::span<const Interest> interests);
  /// For whoever has learnt elsewhere that a rank has ended: throws LostPeer when a rank says within a moment
  /// that it has given up, which tells more.
  void ThrowIfTold();

 private:
  struct PendingConnection;
  struct Dial;
  struct Question {
    tcp::Stream stream;
    tcp::Hello hello;
  };

  /// Waits for a moment until a rank says that it has given up.
  void AwaitAlarm();
  [[noreturn]] void ThrowLost(int peer, const std::string& seen) override;
  void NoteEnd() override { any_ended_ = true; }
  void WatchForRoom(const TcpLink& link, bool watch) override;

  int WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline);

  // --- events: their bits are those of poll ---
  static constexpr std::uint32_t kStreamEvents = POLLIN | posix::kPeerDone;
  void OpenEvents();
  /// Tells of each change of these states from now on, one that is there already included.
  void Watch(int fd, std::uint64_t key, std::uint32_t events);
  /// Takes what there is, after waiting for something at most so long.
  void Poll(int timeout_ms);
  void Take(std::uint64_t key, std::uint32_t events);

  // --- the listening socket ---
  void AcceptAll();
  void Hear(std::uint64_t id);
  bool Answer(PendingConnection& pending);
  bool DropUnanswered();
  void DropOldPending();
  void AddLink(int peer, tcp::Stream stream);

  // --- connecting ---
  void DialNext(Dial& dial);
  void ContinueDial(int peer);
  void ReadAnswer(Dial& dial);
  void TryNextAddress(Dial& dial, int error, const std::string& why);
  [[noreturn]] void ThrowUnreachable(const Dial& dial);
  tcp::Hello MakeHello(tcp::HelloKind kind, int to) const;
  void SendAlarms(int lost_rank, int shortage);
  void Tell(const tcp::Hello& hello);
  void SendQuestion(std::uint64_t id);

  int rank_;
  TcpOptions options_;
  tcp::Socket listener_;
  std::vector<std::vector<std::string>> addresses_;
  tcp::LinkKey key_;
  CloseOnForkDescriptor events_;  ///< the epoll, where there is one
  CloseOnForkDescriptor spare_;   ///< given up for a connection or alarms when no descriptor is left
  std::vector<std::unique_ptr<TcpLink>> links_;  ///< indexed by rank; null without a link
  std::vector<int> linked_;                      ///< the ranks that have one
  bool peers_may_leave_ = false;
  Event interrupt_;
  std::atomic<bool> is_interrupted_ = false;
  bool any_ended_ = false;
  std::vector<int> absent_;  ///< nobody listens any more where these said
  Clock::time_point next_silence_check_{};
  WaitPolicy wait_policy_;
  unsigned looks_ = 0;
  std::optional<tcp::Hello> alarm_;  ///< the first one
  std::map<std::uint64_t, PendingConnection> pending_;
  std::uint64_t next_pending_ = 0;
  std::vector<Dial> dials_;
  std::vector<int> awaited_;  ///< the peers of the Connect that is under way, or of one that failed
  WaitObserver* wait_observer_ = nullptr;
  std::map<int, CallTag> questions_;
  std::map<int, WaitProbe> probes_;                  ///< by origin
  std::set<int> those_who_ask_;                      ///< whether this rank waits
  std::set<int> waiting_;                            ///< those who have said it
  std::map<std::uint64_t, Question> own_questions_;  ///< that are not sent yet
  std::uint64_t next_question_ = 0;
};

}  // namespace warren
