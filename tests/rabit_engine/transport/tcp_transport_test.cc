// Several ranks in one process, each with its own transport and, if ranks must act simultaneously, its own
// thread.
#include "rabit_engine/transport/tcp/tcp_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rabit_engine/base/error.h"
#include "tests/rabit_engine/base/no_descriptor_left.h"
#include "tests/rabit_engine/base/on_threads.h"

namespace warren {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::Throws;
using ::testing::ThrowsMessage;
using warren::testing::NoDescriptorLeft;

auto Says(const std::string& text) {
  return Property("what", &std::exception::what, HasSubstr(text));
}
auto Loses(int rank) {
  return Property("rank", &PeerError::rank, rank);
}

constexpr tcp::LinkKey kKey = {1, 2, 3};

/// Ranks that listen and are reached at the loopback address `host`. They have no links yet.
class World {
 public:
  explicit World(int size, TcpOptions options = {}, const char* host = "127.0.0.1") : options_(options) {
    for (int rank = 0; rank < size; ++rank) {
      listeners_.push_back(tcp::ListenAnywhere());
      ports_.push_back(tcp::Address::Local(listeners_.back().fd()).port());
      addresses_.push_back({std::string(host) + ":" + std::to_string(ports_.back())});
    }
    ranks_.resize(static_cast<std::size_t>(size));
  }
  int size() const { return static_cast<int>(ranks_.size()); }
  int port(int rank) const { return ports_[rank]; }
  std::vector<std::vector<std::string>>& addresses() { return addresses_; }

  TcpTransport& operator[](int rank) {
    if (!ranks_[rank]) {
      ranks_[rank] = std::make_unique<TcpTransport>(rank, size(), listeners_[rank].Release(), addresses_,
                                                    kKey, options_);
    }
    return *ranks_[rank];
  }
  /// Closes all sockets of `rank`, as the kernel does for a process that is killed.
  void Kill(int rank) { ranks_[rank].reset(); }

  /// Runs `function` for all ranks, each in its own thread; rethrows the failure of the lowest rank that
  /// failed.
  void OnAll(const std::function<void(TcpTransport&)>& function) {
    for (int rank = 0; rank < size(); ++rank) (*this)[rank];
    OnThreads(size(), [&](int rank) { function((*this)[rank]); });
  }
  /// Links `rank` with `peer`, which must take events meanwhile.
  void Connect(int rank, int peer) { (*this)[rank].Connect({&peer, 1}); }
  void ConnectAll() {
    OnAll([](TcpTransport& transport) {
      std::vector<int> others;
      for (int peer = 0; peer < transport.world_size(); ++peer) {
        if (peer != transport.rank()) others.push_back(peer);
      }
      transport.Connect(others);
    });
  }
  void Link(int a, int b) {
    std::thread other([&, a, b] { Connect(a, b); });
    Connect(b, a);
    other.join();
  }

 private:
  TcpOptions options_;
  std::vector<tcp::Socket> listeners_;
  std::vector<int> ports_;
  std::vector<std::vector<std::string>> addresses_;
  std::vector<std::unique_ptr<TcpTransport>> ranks_;
};

Clock::time_point Soon() {
  return Clock::now() + seconds(10);
}

void Send(TcpTransport& transport, int peer, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t taken = transport.To(peer).TrySend(bytes.data() + done, bytes.size() - done);
    done += taken;
    const Interest interest{peer, true, false};
    if (taken == 0) transport.Wait({&interest, 1}, Soon());
  }
}

std::string Receive(TcpTransport& transport, int peer, std::size_t bytes, std::size_t piece = 1 << 20) {
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const std::size_t got = transport.To(peer).TryReceive(text.data() + done, std::min(piece, bytes - done));
    done += got;
    const Interest interest{peer, false, true};
    if (got == 0) transport.Wait({&interest, 1}, Soon());
  }
  return text;
}

std::string Pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 2654435761u >> 13);
  return text;
}

