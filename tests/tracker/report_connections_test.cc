// The tracker's handling of workers' reports, alongside jobs of both dialects and without a job; message by
// message, without sockets or clocks.
#include "tracker/report_connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/tracker/driven_job.h"
#include "wire/authentication.h"
#include "wire/classic.h"
#include "wire/collective.h"

namespace warren::tracker {
namespace {

namespace classic = wire::classic;
namespace collective = wire::collective;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class ReportConnectionsTest : public ::testing::Test, public DrivenJob {
 protected:
  void Start(int num_workers, AdmissionOptions admission = {}) {
    JobOptions options;
    options.num_workers = num_workers;
    options.timeout = std::chrono::milliseconds(0);
    options.admission = std::move(admission);
    job.emplace(options, now);
  }
  static std::string Magic() { return wire::Writer().Int(wire::kReportMagic).Take(); }
  static std::string ReportOf(const std::string& task) {
    wire::WorkerReport report;
    report.task_id = task;
    return wire::Encode(report);
  }
  ConnectionId Classic(const std::string& task, classic::Command command, int rank = -1) {
    return Connect(classic::EncodeMagic() + classic::Encode(classic::Hello{rank, -1, task, command}));
  }
};

TEST_F(ReportConnectionsTest, ReportsComeBeforeAnybodyHasJoined) {
  Start(2);
  const ConnectionId id = Connect(Magic() + ReportOf("0"));
  EXPECT_THAT(reported, ElementsAre("0"));
  Say(id, ReportOf("0") + ReportOf("0").substr(0, 9));
  Say(id, ReportOf("0").substr(9));
  EXPECT_THAT(reported, ElementsAre("0", "0", "0"));
  EXPECT_THAT(received[id], IsEmpty());
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(ReportConnectionsTest, TheMagicMayComeByteByByte) {
  Start(1);
  const ConnectionId id = Connect("");
  for (const char c : Magic() + ReportOf("7")) Say(id, std::string(1, c));
  EXPECT_THAT(reported, ElementsAre("7"));
}

TEST_F(ReportConnectionsTest, TheyTakeNoPartInAClassicJob) {
  Start(1);
  const ConnectionId reports = Connect(Magic() + ReportOf("0"));
  const ConnectionId worker = Classic("0", classic::Command::kStart);
  EXPECT_THAT(ranks, ElementsAre(Pair("0", 0)));
  Say(worker, classic::Encode(classic::GoodLinks{}));
  Say(worker, classic::Encode(classic::LinkErrors{0}) + classic::Encode(classic::ListenPort{9010}));
  Say(reports, ReportOf("0"));
  Classic("0", classic::Command::kShutdown, 0);
  EXPECT_EQ(finished, "");
  Say(reports, ReportOf("0"));  // the last report may arrive after the end of the job
  EXPECT_THAT(reported, ElementsAre("0", "0", "0"));
  Close(reports);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(ReportConnectionsTest, TheyTakeNoPartInACollectiveJob) {
  Start(1);
  const ConnectionId worker =
      Connect(classic::EncodeMagic() + collective::Encode(collective::Hello{-1, -1, "0"}) +
              collective::Encode(collective::Start{9000, 0}));
  EXPECT_THAT(received[worker], HasSubstr("world_size"));
  Close(Connect(Magic() + ReportOf("0")));
  EXPECT_THAT(reported, ElementsAre("0"));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(ReportConnectionsTest, OneMayBeSilentForEver) {
  Start(1);
  const ConnectionId id = Connect(Magic());
  EXPECT_FALSE(job->NextDeadline());
  PassTime(100 * kHelloTimeout);
  EXPECT_THAT(closed, IsEmpty());
  Say(id, ReportOf("0"));
  EXPECT_THAT(reported, ElementsAre("0"));
}

TEST_F(ReportConnectionsTest, TheTimeIsAnsweredAndIsNoReport) {
  Start(1);
  now += std::chrono::nanoseconds(1'234'567'890'123);
  wire::WorkerReport question;
  question.asks_clock = true;
  const ConnectionId id = Connect(Magic() + wire::Encode(question));
  EXPECT_EQ(received[id], wire::Encode(wire::ClockAnswer{1'234'567'890'123}));
  EXPECT_THAT(reported, IsEmpty());
}

TEST_F(ReportConnectionsTest, WhoSendsNonsenseIsDroppedByName) {
  Start(1);
  const ConnectionId id = Connect(Magic() + ReportOf("4"));
  Say(id, wire::Writer().String("{\"task\":4}").Take());
  EXPECT_THAT(closed, ElementsAre(id));
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("dropped 10.0.0.1:40001, reports of task 4: the report's \"task\"")));
  Say(id, ReportOf("4"));
  EXPECT_THAT(reported, ElementsAre("4"));
}

TEST_F(ReportConnectionsTest, OfTooManyTheOldestGoes) {
  Start(2);
  for (int i = 0; i < 8; ++i) Connect(Magic());
  EXPECT_THAT(closed, IsEmpty());
  Connect(Magic());
  EXPECT_THAT(closed, ElementsAre(1));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("more than 8 connections")));
}

TEST_F(ReportConnectionsTest, WhatComesInPiecesIsLimitedForAllTogether) {
  Start(1000);
  const std::string begin = wire::Writer().Int(wire::kMaxReportBytes).Take() + std::string(60000, ' ');
  const int most = static_cast<int>(kMaxUnreadReportBytes / begin.size());
  for (int i = 0; i < most; ++i) Connect(Magic() + begin);
  EXPECT_THAT(warnings, IsEmpty());
  const ConnectionId one_more = Connect(Magic() + begin);
  EXPECT_THAT(closed, ElementsAre(one_more));
  Close(1);
  Connect(Magic() + begin);  // there is space again
  EXPECT_THAT(closed, ElementsAre(one_more, 1));
}

TEST_F(ReportConnectionsTest, TheyGoFirstWhereTheProcessCanTakeNoMore) {
  Start(2);
  const ConnectionId silent = Connect("");
  const ConnectionId older = Connect(Magic() + ReportOf("0"));
  const ConnectionId newer = Connect(Magic() + ReportOf("1"));
  EXPECT_TRUE(job->MakeRoom(now));
  Collect();
  EXPECT_THAT(closed, ElementsAre(older));
  EXPECT_TRUE(job->MakeRoom(now));
  EXPECT_FALSE(job->MakeRoom(now));  // `silent` is still new, and may belong to a worker
  now += kPendingGrace;
  EXPECT_TRUE(job->MakeRoom(now));
  Collect();
  EXPECT_THAT(closed, UnorderedElementsAre(silent, older, newer));
}

class ReportAdmissionTest : public ReportConnectionsTest {
 protected:
  wire::JobToken token = wire::JobToken::Random();

