// The PMI-1 client, with a launcher that gives prepared answers.
#include "rabit_engine/bootstrap/pmi_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"

namespace warren {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

constexpr const char* kInit = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
constexpr const char* kMaxes = "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";
constexpr const char* kName = "cmd=my_kvsname kvsname=kvs_1\n";

/// Answers each line that it reads with the next prepared answer. Closes the connection after the last
/// answer.
class FakeLauncher {
 public:
  explicit FakeLauncher(std::vector<std::string> answers) {
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends_);
    lines_ = std::async(std::launch::async, [this, answers = std::move(answers)] { return Talk(answers); });
  }
  ~FakeLauncher() { close(ends_[0]); }
  int descriptor() const { return ends_[0]; }
  /// Returns the lines that the process sent. Call it once, after the last answer.
  std::vector<std::string> Lines() { return lines_.get(); }

 private:
  std::vector<std::string> Talk(const std::vector<std::string>& answers) const {
    std::vector<std::string> lines;
    for (const std::string& answer : answers) {
      std::string line;
      char c = 0;
      while (read(ends_[1], &c, 1) == 1 && c != '\n') line += c;
      lines.push_back(line);
      // The answer is sent byte by byte, since it may arrive in pieces of any size.
      for (const char each : answer) send(ends_[1], &each, 1, MSG_NOSIGNAL);
    }
    close(ends_[1]);
    return lines;
  }

  int ends_[2] = {-1, -1};
  std::future<std::vector<std::string>> lines_;
};

std::string AllBytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7);
  return bytes;
}

TEST(PmiLine, IsMadeOfWords) {
  EXPECT_THAT(ParsePmiLine("cmd=get_result rc=0 msg=success value=a=b"),
              UnorderedElementsAre(Pair("cmd", "get_result"), Pair("rc", "0"), Pair("msg", "success"),
                                   Pair("value", "a=b")));
  EXPECT_THAT(ParsePmiLine("  cmd=x  odd "), UnorderedElementsAre(Pair("cmd", "x")));
  EXPECT_THAT(ParsePmiLine(""), SizeIs(0));
}

TEST(PmiRecord, ComesBackFromItsPieces) {
  for (const std::size_t bytes : {0, 1, 2, 3, 4, 100, 700, 5000, 70000}) {
    for (const std::size_t max_chars : {16, 100, 900}) {
      const std::vector<std::string> pieces = EncodePmiRecord(AllBytes(bytes), max_chars);
      EXPECT_THAT(pieces, Each(SizeIs(testing::Le(max_chars))));
      EXPECT_EQ(NumPmiPieces(pieces.front()), pieces.size());
      EXPECT_EQ(DecodePmiRecord(pieces), AllBytes(bytes)) << bytes << " bytes by " << max_chars;
    }
  }
}

TEST(PmiRecord, HoldsOnlyCharactersThatALineCanCarry) {
  for (const std::string& piece : EncodePmiRecord(AllBytes(1000), 100)) {
    EXPECT_EQ(piece.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."),
              std::string::npos);
  }
}

TEST(PmiRecord, IsRefusedWhenPiecesAreMissingOrWrong) {
  std::vector<std::string> pieces = EncodePmiRecord(AllBytes(1000), 100);
  pieces.pop_back();
  EXPECT_THROW(DecodePmiRecord(pieces), EngineError);
  for (const char* wrong : {"", "AAAA", "x.AAAA", "0.", "-1.AA", "1.A", "1.A A", "99999999.AA"}) {
    EXPECT_THROW(DecodePmiRecord(std::vector<std::string>{wrong}), EngineError) << wrong;
  }
}

TEST(PmiClient, SaysWhatTheProtocolAsks) {
  FakeLauncher launcher({kInit, kMaxes, kName, "cmd=put_result rc=0 msg=success\n", "cmd=barrier_out rc=0\n",
                         "cmd=get_result rc=0 msg=success value=Zm9v\n", "cmd=finalize_ack\n"});
  PmiClient client(launcher.descriptor(), 10s);
  client.Put("k", "v");
  client.Barrier();
  EXPECT_EQ(client.Get("k"), "Zm9v");
  client.Finalize();
  EXPECT_THAT(launcher.Lines(), ElementsAre("cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_maxes",
                                            "cmd=get_my_kvsname", "cmd=put kvsname=kvs_1 key=k value=v",
                                            "cmd=barrier_in", "cmd=get kvsname=kvs_1 key=k", "cmd=finalize"));
}

TEST(PmiClient, KeepsTheLaunchersLimitsAndTheLimitOfALine) {
  FakeLauncher small({kInit, "cmd=maxes kvsname_max=256 keylen_max=32 vallen_max=100\n", kName});
  const PmiClient of_small(small.descriptor(), 10s);
  EXPECT_EQ(of_small.max_value_chars(), 99U);
  EXPECT_EQ(of_small.max_key_chars(), 31U);
  FakeLauncher large({kInit, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096\n", kName});
  const PmiClient of_large(large.descriptor(), 10s);
  const std::string longest = "cmd=put kvsname=kvs_1 key=" + std::string(of_large.max_key_chars(), 'k') +
                              " value=" + std::string(of_large.max_value_chars(), 'v') + "\n";
  EXPECT_LT(longest.size(), 1024U);
  EXPECT_GT(longest.size(), 1000U);
}

TEST(PmiClient, ARefusalIsShown) {
  FakeLauncher launcher({kInit, kMaxes, kName, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"});
  PmiClient client(launcher.descriptor(), 10s);
  EXPECT_THAT([&] { client.Get("missing"); },
              ThrowsMessage<EngineError>(AllOf(HasSubstr("key=missing"), HasSubstr("rc=-1 key_not_found"))));
}

TEST(PmiClient, AnotherAnswerThanExpectedIsShown) {
  FakeLauncher launcher({"cmd=maxes\n"});
  EXPECT_THAT([&] { PmiClient(launcher.descriptor(), 10s); },
              ThrowsMessage<EngineError>(HasSubstr("answered \"maxes\", expected \"response_to_init\"")));
}

TEST(PmiClient, MissingLimitsAreAnError) {
  FakeLauncher launcher({kInit, "cmd=maxes\n", kName});
  EXPECT_THAT([&] { PmiClient(launcher.descriptor(), 10s); },
              ThrowsMessage<EngineError>(HasSubstr("keylen_max is missing")));
}

TEST(PmiClient, ALauncherThatHasGoneIsAnErrorAndNoSignal) {
  FakeLauncher launcher({kInit, kMaxes, kName});
  PmiClient client(launcher.descriptor(), 10s);
  launcher.Lines();
  EXPECT_THAT([&] { client.Barrier(); }, ThrowsMessage<EngineError>(HasSubstr("\"cmd=barrier_in\"")));
}

TEST(PmiClient, ALauncherThatIsSilentIsWaitedForSoLongAndNoLonger) {
  int ends[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
  EXPECT_THROW(PmiClient(ends[0], 1s), TimedOut);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace warren