/// Makes all links, and sends a message over one of them.
void ConnectAllAndSend(World& world) {
  world.ConnectAll();
  Send(world[0], 1, "fine");
  EXPECT_EQ(Receive(world[1], 0, 4), "fine");
}

/// Connects to a rank's port and sends `bytes`.
tcp::Socket UnauthenticatedPeer(int port, std::string_view bytes = {}) {
  int error = 0;
  tcp::Socket socket =
      tcp::ConnectUntil(*tcp::Address::Parse("127.0.0.1:" + std::to_string(port)), Soon(), error);
  EXPECT_EQ(error, 0);
  if (!bytes.empty()) send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return socket;
}

std::string_view BytesOf(const tcp::Hello& hello) {
  return {reinterpret_cast<const char*>(&hello), sizeof hello};
}

tcp::Hello Hello(int from, int to, const tcp::LinkKey& key) {
  tcp::Hello hello;
  hello.from = from;
  hello.to = to;
  return tcp::Proved(hello, key);
}

/// Waits for `peer` and returns the LostPeer that this throws.
LostPeer LossWhileWaitingFor(TcpTransport& transport, int peer, bool to_send = false) {
  const Interest interest{peer, to_send, !to_send};
  try {
    char byte = 0;
    for (;;) {
      if (!to_send) transport.To(peer).TryReceive(&byte, 1);
      transport.Wait({&interest, 1}, Soon());
    }
  } catch (const LostPeer& lost) {
    return lost;
  }
}

TEST(TcpTransport, EveryRankCanLinkWithEveryOther) {
  World world(6);
  world.ConnectAll();
  world.OnAll([](TcpTransport& transport) {
    for (int peer = 0; peer < transport.world_size(); ++peer) {
      if (peer != transport.rank()) Send(transport, peer, "from " + std::to_string(transport.rank()));
    }
    for (int peer = 0; peer < transport.world_size(); ++peer) {
      if (peer == transport.rank()) continue;
      EXPECT_EQ(Receive(transport, peer, 6), "from " + std::to_string(peer));
    }
  });
}

TEST(TcpTransport, LinksWorkOverIpVersion6) {
  int error = 0;
  World world(2, {}, "[::1]");
  if (!tcp::StartConnect(*tcp::Address::Parse("[::1]:" + std::to_string(world.port(0))), error)) {
    GTEST_SKIP() << "this machine has no IPv6 loopback";
  }
  world.ConnectAll();
  Send(world[0], 1, "six");
  EXPECT_EQ(Receive(world[1], 0, 3), "six");
}

class Streams : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(SleepingAndSpinning, Streams, ::testing::Bool());

TEST_P(Streams, KeepTheirOrderWhateverTheSizesOfTheCalls) {
  TcpOptions options;
  options.may_spin = GetParam();
  World world(2, options);
  world.ConnectAll();
  const std::string sent = Pattern(8 << 20);
  for (const std::size_t piece :
       {std::size_t{977}, std::size_t{2047}, std::size_t{5000}, std::size_t{1} << 20}) {
    std::thread sender([&] { Send(world[0], 1, sent); });
    EXPECT_TRUE(Receive(world[1], 0, sent.size(), piece) == sent) << "pieces of " << piece;
    sender.join();
  }
}

int Unread(TcpTransport& transport, int peer) {
  int unread = 0;
  ioctl(static_cast<TcpLink&>(transport.To(peer)).fd(), FIONREAD, &unread);
  return unread;
}

TEST(TcpTransport, AShortMessageIsReadByTheLookThatFindsIt) {
  World world(4);
  world.ConnectAll();
  char byte = 0;
  for (int peer = 0; peer < 3; ++peer) EXPECT_EQ(world[3].To(peer).TryReceive(&byte, 1), 0U);
  for (int peer = 0; peer < 3; ++peer) Send(world[peer], 3, "x");
  while (Unread(world[3], 0) + Unread(world[3], 1) + Unread(world[3], 2) < 3) {
  }
  const Interest interests[] = {{0, false, true}, {1, false, true}, {2, false, true}};
  EXPECT_TRUE(world[3].Look({interests, 1}));
  EXPECT_EQ(Unread(world[3], 0), 0) << "no system call is left to do";
  EXPECT_TRUE(world[3].Look(interests));
  EXPECT_EQ(Unread(world[3], 1), 1) << "of many links epoll tells which";
  for (int peer = 0; peer < 3; ++peer) EXPECT_EQ(Receive(world[3], peer, 1), "x");
}

