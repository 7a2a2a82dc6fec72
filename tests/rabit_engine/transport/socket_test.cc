#include "rabit_engine/transport/tcp/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <cerrno>
#include <initializer_list>
#include <set>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"
#include "tests/rabit_engine/base/no_descriptor_left.h"

namespace warren::tcp {
namespace {

TEST(Address, IsReadAndShownAlike) {
  for (const char* text : {"127.0.0.1:80", "10.1.2.3:65535", "[::1]:9091", "[2001:db8::7]:1"}) {
    const auto address = Address::Parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(Address, NonsenseIsNone) {
  for (const char* text : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:80x",
                           "host:80", "::1:80", "[::1:80", "[]:80", "1.2.3:80"}) {
    EXPECT_FALSE(Address::Parse(text)) << text;
  }
  EXPECT_FALSE(Address::Parse(std::string_view("[::1\0x]:5", 10)));
}

TEST(Address, AMappedAddressIsShownAsWhatItIs) {
  EXPECT_EQ(Address::Parse("[::ffff:10.0.0.1]:5")->ToString(), "10.0.0.1:5");
}

TEST(ListenAddresses, BeginWithTheOneAskedForAndEndWithLoopback) {
  const Socket listener = ListenAnywhere();
  const auto texts = ListenAddresses(listener.fd(), "127.0.0.1");
  ASSERT_FALSE(texts.empty());
  const std::string port = ":" + std::to_string(Address::Local(listener.fd()).port());
  EXPECT_EQ(texts.front(), "127.0.0.1" + port);
  for (const std::string& text : texts) {
    EXPECT_TRUE(text.ends_with(port)) << text;
    EXPECT_TRUE(Address::Parse(text)) << text;
  }
}

TEST(ListenAnywhere, TakesAFreePortOfARangeOrSaysThatThereIsNone) {
  // A range of two ports, the first of which has just been released.
  const int free = Address::Local(ListenAnywhere().fd()).port();
  const PortRange ports{free, free + 1};
  std::vector<Socket> listeners;
  std::set<int> taken;
  try {
    for (int i = 0; i < 3; ++i) {
      listeners.push_back(ListenAnywhere(ports));
      taken.insert(Address::Local(listeners.back().fd()).port());
    }
    ADD_FAILURE() << "three sockets listen on two ports";
  } catch (const EngineError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("is free on this host to listen for other ranks"));
  }
  EXPECT_EQ(taken.size(), listeners.size());
  for (const int port : taken) EXPECT_TRUE(port == free || port == free + 1) << port;
}

TEST(ListenAddresses, ThatCannotBeListedForWantOfADescriptorAreNoEmptyList) {
  const Socket listener = ListenAnywhere();
  const warren::testing::NoDescriptorLeft none;
  EXPECT_THAT([&] { ListenAddresses(listener.fd(), ""); },
              ::testing::Throws<LocalShortage>(::testing::Property(&LocalShortage::error, EMFILE)));
}

int OwnShortage(std::initializer_list<std::pair<const char*, int>> failures) {
  ConnectFailures all;
  for (const auto& [address, error] : failures) all.Add(*Address::Parse(address), error, ErrorText(error));
  return all.OwnShortage({"10.0.0.1", "127.0.0.1", "::1"});
}

TEST(ConnectFailures, AreThisHostsOwnWhereItHasNothingLeftToConnectWith) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOBUFS}) {
    EXPECT_EQ(OwnShortage({{"10.0.0.2:1", error}}), error);
    EXPECT_EQ(OwnShortage({{"10.0.0.2:1", ECONNREFUSED}, {"10.0.1.2:1", error}}), error)
        << "one was not tried";
  }
  for (const int error : {ECONNREFUSED, ECONNRESET, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, 0}) {
    EXPECT_EQ(OwnShortage({{"10.0.0.2:1", error}}), 0);
  }
}

