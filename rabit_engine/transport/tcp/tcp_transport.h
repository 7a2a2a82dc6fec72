// Links over TCP: non-blocking sockets under one epoll (tcp_events_epoll.cc), or poll on systems other than
// Linux (tcp_events_poll.cc).
//
// Links are made on demand. The lower of two ranks connects, and the higher one accepts whenever it takes
// events, so they need not be in Connect at the same time. Handshakes never block; a client that sends
// nothing or garbage only occupies a descriptor for a while.
//
// The data stream is raw (tcp_link.h). A rank that gives up reports it over a separate, short-lived
// connection to the listening socket of each peer (an alarm, handshake.h). That works even in the middle of a
// message of many GiB to a peer whose buffers are full, when nothing more can be sent in the data stream. The
// listening socket is polled together with the links, so a waiting rank receives an alarm immediately, and
// its error names the rank that was lost first rather than the neighbor that gave up.
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
  /// Whether to disable Nagle's algorithm (TCP_NODELAY), so that small messages are sent without delay.
  bool no_delay = true;
  /// The time limit for making one TCP connection.
  std::chrono::milliseconds connect_timeout{30'000};
  /// The time without an answer after which a host is considered dead.
  std::chrono::seconds host_timeout = tcp::kHostTimeout;
  /// The number of times all addresses of a peer are tried.
  int connect_retry = 5;
  /// The time limit for a peer to make the same Connect call; 0: none, because the peer may first compute for
  /// an hour. If a peer dies meanwhile, the ranks linked with it notice.
  std::chrono::milliseconds answer_timeout{0};
  /// The TLS context with which all links except adopted ones are encrypted; nullopt: no encryption.
  std::optional<tls::Context> tls;
  Packing packing = Packing::kAuto;
  /// Whether a waiting rank polls for data for 20 microseconds before it yields the core. Set this only if
  /// each rank has its own core.
  bool may_spin = false;
};

class TcpTransport final : public Transport, private TcpLink::Owner {
 public:
  /// `listener`: a listening socket, which this object closes (-1: none, so no links can be accepted).
  /// `addresses[r]`: the addresses ("ip:port") where rank r listens, the most promising first. `key`: the
  /// same on all ranks, and secret from all other processes.
  TcpTransport(int rank, int world_size, int listener, std::vector<std::vector<std::string>> addresses,
               const tcp::LinkKey& key, const TcpOptions& options);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  /// Takes over a connection that the bootstrap has made. Throws Misuse if `peer` is not another rank or
  /// already has a link.
  void Adopt(int peer, tcp::Stream stream);