TEST(TcpTransport, ARankThatLooksForAShortMessageHearsThatAnotherGaveUp) {
  World world(3);
  world.ConnectAll();
  char byte = 0;
  EXPECT_EQ(world[2].To(0).TryReceive(&byte, 1), 0U);
  world[1].Abort(1);
  const Interest interest{0, false, true};
  const Clock::time_point end = Soon();
  bool heard = false;
  while (!heard && Clock::now() < end) {
    world[2].Look({&interest, 1});
    try {
      world[2].ThrowIfLost({&interest, 1});
    } catch (const LostPeer& lost) {
      EXPECT_EQ(lost.rank(), 1);
      heard = true;
    }
  }
  EXPECT_TRUE(heard);
}

TEST(TcpTransport, AQuestionDoesNotGoToAnAddressThatThisHostHasToo) {
  World world(2);
  world.addresses()[1] = {"127.0.0.1:" + std::to_string(world.port(0)),
                          "127.0.0.2:" + std::to_string(world.port(1))};
  world[0].Ask(1, CallTag{});
  const Clock::time_point end = Soon();
  while (world[1].questions().empty() && Clock::now() < end) {
    world[0].TakeEvents();
    world[1].TakeEvents();
  }
  EXPECT_TRUE(world[1].questions().contains(0));
}

TEST(TcpTransport, ARankHasEndedEvenIfAnotherOneListensWhereThisHostHasItsAddressToo) {
  World world(2);
  world.addresses()[1] = {"127.0.0.1:" + std::to_string(world.port(0)),
                          "127.0.0.2:" + std::to_string(world.port(1))};
  world[1];
  EXPECT_FALSE(world[0].HasEnded(1));
  world.Kill(1);
  EXPECT_TRUE(world[0].HasEnded(1));
}

TEST(TcpTransport, ALinkAskedForEarlyIsThereWhenThePeerComesToIt) {
  World world(3);
  world.Link(1, 2);
  std::thread first([&] {
    world.Connect(0, 2);
    Send(world[0], 2, "early");
  });
  // Meanwhile, rank 2 waits for rank 1.
  std::thread second([&] {
    std::this_thread::sleep_for(milliseconds(50));
    Send(world[1], 2, "x");
  });
  EXPECT_EQ(Receive(world[2], 1, 1), "x");
  world.Connect(2, 0);
  EXPECT_EQ(Receive(world[2], 0, 5), "early");
  first.join();
  second.join();
}

TEST(TcpTransport, SilentUnauthenticatedPeersHoldNobodyUp) {
  World world(2);
  std::vector<tcp::Socket> unauthenticated;
  for (int i = 0; i < 20; ++i) unauthenticated.push_back(UnauthenticatedPeer(world.port(1)));
  world.ConnectAll();
  for (const tcp::Socket& socket : unauthenticated) {
    pollfd end{socket.fd(), POLLRDHUP, 0};
    EXPECT_EQ(poll(&end, 1, 0), 0) << "the ranks connected only after a silent peer was given up";
  }
}

TEST(TcpTransport, AnUnauthenticatedPeerWhoSaysNothingGoesAfterAWhileThoughNobodyElseComes) {
  TcpOptions options;
  options.connect_timeout = seconds(1);
  World world(2, options);
  const tcp::Socket unauthenticated = UnauthenticatedPeer(world.port(1));
  world[1].TakeEvents();
  pollfd end{unauthenticated.fd(), POLLRDHUP, 0};
  for (int look = 0; look < 100 && poll(&end, 1, 100) == 0; ++look) world[1].TakeEvents();
  EXPECT_NE(end.revents & POLLRDHUP, 0);
}

