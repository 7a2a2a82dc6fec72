// Ranks that meet at rank 0, each in a thread, and other peers that connect to rank 0.
#include "rabit_engine/bootstrap/slurm_meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/bootstrap/slurm_stream.h"
#include "wire/bytes.h"

namespace warren {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// A listening socket on a free port; the port is free again when this object is destroyed.
class Holder {
 public:
  Holder() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    listen(socket_.fd(), 16);
    socklen_t size = sizeof address;
    getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  tcp::Socket socket_;
  int port_ = 0;
};

int FreePort() {
  return Holder().port();
}

SlurmStep StepOf(int rank, int world_size, const std::vector<int>& ports) {
  SlurmStep step;
  step.id = "77.0";
  step.rank = rank;
  step.world_size = world_size;
  step.meeting_host = "127.0.0.1";
  step.meeting_ports = ports;
  step.token = "token";
  return step;
}

/// Runs `function` for all steps, each in its own thread. Returns each step's error, or an empty string, in
/// the order of `steps`. `tls` is indexed by rank; if it is empty, no step uses TLS.
std::vector<std::string> RunAll(const std::vector<SlurmStep>& steps, std::chrono::seconds timeout,
                                const std::function<void(Bootstrap&)>& function,
                                const std::vector<std::optional<tls::Context>>& tls = {}) {
  std::vector<std::future<std::string>> runs;
  for (const SlurmStep& step : steps) {
    const auto own = tls.empty() ? std::nullopt : tls[static_cast<std::size_t>(step.rank)];
    runs.push_back(std::async(std::launch::async, [&function, step, timeout, own]() -> std::string {
      try {
        const auto bootstrap = MeetAtRankZero(step, timeout, own);
        function(*bootstrap);
      } catch (const EngineError& error) {
        return error.what();
      }
      return "";
    }));
  }
  std::vector<std::string> errors;
  for (auto& run : runs) errors.push_back(run.get());
  return errors;
}

std::string RecordOf(int rank, int round) {
  return std::string(static_cast<std::size_t>(rank * 3000 + round), static_cast<char>('a' + rank));
}

void Exchange(Bootstrap& bootstrap) {
  for (int round = 0; round < 3; ++round) {
    const auto records = bootstrap.Allgather(RecordOf(bootstrap.rank(), round));
    ASSERT_EQ(static_cast<int>(records.size()), bootstrap.world_size());
    for (int rank = 0; rank < bootstrap.world_size(); ++rank) EXPECT_EQ(records[rank], RecordOf(rank, round));
  }
  bootstrap.Shutdown();
}

std::vector<SlurmStep> World(int size, const std::vector<int>& ports) {
  std::vector<SlurmStep> steps;
  for (int rank = 0; rank < size; ++rank) steps.push_back(StepOf(rank, size, ports));
  return steps;
}

/// Connects to rank 0, which may not listen yet.
DeadlineStream ConnectOnceOpen(int port, DeadlineStream::Clock::time_point deadline) {
  for (;;) {
    try {
      return DeadlineStream::Connect("127.0.0.1", port, deadline);
    } catch (const EngineError&) {
      if (DeadlineStream::Clock::now() > deadline) throw;
      std::this_thread::sleep_for(10ms);
    }
  }
}

/// The greeting of a rank in a world of two.
std::string Greeting(const std::string& step, const std::string& token, int rank) {
  return wire::Writer().Int(kMeetingMagic).String(step).String(token).Int(rank).Int(2).Take();
}

TEST(SlurmMeeting, EveryRankGetsEveryRecord) {
  EXPECT_THAT(RunAll(World(7, {FreePort()}), 30s, Exchange), Each(""));
}

std::optional<tls::Context> TlsOf(std::uint8_t secret) {
  tls::Secret bytes;
  bytes.fill(secret);
  try {
    return tls::Context("meeting", bytes);
  } catch (const std::runtime_error&) {
    return std::nullopt;  // this build has no TLS
  }
}

TEST(SlurmMeeting, EveryRankGetsEveryRecordEncrypted) {
  if (!TlsOf(1)) GTEST_SKIP() << "SKIPPED: no TLS";
  const std::vector<std::optional<tls::Context>> all(7, TlsOf(1));
  EXPECT_THAT(RunAll(World(7, {FreePort()}), 30s, Exchange, all), Each(""));
}

TEST(SlurmMeeting, ARankWithAnotherSecretOrWithoutTlsMeetsNobody) {
  if (!TlsOf(1)) GTEST_SKIP() << "SKIPPED: no TLS";
  for (const auto& other : {TlsOf(2), std::optional<tls::Context>()}) {
    const auto errors = RunAll(World(2, {FreePort()}), 2s, Exchange, {TlsOf(1), other});
    EXPECT_THAT(errors[0], HasSubstr("1 of the other ranks did not connect in time (ranks 1)"));
    EXPECT_THAT(errors[1], HasSubstr("rank 0 was not found"));
  }
}

TEST(SlurmMeeting, WhoDoesNotKnowTheJobsTokenHearsNothing) {
  SlurmStep step = StepOf(0, 2, {FreePort()});
  step.has_job_token = true;
  auto meeting = std::async(std::launch::async, [&] { return RunAll({step}, 2s, Exchange); });
  const auto deadline = DeadlineStream::Clock::now() + 2s;
  DeadlineStream stream = ConnectOnceOpen(step.meeting_ports[0], deadline);
  stream.Send(Greeting("77.0", "guess", 1), deadline);
  EXPECT_THAT([&] { stream.Receive(1, deadline); },
              ThrowsMessage<EngineError>(std::string("the other side closed the connection")));
  meeting.get();
}

TEST(SlurmMeeting, ARankAloneMeetsNobody) {
  EXPECT_THAT(RunAll(World(1, {FreePort()}), 30s, Exchange), Each(""));
}

TEST(SlurmMeeting, RanksThatComeBeforeRankZeroWaitForIt) {
  std::vector<SlurmStep> steps = World(3, {FreePort()});
  std::rotate(steps.begin(), steps.begin() + 1, steps.end());
  auto early = std::async(std::launch::async, [&] { return RunAll({steps[0], steps[1]}, 30s, Exchange); });
  std::this_thread::sleep_for(300ms);
  EXPECT_THAT(RunAll({steps[2]}, 30s, Exchange), Each(""));
  EXPECT_THAT(early.get(), Each(""));
}

TEST(SlurmMeeting, APortThatIsTakenIsPassedOver) {
  const Holder silent;  // the kernel accepts, but no process answers
  const int taken = silent.port();
  EXPECT_THAT(RunAll(World(3, {taken, FreePort()}), 30s, Exchange), Each(""));
}

TEST(SlurmMeeting, TwoJobsWithTheSamePortsDoNotMix) {
  const std::vector<int> ports = {FreePort(), FreePort()};
  std::vector<SlurmStep> steps = World(3, ports);
  for (SlurmStep step : World(3, ports)) {
    step.id = "78.0";
    steps.push_back(step);
  }
  EXPECT_THAT(RunAll(steps, 30s, Exchange), Each(""));
}

TEST(SlurmMeeting, ARankWithAnotherTokenOrWorldIsRefusedAndToldWhy) {
  const std::vector<int> ports = {FreePort()};
  std::vector<SlurmStep> steps = World(3, ports);
  steps[1].token = "another";
  steps[2].world_size = 4;
  const auto errors = RunAll(steps, 2s, Exchange);
  EXPECT_THAT(errors[0], HasSubstr("2 of the other ranks did not connect in time (ranks 1, 2)"));
  // These ranks may also report that the port is closed: rank 0 gives up at the same time.
  EXPECT_THAT(errors[1], AllOf(HasSubstr("rank 1 of 3"), HasSubstr("rank 0 was not found")));
  EXPECT_THAT(errors[2], AllOf(HasSubstr("rank 2 of 4"), HasSubstr("rank 0 was not found")));
}

TEST(SlurmMeeting, TheReasonOfARefusalIsSent) {
  const int port = FreePort();
  auto meeting = std::async(std::launch::async, [&] { return RunAll({StepOf(0, 2, {port})}, 2s, Exchange); });
  const auto deadline = DeadlineStream::Clock::now() + 2s;
  DeadlineStream stream = ConnectOnceOpen(port, deadline);
  stream.Send(Greeting("78.0", "token", 1), deadline);
  wire::Reader reader;
  reader.Append(stream.Receive(8, deadline));
  EXPECT_EQ(reader.Int(), 1);
  EXPECT_EQ(stream.Receive(static_cast<std::size_t>(*reader.Int()), deadline),
            "this is Slurm step 77.0, not 78.0");
  meeting.get();
}

TEST(SlurmMeeting, UnauthenticatedPeersDoNoHarm) {
  const int port = FreePort();
  auto ranks = std::async(std::launch::async, [&] {
    auto first =
        std::async(std::launch::async, [&] { return RunAll({StepOf(0, 2, {port})}, 30s, Exchange); });
    std::this_thread::sleep_for(500ms);  // the unauthenticated peers connect first
    auto errors = RunAll({StepOf(1, 2, {port})}, 30s, Exchange);
    errors.push_back(first.get()[0]);
    return errors;
  });
  std::vector<DeadlineStream> unauthenticated;
  const auto deadline = DeadlineStream::Clock::now() + 30s;
  for (const std::string& words :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(), wire::Writer().Int(kMeetingMagic).Take(),
        wire::Writer().Int(kMeetingMagic).Int(2000000000).Take(),
        wire::Writer().Int(kMeetingMagic).Int(-1).Take(), Greeting("77.0", "token", 0),
        Greeting("77.0", "token", -5)}) {
    unauthenticated.push_back(ConnectOnceOpen(port, deadline));
    unauthenticated.back().Send(words, deadline);
  }
  EXPECT_THAT(ranks.get(), Each(""));
}