  int rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(links_.size()); }
  void Connect(std::span<const int> peers) override { ConnectWithin(peers, options_.answer_timeout); }
  /// Sets TcpOptions::answer_timeout, from the next Connect on.
  void set_answer_timeout(std::chrono::milliseconds timeout) { options_.answer_timeout = timeout; }
  /// Like Connect, but the links must be made within `limit` (0: no limit).
  void ConnectWithin(std::span<const int> named, std::chrono::milliseconds limit);
  Link& To(int peer) override;
  void Wait(std::span<const Interest> interests, Clock::time_point deadline) override;
  void SetWaitObserver(WaitObserver* observer) override { wait_observer_ = observer; }
  using Transport::Abort;
  void Abort(int lost_rank, int shortage) noexcept override;
  void ExpectPeersToLeave() override { peers_may_leave_ = true; }
  void AllowInterrupts() override;
  void Interrupt() override;
  void Resume() override { is_interrupted_ = false; }

  /// Whether an address of the rank refuses connections and none accepts one within a tenth of a second:
  /// then the rank's process has probably ended or given up. May be called from any thread.
  bool HasEnded(int peer) const;
  /// Informs a peer that this rank is waiting for it in `call`, so that the peer notices if it is in a
  /// different call. Does not wait. If the peer refuses the connection, ThrowIfLost considers it lost from
  /// then on when it is awaited.
  void Ask(int peer, const CallTag& call);
  bool IsLinked(int peer) const { return links_[peer] != nullptr; }
  /// The last call that each rank has sent here with Ask, according to the events taken so far.
  const std::map<int, CallTag>& questions() const { return questions_; }

  // Like Ask, the functions below do not wait. A message is dropped if several to the same rank are still
  // unsent.
  void Send(int peer, const WaitProbe& probe);
  /// Returns the probes received since the last call, by origin; only the latest from each origin is kept.
  std::map<int, WaitProbe> TakeProbes();
  /// Asks a rank whether it is waiting in a call.
  void AskWhetherItWaits(int peer);
  /// Whether the rank has answered, since it was last asked, that it is waiting.
  bool SaysThatItWaits(int peer) const { return waiting_.contains(peer); }
  /// Answers the ranks that have asked whether this one is waiting.
  void SayThatThisWaits();

  /// Bytes handed to the link with a peer, and taken from it, so far; 0 if there is no link.
  std::uint64_t BytesSent(int peer) const { return links_[peer] ? links_[peer]->bytes_sent() : 0; }
  std::uint64_t BytesReceived(int peer) const { return links_[peer] ? links_[peer]->bytes_received() : 0; }
  /// Whether the peer's buffers are full, so that nothing more can be sent until it reads. False if unknown
  /// or there is no link.
  bool IsFull(int peer) const { return links_[peer] && links_[peer]->IsFull(); }

  // --- for a transport that has other links as well ---

  /// Throws LostPeer if the host of a linked peer has not answered for TcpOptions::host_timeout although the
  /// connection is open. Checks only every few seconds, however often it is called.
  void ThrowIfHostIsSilent();
  /// Returns the peer's name for messages: "rank 3 at 10.0.0.7:4100", or "rank 3" if no address is known.
  std::string PeerName(int peer) const;
  /// A descriptor that becomes readable when TakeEvents has something to do; -1 on systems without epoll.
  int descriptor() const { return events_.fd(); }
  void TakeEvents() { Poll(0); }
  /// Takes events, or reads from the awaited links directly if only a few small reads are awaited; then
  /// returns AnyReady(interests). For callers that poll in a loop.
  bool Look(std::span<const Interest> interests);
  /// True if one of the interests may make progress, according to the events taken so far. Ranks without a
  /// link here are skipped.
  bool AnyReady(std::span<const Interest> interests) const;
  /// Throws LostPeer if a peer is gone or a rank has given up, according to the events taken so far. Call it
  /// only if no interest is ready, because what a peer sent before it gave up may explain why.
  void ThrowIfLost(std::span<const Interest> interests);
  /// For callers that already know that a rank has ended: waits briefly for an alarm with the reason, and
  /// throws LostPeer if one arrives.
  void ThrowIfTold();

 private:
  struct PendingConnection;
  struct Dial;
  struct Question {
    tcp::Stream stream;
    tcp::Hello hello;
    std::size_t next_address = 0;
  };

  /// Waits briefly for the alarm of a rank that has given up.
  void AwaitAlarm();
  [[noreturn]] void ThrowLost(int peer, const std::string& seen) override;
  void NoteEnd() override { any_ended_ = true; }
  void WatchForRoom(const TcpLink& link, bool watch) override;

  int WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline);

  // --- events, in the bits of poll ---
  static constexpr std::uint32_t kStreamEvents = POLLIN | posix::kPeerDone;
  void OpenEvents();
  /// Makes Poll report each change of these events from now on, including those that have already occurred.
  void Watch(int fd, std::uint64_t key, std::uint32_t events);
  /// Takes the events available, after waiting at most `timeout_ms` for the first.
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
  std::set<int> PeersToAlarm(int lost_rank) const;
  void SendAlarms(int lost_rank, int shortage);
  void Tell(const tcp::Hello& hello);
  void ConnectQuestion(Question question);
  std::vector<tcp::Address> AddressesOf(int peer) const;
  void SendQuestion(std::uint64_t id);

  int rank_;
  TcpOptions options_;
  tcp::Socket listener_;
  std::vector<std::vector<std::string>> addresses_;
  tcp::LinkKey key_;
  CloseOnForkDescriptor events_;  ///< the epoll descriptor, if there is one
  CloseOnForkDescriptor spare_;  ///< closed to free a descriptor for a connection or alarms when none is left
  std::vector<std::unique_ptr<TcpLink>> links_;  ///< indexed by rank; null if there is no link
  std::vector<int> linked_;                      ///< the ranks that have a link
  bool peers_may_leave_ = false;
  Event interrupt_;
  std::atomic<bool> is_interrupted_ = false;
  bool any_ended_ = false;
  std::vector<int> absent_;  ///< unlinked ranks that refuse connections
  Clock::time_point next_silence_check_{};
  WaitPolicy wait_policy_;
  unsigned looks_ = 0;
  std::optional<tcp::Hello> alarm_;  ///< the first alarm received
  std::map<std::uint64_t, PendingConnection> pending_;
  std::uint64_t next_pending_ = 0;
  std::vector<Dial> dials_;
  std::vector<int> awaited_;  ///< peers of the current Connect call, or of the last one if it failed
  WaitObserver* wait_observer_ = nullptr;
  std::map<int, CallTag> questions_;
  std::map<int, WaitProbe> probes_;                  ///< by origin
  std::set<int> those_who_ask_;                      ///< ranks that have asked whether this one is waiting
  std::set<int> waiting_;                            ///< ranks that have answered that they are waiting
  std::map<std::uint64_t, Question> own_questions_;  ///< questions, probes and answers not sent yet
  std::uint64_t next_question_ = 0;
};

}  // namespace warren