TEST(TcpTransport, AnUnauthenticatedPeerEndsNoRankThatHasNoDescriptorLeft) {
  World world(2);
  world[0];
  world[1];
  const tcp::Socket unauthenticated = UnauthenticatedPeer(world.port(1));
  {
    const NoDescriptorLeft none;
    EXPECT_LT(dup(unauthenticated.fd()), 0);
    for (int look = 0; look < 10; ++look) EXPECT_NO_THROW(world[1].TakeEvents());
  }
  ConnectAllAndSend(world);
}

TEST(TcpTransport, ARankThatHasNoDescriptorToConnectWithBlamesNoPeer) {
  TcpOptions options;
  options.connect_retry = 2;
  World world(2, options);
  world[0];
  world[1];
  const NoDescriptorLeft none;
  EXPECT_THAT([&] { world.Connect(0, 1); },
              Throws<LocalShortage>(AllOf(Property(&LocalShortage::error, EMFILE),
                                          Says("rank 0 cannot link with rank 1"), Says("Too many open files"),
                                          Says("files that this process may open (ulimit -n) are open"))));
}

TEST(TcpTransport, ARankThatGivesUpForAShortageOfItsOwnTellsAllThoughItHasNoDescriptorLeft) {
  World world(4);
  world.Link(0, 1);
  world.Link(1, 2);
  world.Link(2, 3);
  {
    const NoDescriptorLeft none;
    world[1].Abort(1, EMFILE);
  }
  for (const int rank : {0, 2}) {
    const LostPeer lost = LossWhileWaitingFor(world[rank], 1);
    EXPECT_EQ(lost.rank(), 1);
    EXPECT_EQ(lost.shortage(), EMFILE);
    EXPECT_THAT(lost.what(), HasSubstr("it gave up for a shortage of its own (Too many open files)"));
  }
  world[2].Abort(1, EMFILE);
  const LostPeer told = LossWhileWaitingFor(world[3], 2);
  EXPECT_EQ(told.rank(), 1);
  EXPECT_THAT(told.what(), HasSubstr("it gave up for a shortage of its own (Too many open files)"));
}

TEST(TcpTransport, ARankThatHasNoDescriptorForItsFirstLinksTellsThoseThatItAwaits) {
  World world(3);
  world[2];
  std::vector<tcp::Socket> dialing;
  for (int i = 0; i < 2; ++i) dialing.push_back(UnauthenticatedPeer(world.port(2)));
  {
    const NoDescriptorLeft none;
    const std::array peers{0, 1};
    for (const int from : {0, 1}) {
      const tcp::Hello hello = Hello(from, 2, kKey);
      send(dialing[from].fd(), &hello, sizeof hello, MSG_NOSIGNAL);
    }
    EXPECT_THROW(world[2].Connect(peers), LocalShortage);
    world[2].Abort(2, EMFILE);
  }
  for (const int rank : {0, 1}) {
    world[rank].TakeEvents();
    EXPECT_THAT([&] { world[rank].ThrowIfLost({}); },
                Throws<LostPeer>(AllOf(Loses(2), Property(&LostPeer::shortage, EMFILE))))
        << rank;
  }
}

