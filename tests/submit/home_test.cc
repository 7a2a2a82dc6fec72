// Where a gang's scripts call home, and who else does.
#include "submit/cluster/home.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "wire/job_token.h"

namespace warren::submit {
namespace {

using boost::asio::ip::tcp;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr char kMark[] = "wmark";

class HomeTest : public testing::Test {
 protected:
  boost::asio::io_context io;
  std::string key = wire::JobToken::Random().ToHex();
  std::vector<std::pair<std::size_t, std::string>> arrived;
  std::vector<std::pair<std::size_t, std::string>> keyless;
  std::string notes;
  std::string written;
  Home home{io,
            kMark,
            key,
            "127.0.0.1",
            0,
            0,
            {[this](std::size_t index, const std::string& host) { arrived.emplace_back(index, host); },
             [this](std::size_t, Stream, std::string_view bytes) { written += bytes; },
             [this](std::size_t, const Note& note) { notes += note.kind; }, [](std::size_t) {},
             [this](std::size_t index, const std::string& host) { keyless.emplace_back(index, host); }}};

  tcp::socket Call(const std::string& said) {
    tcp::socket socket(io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), home.port()});
    boost::asio::write(socket, boost::asio::buffer(said));
    return socket;
  }
  void Run() { io.run_for(std::chrono::milliseconds(20)); }
  /// Runs until it is so; false when it is not for long.
  template <typename Condition>
  bool Await(const Condition& condition) {
    for (int look = 0; look < 500 && !condition(); ++look) Run();
    return condition();
  }
  /// Whether home has closed this connection, as far as has come here.
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

TEST_F(HomeTest, AScriptShowsTheKeyAndIsHeard) {
  const tcp::socket script = Call(key + " 2 err call host\nhello\n\036" + kMark + " 2 start 0 17 host\036\n");
  EXPECT_TRUE(Await([this] { return notes == "start"; }));
  EXPECT_THAT(arrived, ElementsAre(Pair(2, "host")));
  EXPECT_EQ(written, "hello\n");
  EXPECT_TRUE(home.IsHere(2));
}

TEST_F(HomeTest, TheMarkWhichOthersMaySeeIsNoKey) {
  for (const std::string& word : {std::string(kMark), key.substr(1), std::string("x") + key, std::string()}) {
    for (const char* const stream : {"err", "out"}) {
      tcp::socket stranger =
          Call(word + " 1 " + stream + " forged evilhost\n\036" + kMark + " 1 fail boo\036\n");
      EXPECT_TRUE(IsClosedAtLast(stranger)) << word;
    }
  }
  EXPECT_THAT(arrived, IsEmpty());
  EXPECT_EQ(written + notes, "");
}

TEST_F(HomeTest, AScriptThatCannotReadTheKeyIsToldOfAndNoMore) {
  tcp::socket script = Call(std::string(kMark) + " 1 keyless call ho\033[31mst\n");
  EXPECT_TRUE(IsClosedAtLast(script));
  EXPECT_THAT(keyless, ElementsAre(Pair(1, testing::Not(testing::HasSubstr("\033")))));
  EXPECT_FALSE(home.IsConnected(1));
}

TEST_F(HomeTest, SilentConnectionsMakeRoomForScripts) {
  std::vector<tcp::socket> silent;
  for (int i = 0; i < 1100; ++i) {
    silent.push_back(Call(""));
    if (i % 100 == 0) Run();
  }
  const tcp::socket script = Call(key + " 0 err call host\n");
  EXPECT_TRUE(Await([this] { return home.IsHere(0); }));
  EXPECT_TRUE(IsClosedAtLast(silent.front()));
  EXPECT_FALSE(IsClosed(silent.back()));
}

}  // namespace
}  // namespace warren::submit