  AdmissionOptions Options(Admit admit) const { return {token, wire::RandomNonce(), admit, {}}; }
  ConnectionId Authenticate() {
    const wire::AuthenticationKeys keys(token);
    const wire::Nonce own = wire::RandomNonce();
    const ConnectionId id = Connect(keys.Hello(own));
    wire::Reader reader;
    reader.Append(std::exchange(received[id], {}));
    EXPECT_EQ(reader.Int(), wire::kAuthenticationMagic);
    const wire::Nonce theirs = wire::NextDigest(reader).value_or(wire::Nonce());
    Say(id, std::string(wire::BytesOf(keys.Proof(wire::Party::kWorker, own, theirs))));
    return id;
  }
};

TEST_F(ReportAdmissionTest, WithATokenOnlyThoseThatProveItReport) {
  Start(1, Options(Admit::kToken));
  const ConnectionId stranger = Connect(Magic() + ReportOf("bad"));
  EXPECT_THAT(closed, ElementsAre(stranger));
  Say(Authenticate(), Magic() + ReportOf("good"));
  EXPECT_THAT(reported, ElementsAre("good"));
}

TEST_F(ReportAdmissionTest, OthersReportAsLongAsTheyAreAdmitted) {
  Start(1, Options(Admit::kAny));
  const ConnectionId stranger = Connect(Magic() + ReportOf("stock"));
  EXPECT_THAT(reported, ElementsAre("stock"));
  // Reports from peers that have proved the token do not close other connections: a launcher's children may
  // report for stock workers.
  Say(Authenticate(), Magic() + ReportOf("ours"));
  EXPECT_THAT(closed, IsEmpty());
  // When a worker joins with the token, the tracker closes the connections of peers that have not proved it.
  Say(Authenticate(),
      classic::EncodeMagic() + classic::Encode(classic::Hello{-1, -1, "0", classic::Command::kStart}));
  EXPECT_THAT(closed, ElementsAre(stranger));
  EXPECT_THAT(ranks, ElementsAre(Pair("0", 0)));
}

TEST_F(ReportAdmissionTest, StrangersPushNobodyOutWhoKnowsTheToken) {
  Start(1, Options(Admit::kAny));
  const ConnectionId ours = Authenticate();
  Say(ours, Magic() + ReportOf("0"));
  for (int i = 0; i < 3; ++i) Connect(Magic());
  EXPECT_THAT(closed, IsEmpty());
  Connect(Magic());
  EXPECT_THAT(closed, ElementsAre(ours + 1));
  for (int i = 0; i < 3; ++i) Say(Authenticate(), Magic());
  EXPECT_THAT(closed, ElementsAre(ours + 1, ours + 2, ours + 3, ours + 4));
  const ConnectionId stranger = Connect(Magic() + ReportOf("1"));
  EXPECT_TRUE(IsClosed(stranger));
  EXPECT_THAT(reported, ElementsAre("0"));
  EXPECT_FALSE(IsClosed(ours));
}

TEST_F(ReportAdmissionTest, StrangersDoNotSpeakForATaskOfWhoKnowsTheToken) {
  Start(2, Options(Admit::kAny));
  const ConnectionId stranger = Connect(Magic() + ReportOf("0"));
  const ConnectionId ours = Authenticate();
  Say(ours, Magic() + ReportOf("0"));
  const ConnectionId again = Authenticate();
  Say(again, Magic() + ReportOf("0"));
  reported.clear();
  Say(stranger, ReportOf("0") + ReportOf("1"));
  EXPECT_THAT(reported, ElementsAre("1"));
  Close(ours);
  Say(stranger, ReportOf("0"));
  EXPECT_THAT(reported, ElementsAre("1"));
  Close(again);
  Say(stranger, ReportOf("0"));
  EXPECT_THAT(reported, ElementsAre("1", "0"));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(ReportAdmissionTest, StrangersBytesThatHaveNotComeWholeGoFirst) {
  Start(1000, Options(Admit::kAny));
  const std::string begin = wire::Writer().Int(wire::kMaxReportBytes).Take() + std::string(60000, ' ');
  const int most = static_cast<int>(kMaxUnreadReportBytes / begin.size());
  for (int i = 0; i < most; ++i) Connect(Magic() + begin);
  const ConnectionId ours = Authenticate();
  Say(ours, Magic() + begin);
  EXPECT_THAT(closed, ElementsAre(1));
}

}  // namespace
}  // namespace warren::tracker
