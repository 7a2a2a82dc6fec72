// The rendezvous port of a gang, to which its agents connect, and to which strangers may connect.
#include "submit/cluster/agent_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "submit/cluster/gang.h"
#include "wire/job_token.h"

namespace warren::submit {
namespace {

using boost::asio::ip::tcp;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr char kMark[] = "wmark";

class AgentServerTest : public testing::Test {
 protected:
  boost::asio::io_context io;
  std::string key = wire::JobToken::Random().ToHex();
  std::vector<std::pair<std::size_t, std::string>> arrived;
  std::vector<std::pair<std::size_t, std::string>> keyless;
  std::string messages;
  std::string written;
  AgentServer server{io, kMark, key, 1, "127.0.0.1", 0, 0, [this](const AgentEvent& event) { Take(event); }};

  void Take(const AgentEvent& event) {
    if (const auto* const came = std::get_if<AgentArrived>(&event))
      arrived.emplace_back(came->index, came->host);
    if (const auto* const said = std::get_if<AgentOutput>(&event)) written += said->bytes;
    if (const auto* const told = std::get_if<AgentSaid>(&event)) messages += told->message.kind;
    if (const auto* const came = std::get_if<AgentKeyless>(&event))
      keyless.emplace_back(came->index, came->host);
  }

  tcp::socket Call(const std::string& said) {
    tcp::socket socket(io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), server.port()});
    boost::asio::write(socket, boost::asio::buffer(said));
    return socket;
  }
  void Run() { io.run_for(std::chrono::milliseconds(20)); }
  /// Runs the event loop until the condition holds. Returns false if it still does not hold after 500 checks.
  template <typename Condition>
  bool Await(const Condition& condition) {
    for (int look = 0; look < 500 && !condition(); ++look) Run();
    return condition();
  }
  /// Whether this end has seen the server close the connection.
  static bool IsClosed(tcp::socket& socket) {
    socket.non_blocking(true);
    boost::system::error_code error;
    char byte = 0;
    socket.read_some(boost::asio::buffer(&byte, 1), error);
    return error && error != boost::asio::error::would_block;
  }
  bool IsClosedAtLast(tcp::socket& socket) {
    return Await([&] { return IsClosed(socket); });
  }
};

TEST_F(AgentServerTest, AnAgentShowsTheKeyAndIsHeard) {
  const tcp::socket agent = Call(key + " 2 err call host\nhello\n\036" + kMark + " 2 start 0 17 host\036\n");
  EXPECT_TRUE(Await([this] { return messages == "start"; }));
  EXPECT_THAT(arrived, ElementsAre(Pair(2, "host")));
  EXPECT_EQ(written, "hello\n");
}

TEST_F(AgentServerTest, TheMarkWhichOthersMaySeeIsNoKey) {
  for (const std::string& word : {std::string(kMark), key.substr(1), std::string("x") + key, std::string()}) {
    for (const char* const stream : {"err", "out"}) {
      tcp::socket stranger =
          Call(word + " 1 " + stream + " forged evilhost\n\036" + kMark + " 1 fail boo\036\n");
      EXPECT_TRUE(IsClosedAtLast(stranger)) << word;
    }
  }
  EXPECT_THAT(arrived, IsEmpty());
  EXPECT_EQ(written + messages, "");
}

TEST_F(AgentServerTest, AnAgentThatCannotReadTheKeyIsToldOfAndNoMore) {
  tcp::socket agent = Call(std::string(kMark) + " 1 keyless call ho\033[31mst\n");
  EXPECT_TRUE(IsClosedAtLast(agent));
  EXPECT_THAT(keyless, ElementsAre(Pair(1, testing::Not(testing::HasSubstr("\033")))));
  EXPECT_THAT(arrived, IsEmpty());
}

TEST_F(AgentServerTest, SilentConnectionsMakeRoomForAgents) {
  std::vector<tcp::socket> silent;
  for (int i = 0; i < 1100; ++i) {
    silent.push_back(Call(""));
    if (i % 100 == 0) Run();
  }
  const tcp::socket agent = Call(key + " 0 err call host\n");
  EXPECT_TRUE(Await([this] { return !arrived.empty(); }));
  EXPECT_TRUE(IsClosedAtLast(silent.front()));
  EXPECT_FALSE(IsClosed(silent.back()));
}

TEST_F(AgentServerTest, AllProcessesOfAJobMayConnectAtOnce) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit before = files;
  files.rlim_cur = 512;  // at most 128 unidentified connections in a small job
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  AgentServer larger(io, kMark, key, 100, "127.0.0.1", 0, 0,
                     [this](const AgentEvent& event) { Take(event); });
  setrlimit(RLIMIT_NOFILE, &before);
  std::vector<tcp::socket> agents;
  for (int i = 0; i < 150; ++i) {
    agents.emplace_back(io);
    agents.back().connect({boost::asio::ip::make_address("127.0.0.1"), larger.port()});
  }
  Run();
  for (std::size_t i = 0; i < agents.size(); ++i)
    boost::asio::write(agents[i], boost::asio::buffer(fmt::format("{} {} err call host\n", key, i)));
  EXPECT_TRUE(Await([&] { return arrived.size() == agents.size(); })) << arrived.size();
}

TEST(PortsOfAgents, LeaveTheFirstPortToTheTracker) {
  Options options;
  EXPECT_THAT(PortsOfAgents(options), Pair(9092, 9999));
  options.port = options.port_end = 20'000;
  EXPECT_THAT(PortsOfAgents(options), Pair(20'001, 20'001));
  options.port_end_was_chosen = true;
  EXPECT_THAT(PortsOfAgents(options), Pair(20'000, 20'000)) << "the user has chosen a single port";
  options.port_end = 20'005;
  EXPECT_THAT(PortsOfAgents(options), Pair(20'001, 20'005));
  options.no_tracker = true;
  EXPECT_THAT(PortsOfAgents(options), Pair(20'000, 20'005));
  options.num_servers = 1;
  EXPECT_THAT(PortsOfAgents(options), Pair(20'001, 20'005)) << "there is a scheduler";
  options = {};
  options.port = options.port_end = 65'535;
  EXPECT_THAT(PortsOfAgents(options), Pair(65'535, 65'535));
  options.port = 0;
  EXPECT_THAT(PortsOfAgents(options), Pair(0, 65'535)) << "any port";
}

}  // namespace
}  // namespace warren::submit