TEST(ConnectFailures, AreThisHostsOwnWhereItRefusesEachAddressThatLeadsAway) {
  for (const int error : {EADDRNOTAVAIL, EPERM, EACCES}) {
    EXPECT_EQ(OwnShortage({{"10.0.0.2:1", error}}), error);
    EXPECT_EQ(OwnShortage({{"10.0.0.2:1", error}, {"10.0.1.2:1", error}}), error);
    EXPECT_EQ(OwnShortage({{"10.0.0.2:1", error}, {"127.0.0.1:1", ECONNREFUSED}}), error) << "nobody is here";
    EXPECT_EQ(OwnShortage({{"10.0.0.2:1", error}, {"10.0.1.2:1", ECONNREFUSED}}), 0);
  }
  // A peer on this host has ended, and the host has no IPv6.
  EXPECT_EQ(OwnShortage({{"10.0.0.1:1", ECONNREFUSED}, {"[::1]:1", EADDRNOTAVAIL}}), 0);
  // An IPv6 router may be the cause of this error.
  EXPECT_EQ(OwnShortage({{"[2001:db8::7]:1", EACCES}}), 0);
}

std::string CongestionControl(int fd) {
  char name[16] = "";
  socklen_t length = sizeof name;
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
  return name;
}

TEST(PrepareLink, GivesPlainCongestionControlToWhatStaysOnThisMachineOnly) {
  const Socket listener = ListenAnywhere();
  const std::string systems = CongestionControl(listener.fd());
  for (const char* host : {"127.0.0.1", "[::1]"}) {
    if (Address::Local(listener.fd()).family() == AF_INET && host[0] == '[') continue;
    auto address = *Address::Parse(std::string(host) + ":1");
    address.set_port(Address::Local(listener.fd()).port());
    int error = 0;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const Socket connected = ConnectUntil(address, deadline, error);
    ASSERT_TRUE(connected) << ErrorText(error);
    ASSERT_TRUE(WaitFor(listener.fd(), POLLIN, deadline));
    const Socket accepted(accept(listener.fd(), nullptr, nullptr));
    for (const Socket* end : {&connected, &accepted}) {
      PrepareLink(end->fd(), true);
      EXPECT_EQ(CongestionControl(end->fd()), "reno") << host;
    }
  }
  PrepareLink(listener.fd(), true);
  EXPECT_EQ(CongestionControl(listener.fd()), systems);
}

int TcpOption(int fd, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, name, &value, &length), 0);
  return value;
}

TEST(PrepareLink, GivesATimeoutThatIsTooLongForTheKernelTheLongestTimesThatItTakes) {
  const std::chrono::seconds year{31'536'000};
  const Socket socket = ListenAnywhere();
  PrepareLink(socket.fd(), true, year);
  EXPECT_EQ(TcpOption(socket.fd(), TCP_KEEPIDLE), 32'767);
  EXPECT_EQ(TcpOption(socket.fd(), TCP_KEEPINTVL), 32'767);
  SetUserTimeout(socket.fd(), year);
  EXPECT_EQ(TcpOption(socket.fd(), TCP_USER_TIMEOUT), 2'147'483'000);
}

TEST(Resolve, ANameThatDoesNotExistIsNamed) {
  EXPECT_THAT([] { Resolve("no-such-host.invalid", 1); },
              ::testing::ThrowsMessage<EngineError>(::testing::HasSubstr("no-such-host.invalid")));
}

TEST(MillisecondsUntil, RoundsUpSoThatNobodyWakesTooEarly) {
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(MillisecondsUntil(now - std::chrono::seconds(1), 100), 0);
  EXPECT_EQ(MillisecondsUntil(now + std::chrono::hours(1), 100), 100);
  EXPECT_EQ(MillisecondsUntil(std::chrono::steady_clock::time_point::max(), 100), 100);
  EXPECT_GE(MillisecondsUntil(std::chrono::steady_clock::now() + std::chrono::microseconds(900), 100), 1);
}

}  // namespace
}  // namespace warren::tcp