TEST(SlurmMeeting, RanksThatDoNotComeAreNamedToAllThatDid) {
  const std::vector<SlurmStep> all = World(5, {FreePort()});
  const auto errors = RunAll({all[0], all[1], all[3]}, 2s, Exchange);
  EXPECT_THAT(errors, Each(HasSubstr("2 of the other ranks did not connect in time (ranks 2, 4)")));
}

TEST(SlurmMeeting, ARankThatIsLostLaterIsNamedToAllOthers) {
  const auto errors = RunAll(World(4, {FreePort()}), 20s, [](Bootstrap& bootstrap) {
    bootstrap.Allgather("first");
    if (bootstrap.rank() == 2) return;  // its connection closes
    bootstrap.Allgather("second");
  });
  for (const int rank : {0, 1, 3}) EXPECT_THAT(errors[rank], HasSubstr("rank 2 is lost")) << rank;
  EXPECT_EQ(errors[2], "");
}

TEST(SlurmMeeting, ARankThatIsSilentLaterIsNamedAfterTheDeadline) {
  const auto errors = RunAll(World(3, {FreePort()}), 2s, [](Bootstrap& bootstrap) {
    bootstrap.Allgather("first");
    if (bootstrap.rank() == 1) std::this_thread::sleep_for(5s);
    if (bootstrap.rank() != 1) bootstrap.Allgather("second");
  });
  for (const int rank : {0, 2}) EXPECT_THAT(errors[rank], HasSubstr("rank 1 was silent for 2 s")) << rank;
}

TEST(SlurmMeeting, WithoutAFreePortRankZeroSaysWhichItTried) {
  const Holder one;
  const Holder two;
  const auto errors = RunAll({StepOf(0, 2, {one.port(), two.port()})}, 2s, Exchange);
  EXPECT_THAT(errors[0], AllOf(HasSubstr(std::to_string(one.port())), HasSubstr(std::to_string(two.port())),
                               HasSubstr("WARREN_BOOTSTRAP_PORT")));
}

}  // namespace
}  // namespace warren