TEST(TcpTransport, AnAnsweredConnectionIsKeptThoughItTookTheLastDescriptor) {
  World world(2);
  world[1];
  const tcp::Hello hello = Hello(0, 1, kKey);
  const tcp::Socket rank_0 = UnauthenticatedPeer(world.port(1), BytesOf(hello));
  {
    const NoDescriptorLeft none;
    world[1].TakeEvents();
  }
  tcp::Hello answer;
  ASSERT_TRUE(tcp::WaitFor(rank_0.fd(), POLLIN, Soon()));
  ASSERT_EQ(recv(rank_0.fd(), &answer, sizeof answer, MSG_WAITALL), static_cast<ssize_t>(sizeof answer));
  const wire::Digest proof = tcp::LinkProof(kKey, hello, answer);
  send(rank_0.fd(), &proof, sizeof proof, MSG_NOSIGNAL);
  for (int look = 0; look < 100 && !world[1].IsLinked(0); ++look) {
    world[1].TakeEvents();
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_TRUE(world[1].IsLinked(0));
}

TEST(TcpTransport, ARankThatCannotTakeTheConnectionOfASecondRankSaysSoAndKeepsTheFirst) {
  World world(3);
  world[2];
  std::vector<tcp::Socket> peers;
  for (const int from : {0, 1}) {
    peers.push_back(UnauthenticatedPeer(world.port(2), BytesOf(Hello(from, 2, kKey))));
  }
  const NoDescriptorLeft none;
  EXPECT_THAT([&] { world[2].TakeEvents(); },
              Throws<LocalShortage>(AllOf(Property(&LocalShortage::error, EMFILE),
                                          Says("rank 2 cannot accept a connection from another rank"))));
  pollfd answer{peers[0].fd(), POLLIN | POLLRDHUP, 0};
  EXPECT_EQ(poll(&answer, 1, 10'000), 1);
  EXPECT_EQ(answer.revents, POLLIN) << "it was answered, and closed";
}

TEST(TcpTransport, NonsenseOnTheListenerIsDropped) {
  World world(2);
  std::vector<tcp::Socket> unauthenticated;
  for (const std::string& text :
       {std::string("GET / HTTP/1.1\r\nHost: somebody\r\n\r\n"), std::string(5000, '\xff')}) {
    unauthenticated.push_back(UnauthenticatedPeer(world.port(1), text));
  }
  ConnectAllAndSend(world);
  for (const tcp::Socket& unauthenticated : unauthenticated)
    EXPECT_TRUE(tcp::WaitFor(unauthenticated.fd(), POLLRDHUP, Soon()));
}

TEST(TcpTransport, WhoDoesNotKnowTheJobsSecretIsDropped) {
  World world(2);
  constexpr tcp::LinkKey kOther = {1, 2, 4};
  tcp::Hello hello = Hello(0, 1, kOther);
  const tcp::Socket link = UnauthenticatedPeer(world.port(1), BytesOf(hello));
  hello.kind = tcp::HelloKind::kAlarm;
  hello.lost = 0;
  const tcp::Socket alarm = UnauthenticatedPeer(world.port(1), BytesOf(tcp::Proved(hello, kOther)));
  ConnectAllAndSend(world);
}

TEST(TcpTransport, WithTlsALinkInTheClearIsDroppedWhateverItKnows) {
  TcpOptions options;
  try {
    options.tls.emplace("links", tls::Secret{1, 2, 3});
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << "SKIPPED: " << error.what();
  }
  World world(2, options);
  const tcp::Socket link = UnauthenticatedPeer(world.port(1), BytesOf(Hello(0, 1, kKey)));
  ConnectAllAndSend(world);
  EXPECT_TRUE(tcp::WaitFor(link.fd(), POLLRDHUP, Soon()));
  char byte = 0;
  EXPECT_LE(recv(link.fd(), &byte, 1, 0), 0) << "it is answered";
}

TEST(TcpTransport, MoreStrangersThanItCaresForCostNoLink) {
  World world(2);
  world[1];
  std::vector<tcp::Socket> unauthenticated;
  for (int i = 0; i < 400; ++i) unauthenticated.push_back(UnauthenticatedPeer(world.port(1)));
  ConnectAllAndSend(world);
}

TEST(TcpTransport, AnAddressWhereSomebodyElseAnswersIsPassedOver) {
  World world(3);
  world.addresses()[2].insert(world.addresses()[2].begin(), world.addresses()[1].front());
  world[0];
  world[1];
  world[2];
  // While it waits, rank 1 receives the hello that is meant for rank 2, and ignores it.
  std::atomic<bool> over{false};
  std::thread second([&] {
    while (!over) {
      try {
        world[1].Wait({}, Clock::now() + milliseconds(10));
      } catch (const TimedOut&) {
      }
    }
  });
  world.Link(0, 2);
  over = true;
  second.join();
  world.Link(0, 1);
  Send(world[0], 2, "for 2");
  Send(world[0], 1, "for 1");
  EXPECT_EQ(Receive(world[2], 0, 5), "for 2");
  EXPECT_EQ(Receive(world[1], 0, 5), "for 1");
}

TEST(TcpTransport, WaitReturnsAtOnceWhileSomethingIsLeftToRead) {
  World world(2);
  world.ConnectAll();
  Send(world[1], 0, std::string(8000, 'x'));
  world[0].TakeEvents();                        // epoll reports the data only once
  for (const std::size_t piece : {4000, 10}) {  // read directly, and through the buffer for small reads
    EXPECT_EQ(Receive(world[0], 1, piece), std::string(piece, 'x'));
    const Interest interest{1, false, true};
    EXPECT_NO_THROW(world[0].Wait({&interest, 1}, Clock::now() + seconds(1))) << piece;
  }
}

TEST(TcpTransport, APeerThatCannotBeReachedIsLostAndItsAddressesAreNamed) {
  TcpOptions options;
  options.connect_retry = 2;
  World world(2, options);
  const std::string address = world.addresses()[1].front();
  world[1];
  world.Kill(1);
  EXPECT_THAT([&] { world.Connect(0, 1); },
              Throws<LostPeer>(AllOf(Loses(1), Says(address), Says("Connection refused"))));
}

TEST(TcpTransport, APeerThatDoesNotComeToTheSameCallIsWaitedForAsLongAsAllowed) {
  TcpOptions options;
  options.answer_timeout = milliseconds(100);
  for (const int rank : {0, 1}) {  // the rank that connects and the rank that accepts
    World world(2, options);
    world[0];
    world[1];
    EXPECT_THROW(world.Connect(rank, 1 - rank), TimedOut) << rank;
  }
}

TEST(TcpTransport, APeerThatEndsIsNoticedEvenWhenNobodyWaitsForIt) {
  World world(3);
  world.ConnectAll();
  world.Kill(2);
  const LostPeer lost = LossWhileWaitingFor(world[0], 1);
  EXPECT_EQ(lost.rank(), 2);
  EXPECT_THAT(lost.what(), HasSubstr("rank 0 lost rank 2 at 127.0.0.1:"));
  EXPECT_THAT(lost.what(), HasSubstr("closed the connection"));
}

TEST(TcpTransport, WhatAPeerSentBeforeItEndedCanStillBeRead) {
  World world(2);
  world.ConnectAll();
  Send(world[1], 0, Pattern(100'000));
  world.Kill(1);
  EXPECT_TRUE(Receive(world[0], 1, 100'000) == Pattern(100'000));
  EXPECT_EQ(LossWhileWaitingFor(world[0], 1).rank(), 1);
}

TEST(TcpTransport, ARankThatGivesUpNamesTheOneThatWasLost) {
  World world(4);
  for (int rank = 0; rank < 3; ++rank) world.Link(rank, rank + 1);  // a chain: only 2 has a link to 3
  world.Kill(3);
  const LostPeer seen = LossWhileWaitingFor(world[2], 1);
  EXPECT_EQ(seen.rank(), 3);
  world[2].Abort(seen.rank());
  const LostPeer told = LossWhileWaitingFor(world[1], 0);
  EXPECT_EQ(told.rank(), 3);
  EXPECT_THAT(told.what(), HasSubstr("rank 2"));
  world[1].Abort(told.rank());
  EXPECT_EQ(LossWhileWaitingFor(world[0], 1).rank(), 3);
}

TEST(TcpTransport, ARankThatGivesUpIsHeardThroughFullBuffers) {
  World world(2);
  world.ConnectAll();
  const std::string much = Pattern(1 << 20);
  while (world[0].To(1).TrySend(much.data(), much.size()) > 0) {
  }
  while (world[1].To(0).TrySend(much.data(), much.size()) > 0) {
  }
  world[0].Abort(0);
  const LostPeer lost = LossWhileWaitingFor(world[1], 0, /*to_send=*/true);
  EXPECT_EQ(lost.rank(), 0);
  EXPECT_THAT(lost.what(), HasSubstr("gave up after an error"));
}

TEST(TcpTransport, AnAlarmIsHeardWhileConnecting) {
  World world(3);
  world.Link(0, 1);
  world[2];
  std::thread giving_up([&] {
    std::this_thread::sleep_for(milliseconds(50));
    world[0].Abort(2);
  });
  EXPECT_THAT([&] { world.Connect(1, 2); }, Throws<LostPeer>(Loses(2))) << "rank 2 is alive but never comes";
  giving_up.join();
}

TEST(TcpTransport, AnAlarmIsHeardByWhoHasALinkThatItsOtherEndHasNotYetTaken) {
  bool was_half_linked = false;
  for (int attempt = 0; attempt < 100 && !was_half_linked; ++attempt) {
    World world(3);
    TcpTransport& answers = world[1];
    std::atomic<bool> is_linked = false;
    world[0];
    std::thread dials([&] {
      world.Connect(0, 1);
      is_linked = true;
    });
    while (!is_linked) {
      answers.TakeEvents();
      std::this_thread::sleep_for(milliseconds(5));
    }
    dials.join();
    was_half_linked = !answers.IsLinked(0);
    answers.Abort(2);
    const LostPeer lost = LossWhileWaitingFor(world[0], 1);
    EXPECT_EQ(lost.rank(), 2) << lost.what();
  }
  EXPECT_TRUE(was_half_linked);
}

TEST(TcpTransport, ADeadlineThatPassesNamesThoseWhoAreAwaited) {
  World world(3);
  world.ConnectAll();
  const Interest interests[] = {{1, false, true}};
  // The first wait returns immediately, as rank 0 has not tried to receive yet.
  world[0].Wait(interests, Clock::now() + milliseconds(30));
  char byte = 0;
  world[0].To(1).TryReceive(&byte, 1);
  EXPECT_THAT([&] { world[0].Wait(interests, Clock::now() + milliseconds(30)); },
              ThrowsMessage<TimedOut>(HasSubstr("s for rank 1 at 127.0.0.1")));
}

TEST(TcpTransport, PeersMayLeaveDuringTheLastBarrierButNotTheOneAwaited) {
  World world(3);
  world.ConnectAll();
  world[0].ExpectPeersToLeave();
  world.Kill(2);
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(200));
    Send(world[1], 0, "x");
  });
  EXPECT_EQ(Receive(world[0], 1, 1), "x");
  late.join();
  world.Kill(1);
  EXPECT_EQ(LossWhileWaitingFor(world[0], 1).rank(), 1);
}

TEST(TcpTransport, DataForALaterCallDoesNotKeepAWaitingRankBusy) {
  World world(3);
  world.ConnectAll();
  Send(world[2], 0, "for later");
  char byte = 0;
  world[0].To(1).TryReceive(&byte, 1);
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(300));
    Send(world[1], 0, "x");
  });
  timespec begin{};
  timespec end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  EXPECT_EQ(Receive(world[0], 1, 1), "x");
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  const double seconds_used = static_cast<double>(end.tv_sec - begin.tv_sec) +
                              1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
  EXPECT_LT(seconds_used, 0.02);
  late.join();
  EXPECT_EQ(Receive(world[0], 2, 9), "for later");
}

TEST(TcpTransport, ARankWithoutALinkIsTheCallersMistake) {
  World world(2);
  EXPECT_THROW(world[0].To(1), Misuse);
  EXPECT_THROW(world[0].To(7), Misuse);
}

}  // namespace
}  // namespace warren
