// Admission to a job: how the tracker treats peers that prove the job's token, peers that do not, and peers
// whose proof fails; message by message, without sockets or clocks.
#include "tracker/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracker/driven_job.h"
#include "wire/authentication.h"
#include "wire/classic.h"
#include "wire/collective.h"
#include "wire/vouch.h"

namespace warren::tracker {
namespace {

namespace classic = wire::classic;
namespace collective = wire::collective;
using classic::Command;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kHere[] = "10.0.0.1";
constexpr char kElsewhere[] = "10.0.0.99";

class AdmissionTest : public ::testing::Test, public DrivenJob {
 protected:
  wire::JobToken token = wire::JobToken::Random();

  JobOptions OptionsFor(int num_workers, Admit admit, std::set<std::string> hosts = {}) const {
    JobOptions options;
    options.num_workers = num_workers;
    options.timeout = std::chrono::milliseconds(0);
    options.takes_notes = true;
    options.admission = {token, wire::RandomNonce(), admit, std::move(hosts)};
    return options;
  }
  void Start(int num_workers, Admit admit, std::set<std::string> hosts = {}) {
    job.emplace(OptionsFor(num_workers, admit, std::move(hosts)), now);
  }
  /// Returns the bytes that the tracker has sent since the last call.
  std::string Take(ConnectionId id) { return std::exchange(received[id], {}); }

  /// Opens a connection and proves knowledge of `known` on it. Does not read the tracker's own proof.
  ConnectionId Authenticate(const wire::JobToken& known, const std::string& host = kHere) {
    const wire::Nonce own = wire::RandomNonce();
    const ConnectionId id = Connect(wire::AuthenticationKeys(known).Hello(own), host);
    if (IsClosed(id)) return id;
    const auto theirs = NonceIn(Take(id));
    Say(id,
        std::string(wire::BytesOf(wire::AuthenticationKeys(known).Proof(wire::Party::kWorker, own, theirs))));
    expected_ = wire::BytesOf(wire::AuthenticationKeys(known).Proof(wire::Party::kTracker, own, theirs));
    return id;
  }
  static wire::Nonce NonceIn(const std::string& bytes) {
    wire::Reader reader;
    reader.Append(bytes);
    EXPECT_EQ(reader.Int(), wire::kAuthenticationMagic);
    return wire::NextDigest(reader).value_or(wire::Nonce());
  }
  static std::string Words(const std::string& task, Command command = Command::kStart, int rank = -1) {
    return classic::EncodeMagic() + classic::Encode(classic::Hello{rank, -1, task, command});
  }
  ConnectionId Ours(const std::string& task, Command command = Command::kStart, int rank = -1,
                    const std::string& host = kHere) {
    const ConnectionId id = Authenticate(token, host);
    Take(id);
    Say(id, Words(task, command, rank));
    return id;
  }
  ConnectionId Stock(const std::string& task, Command command = Command::kStart, int rank = -1,
                     const std::string& host = kHere) {
    return Connect(Words(task, command, rank), host);
  }
  void Link(ConnectionId id) {
    Say(id, classic::Encode(classic::GoodLinks{}));
    Say(id, classic::Encode(classic::LinkErrors{0}) + classic::Encode(classic::ListenPort{9010}));
  }

  /// Vouches for the task over a connection authenticated with the token.
  ConnectionId Vouch(const std::string& task, const std::string& ticket, const std::string& host = kHere) {
    const ConnectionId id = Authenticate(token, host);
    Take(id);
    Say(id, wire::Encode(wire::Vouch{task, ticket}));
    return id;
  }
  ConnectionId Collective(const std::string& task, const collective::WorkerMessage& message, int rank = -1,
                          const std::string& host = kHere) {
    const int world = rank < 0 ? -1 : job->world_size();
    return Connect(classic::EncodeMagic() +
                       collective::Encode(collective::Hello{world, std::max(rank, 0), task}) +
                       std::visit([](const auto& one) { return collective::Encode(one); }, message),
                   host);
  }

  std::string expected_;  ///< the tracker's proof on the last authenticated connection
};

constexpr char kTicket[] = "k3J9fQz81Lw-0_ab";
constexpr char kOther[] = "another-ticket-00";
const std::string kTicketed = std::string("0#") + kTicket;

TEST_F(AdmissionTest, TheTrackerProvesTheTokenTooAndThenTheDialectBegins) {
  Start(1, Admit::kToken);
  const ConnectionId id = Authenticate(token);
  EXPECT_EQ(Take(id), expected_);
  Say(id, Words("0"));
  EXPECT_EQ(ranks.at("0"), 0);
  EXPECT_TRUE(received[id].starts_with(classic::EncodeMagic()));
}

TEST_F(AdmissionTest, AnAuthenticationMayComeInPieces) {
  Start(1, Admit::kToken);
  const wire::Nonce own = wire::RandomNonce();
  const ConnectionId id = Connect("");
  for (const char c : wire::AuthenticationKeys(token).Hello(own)) Say(id, std::string(1, c));
  const auto theirs = NonceIn(Take(id));
  const auto proof = wire::AuthenticationKeys(token).Proof(wire::Party::kWorker, own, theirs);
  for (const char c : wire::BytesOf(proof)) Say(id, std::string(1, c));
  EXPECT_EQ(Take(id),
            wire::BytesOf(wire::AuthenticationKeys(token).Proof(wire::Party::kTracker, own, theirs)));
  for (const char c : Words("0")) Say(id, std::string(1, c));
  EXPECT_EQ(ranks.at("0"), 0);
}

TEST_F(AdmissionTest, AnotherJobsWorkerIsDroppedWithoutAWord) {
  Start(1, Admit::kAny);
  const ConnectionId id = Authenticate(wire::JobToken::Random());
  EXPECT_EQ(Take(id), "");
  EXPECT_TRUE(IsClosed(id));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("does not know this job's token: it belongs to another job")));
}

TEST_F(AdmissionTest, AProofThatWasOverheardIsOfNoUse) {
  Start(2, Admit::kToken);
  const wire::Nonce own = wire::RandomNonce();
  const ConnectionId first = Connect(wire::AuthenticationKeys(token).Hello(own));
  const std::string proof(
      wire::BytesOf(wire::AuthenticationKeys(token).Proof(wire::Party::kWorker, own, NonceIn(Take(first)))));
  Say(first, proof);
  EXPECT_FALSE(IsClosed(first));
  const ConnectionId second = Connect(wire::AuthenticationKeys(token).Hello(own));
  Take(second);
  Say(second, proof);
  EXPECT_EQ(Take(second), "");
  EXPECT_TRUE(IsClosed(second));
}

TEST_F(AdmissionTest, WhoRepeatsAClaimAndHasNoProofIsDropped) {
  Start(1, Admit::kAny);
  const ConnectionId id = Connect(wire::AuthenticationKeys(token).Hello(wire::RandomNonce()));
  EXPECT_EQ(Take(id).size(), 36U);
  Say(id, std::string(32, 'x'));
  EXPECT_EQ(Take(id), "");
  EXPECT_TRUE(IsClosed(id));
}

TEST_F(AdmissionTest, TheTrackersOwnProofSentBackIsNone) {
  Start(2, Admit::kToken);
  const wire::Nonce own = wire::RandomNonce();
  const ConnectionId id = Connect(wire::AuthenticationKeys(token).Hello(own));
  const auto theirs = NonceIn(Take(id));
  Say(id,
      std::string(wire::BytesOf(wire::AuthenticationKeys(token).Proof(wire::Party::kTracker, own, theirs))));
  EXPECT_TRUE(IsClosed(id));
}

TEST_F(AdmissionTest, NoNonceIsSaidTwiceNotEvenByTheNextTracker) {
  std::set<std::string> nonces;
  for (int tracker = 0; tracker < 3; ++tracker) {
    Start(1, Admit::kToken);
    for (int i = 0; i < 3; ++i)
      nonces.insert(Take(Connect(wire::AuthenticationKeys(token).Hello(wire::RandomNonce()))));
  }
  EXPECT_EQ(nonces.size(), 9U);
}

TEST_F(AdmissionTest, WithoutTheTokenNotEvenTheMagicIsAnsweredWhereNoneAreAdmitted) {
  Start(1, Admit::kToken);
  for (const Command command : {Command::kStart, Command::kRecover, Command::kShutdown, Command::kPrint}) {
    const ConnectionId id = Stock("0", command, 0);
    EXPECT_EQ(Take(id), "");
    EXPECT_TRUE(IsClosed(id));
  }
  EXPECT_EQ(warnings.size(), 4U);
  EXPECT_THAT(warnings[0], HasSubstr("--admit hosts or --admit any admits them"));
  EXPECT_FALSE(finished);
}

TEST_F(AdmissionTest, FromTheHostsOfTheJobStockWorkersAreAdmitted) {
  Start(2, Admit::kHosts, {kHere});
  const ConnectionId unauthenticated = Stock("0", Command::kStart, -1, kElsewhere);
  EXPECT_TRUE(IsClosed(unauthenticated));
  EXPECT_EQ(Take(unauthenticated), "");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("10.0.0.99 is not one of the job's 1 hosts (10.0.0.1)")));
  Stock("0");
  Stock("1");
  EXPECT_EQ(ranks.size(), 2U);
}

TEST_F(AdmissionTest, OnceAWorkerHasProvedTheTokenAllOthersHaveTo) {
  Start(2, Admit::kAny);
  const ConnectionId unauthenticated = Stock("0");
  const ConnectionId impostor = Stock("impostor", Command::kStart, 1);  // gets a rank immediately
  EXPECT_EQ(ranks.at("impostor"), 1);
  Ours("0");
  EXPECT_TRUE(IsClosed(unauthenticated));
  EXPECT_TRUE(IsClosed(impostor));
  EXPECT_TRUE(IsClosed(Stock("1")));
  ranks.clear();
  Ours("1");
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"0", 0}, {"1", 1}}));
  EXPECT_TRUE(IsClosed(Stock("0", Command::kShutdown, 0)));
  EXPECT_FALSE(finished);
}

TEST_F(AdmissionTest, WhoHadSaidOnlyTheMagicByThenIsDroppedToo) {
  Start(1, Admit::kAny);
  const ConnectionId early = Connect(classic::EncodeMagic());
  EXPECT_EQ(Take(early), classic::EncodeMagic());
  const ConnectionId earlier = Connect("");
  Link(Ours("0"));
  EXPECT_TRUE(IsClosed(early));
  Say(earlier, Words("0"));
  EXPECT_TRUE(IsClosed(earlier));
  EXPECT_EQ(Take(early) + Take(earlier), "");
}

TEST_F(AdmissionTest, TheFirstWorkerWithTheTokenTakesTheJobBackFromThoseWithout) {
  Start(2, Admit::kAny);
  const ConnectionId impostor =
      Connect(classic::EncodeMagic() + classic::Encode(classic::Hello{0, 3, "impostor", Command::kStart}));
  Link(impostor);
  EXPECT_EQ(job->world_size(), 3);
  const ConnectionId waiting = Stock("another");
  const ConnectionId printing = Ours("NULL", Command::kPrint);  // not a worker; the text has yet to follow
  EXPECT_FALSE(IsClosed(waiting));
  ranks.clear();
  Ours("0");
  EXPECT_TRUE(IsClosed(waiting));
  EXPECT_THAT(warnings, ::testing::Contains(HasSubstr("had joined this job before the first one that did")));
  Ours("1");
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"0", 0}, {"1", 1}}));
  EXPECT_TRUE(IsClosed(Stock("impostor", Command::kShutdown, 0)));
  Say(printing, classic::Encode(classic::PrintText{"heard all the same"}));
  EXPECT_THAT(prints, ElementsAre("heard all the same"));
  EXPECT_FALSE(finished);

  job.emplace(OptionsFor(2, Admit::kAny), now);
  job->TakeOver(notes, now);
  EXPECT_EQ(job->world_size(), 2);
  EXPECT_FALSE(IsClosed(Ours("1")));
  EXPECT_EQ(job->RankOfTask("impostor"), std::nullopt);
}

TEST_F(AdmissionTest, ItTakesItBackFromWorkersOfXgboost21WhoAreTold) {
  Start(1, Admit::kAny);
  Collective("0", collective::Start{9010, 9011});
  EXPECT_TRUE(job->is_collective());
  Ours("0");
  EXPECT_FALSE(job->is_collective());
  EXPECT_EQ(ranks.at("0"), 0);
  EXPECT_EQ(received[lines.at(9011)], collective::Encode(collective::Signal::kError));
}

TEST_F(AdmissionTest, AProofWithoutAWishForARankLeavesAJobOfStockWorkersAlone) {
  Start(1, Admit::kAny);
  Link(Stock("0"));
  Authenticate(token);
  Say(Ours("NULL", Command::kPrint), classic::Encode(classic::PrintText{"over MPI"}));
  EXPECT_THAT(prints, ElementsAre("over MPI"));
  Stock("0", Command::kShutdown, 0);
  EXPECT_TRUE(finished);
}

TEST_F(AdmissionTest, WithTheTokenAWorkerMaySpeakFromWhereverItIs) {
  Start(1, Admit::kToken);
  Link(Ours("0"));
  EXPECT_FALSE(IsClosed(Ours("0", Command::kRecover, 0, kElsewhere)));
}

TEST_F(AdmissionTest, WithTheTokenAProcessWithoutARankMayPrint) {
  Start(1, Admit::kAny);
  const auto print = [&](ConnectionId id) { Say(id, classic::Encode(classic::PrintText{"over MPI"})); };
  print(Stock("NULL", Command::kPrint));
  EXPECT_THAT(prints, IsEmpty());
  print(Ours("NULL", Command::kPrint));
  EXPECT_THAT(prints, ElementsAre("over MPI"));
}

TEST_F(AdmissionTest, WithoutItOnlyTheHostThatJoinedSpeaksForARank) {
  Start(1, Admit::kAny);
  Link(Stock("0"));
  for (const Command command : {Command::kShutdown, Command::kRecover, Command::kPrint}) {
    const ConnectionId id = Stock("0", command, 0, kElsewhere);
    if (command == Command::kPrint) Say(id, classic::Encode(classic::PrintText{"boo"}));
    EXPECT_TRUE(IsClosed(id)) << classic::CommandName(command);
    EXPECT_THAT(warnings.back(), HasSubstr("rank 0 joined from 10.0.0.1, and a"));
  }
  EXPECT_THAT(prints, IsEmpty());
  EXPECT_FALSE(finished);
  Stock("0", Command::kShutdown, 0);
  EXPECT_TRUE(finished);
}

TEST_F(AdmissionTest, TheSameHoldsForWorkersOfXgboost21) {
  Start(1, Admit::kAny);
  Collective("0", collective::Start{9010, 0});
  ASSERT_EQ(ranks.at("0"), 0);
  EXPECT_TRUE(IsClosed(Collective("0", collective::Shutdown{}, 0, kElsewhere)));
  Collective("0", collective::Print{"boo"}, 0, kElsewhere);
  EXPECT_THAT(prints, IsEmpty());
  Collective("0", collective::Failure{"boo", 1}, 0, kElsewhere);
  PassTime(std::chrono::seconds(60));
  EXPECT_FALSE(finished);
  EXPECT_THAT(broken, IsEmpty());
  Close(Collective("0", collective::Shutdown{}, 0));
  EXPECT_TRUE(finished);
}

TEST_F(AdmissionTest, NobodyElsewhereBreaksARunningJobOfXgboost21) {
  Start(2, Admit::kAny);
  Collective("0", collective::Start{9010, 9011});
  Collective("1", collective::Start{9020, 9021});
  job->Connected(lines.at(9011));
  const ConnectionId elsewhere = Collective("0", collective::Start{9010, 9011}, -1, kElsewhere);
  EXPECT_TRUE(IsClosed(elsewhere));
  EXPECT_THAT(warnings.back(), HasSubstr("is still running, and a start for it is accepted only from there"));
  EXPECT_THAT(broken, IsEmpty());
  Collective("0", collective::Start{9010, 9011});
  EXPECT_THAT(broken, SizeIs(1));
  Collective("0", collective::Print{"boo"}, 77, kElsewhere);
  EXPECT_THAT(prints, IsEmpty());
  Collective("0", collective::Print{"it failed because"}, 77);
  EXPECT_THAT(prints, ElementsAre("it failed because"));
}

TEST_F(AdmissionTest, AWorkerThatWasLostMayStartElsewhere) {
  Start(1, Admit::kAny);
  Collective("0", collective::Start{9010, 9011});
  job->Connected(lines.at(9011));
  Close(lines.at(9011));
  Collective("0", collective::Start{9010, 9011}, -1, kElsewhere);
  EXPECT_THAT(broken, SizeIs(1));
}

TEST_F(AdmissionTest, WhatPendingConnectionsSendIsBoundedTogether) {
  Start(1, Admit::kAny);
  const std::string whole = classic::EncodeMagic() + collective::Encode(collective::Hello{-1, -1, "0"}) +
                            collective::Encode(collective::Print{std::string(500'000, 'x')});
  const std::string half = whole.substr(0, 500'000);
  std::vector<ConnectionId> pending;
  for (int i = 0; i < 500; ++i) pending.push_back(Connect(half));
  const auto open = std::count_if(pending.begin(), pending.end(), [&](auto id) { return !IsClosed(id); });
  EXPECT_LE(static_cast<std::size_t>(open) * half.size(), kMaxPendingBytes);
  EXPECT_GE(open, 10);
  EXPECT_THAT(warnings.back(), HasSubstr("it sent 500000 bytes without identifying itself"));
  Link(Ours("0"));
  EXPECT_EQ(ranks.size(), 1U);
}

TEST_F(AdmissionTest, TheNextTrackerKeepsAJobToThoseWhoKnowTheToken) {
  Start(2, Admit::kAny);
  Ours("0");
  job.emplace(OptionsFor(2, Admit::kAny), now);
  job->TakeOver(notes, now);
  EXPECT_TRUE(IsClosed(Stock("1")));
  EXPECT_FALSE(IsClosed(Ours("1")));
}

TEST_F(AdmissionTest, ATrackerWithoutATokenSaysThatItHasNone) {
  job.emplace(JobOptions{}, now);
  const ConnectionId id = Connect(wire::AuthenticationKeys(token).Hello(wire::RandomNonce()));
  EXPECT_TRUE(IsClosed(id));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("this tracker has none")));
}

TEST_F(AdmissionTest, ProcessesOfTheTrackersOwnUserAreAdmittedWithoutTheToken) {
  JobOptions options = OptionsFor(1, Admit::kUser, {kHere});
  std::set<ConnectionId> own;
  options.is_own_user = [&](ConnectionId id) { return own.contains(id); };
  job.emplace(options, now);
  const ConnectionId stranger = Stock("0");
  EXPECT_TRUE(IsClosed(stranger));
  EXPECT_EQ(Take(stranger), "");
  EXPECT_THAT(
      warnings,
      ElementsAre(HasSubstr(
          "is not a process of the tracker's user on the tracker's machine; if it is a worker of this job that uses XGBoost's own communication")));
  own.insert(next);
  EXPECT_FALSE(IsClosed(Stock("0")));
  EXPECT_EQ(ranks.at("0"), 0);
  Start(1, Admit::kUser);  // without is_own_user, owners of connections are unknown
  EXPECT_TRUE(IsClosed(Stock("0")));
}

TEST_F(AdmissionTest, OnceAWorkerHasProvedTheTokenProcessesOfTheUserHaveToAsWell) {
  JobOptions options = OptionsFor(2, Admit::kUser);
  options.is_own_user = [](ConnectionId) { return true; };
  job.emplace(options, now);
  Ours("0");
  EXPECT_TRUE(IsClosed(Stock("1")));
}

TEST_F(AdmissionTest, AWorkerThatWasVouchedForJoinsByXgboostsProtocol) {
  Start(2, Admit::kToken);
  const ConnectionId voucher = Vouch("0", kTicket);
  EXPECT_EQ(Take(voucher), wire::Writer().String("expected").Take());
  EXPECT_TRUE(IsClosed(voucher));
  const ConnectionId worker = Connect(classic::EncodeMagic());
  EXPECT_EQ(Take(worker), classic::EncodeMagic());
  const std::string hello = Words(kTicketed).substr(4);
  for (const char c : hello) Say(worker, std::string(1, c));
  EXPECT_FALSE(IsClosed(worker));
  Ours("1");
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"0", 0}, {"1", 1}}));
}

TEST_F(AdmissionTest, SoDoWorkersOfXgboost21) {
  Start(2, Admit::kToken);
  Vouch("0", kTicket);
  Vouch("1", kOther);
  Collective(kTicketed, collective::Start{9010, 0});
  Collective(std::string("1#") + kOther, collective::Start{9020, 0});
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"0", 0}, {"1", 1}}));
  EXPECT_THAT(warnings, IsEmpty());
  // A process on the same host cannot act for these tasks without a ticket.
  EXPECT_TRUE(IsClosed(Collective("0", collective::Shutdown{}, 0)));
  EXPECT_TRUE(IsClosed(Collective("0", collective::Failure{"boo", 1}, 0)));
  EXPECT_TRUE(IsClosed(Collective("0", collective::Print{"boo"}, 0)));
  EXPECT_TRUE(IsClosed(Collective("0", collective::Start{9010, 0})));
  EXPECT_THAT(prints, IsEmpty());
  EXPECT_THAT(broken, IsEmpty());
  Collective(kTicketed, collective::Print{"heard"}, 0);
  EXPECT_THAT(prints, ElementsAre("heard"));
  for (const auto& [task, rank] : {std::pair(kTicketed, 0), std::pair(std::string("1#") + kOther, 1)}) {
    Close(Collective(task, collective::Shutdown{}, rank));
  }
  EXPECT_TRUE(finished);
}

TEST_F(AdmissionTest, WithoutATicketThatFitsNothingIsAnsweredButTheMagic) {
  Start(2, Admit::kToken);
  const ConnectionId early = Stock(kTicketed);
  EXPECT_EQ(Take(early), "");
  EXPECT_TRUE(IsClosed(early));
  Vouch("0", kTicket);
  const ConnectionId elsewhere = Stock(kTicketed, Command::kStart, -1, kElsewhere);
  EXPECT_EQ(Take(elsewhere), "");
  EXPECT_TRUE(IsClosed(elsewhere));
  Vouch("1", kOther, kElsewhere);
  struct Case {
    std::string task, host, words;
  };
  for (const auto& [task, host, words] :
       {Case{"0", kHere, "it does not prove the job's token"},
        Case{"NULL", kHere, "it does not prove the job's token"}, Case{"0#", kHere, "it does not prove"},
        Case{"0#short", kHere, "it does not prove"},
        Case{"0#k3J9fQz81Lw-0_ac", kHere, "no worker of this job has vouched for it"},
        Case{std::string("1#") + kTicket, kHere,
             "it claims to be task 1, but no worker of this job has vouched for it"},
        Case{kTicketed, kElsewhere, "task 0 was vouched for at 10.0.0.1, but this peer is at 10.0.0.99"}}) {
    for (const Command command : {Command::kStart, Command::kRecover, Command::kShutdown, Command::kPrint}) {
      const ConnectionId id = Stock(task, command, 0, host);
      EXPECT_EQ(Take(id), classic::EncodeMagic()) << task;
      EXPECT_TRUE(IsClosed(id)) << task;
      EXPECT_THAT(warnings.back(), HasSubstr(words));
    }
  }
  EXPECT_THAT(ranks, IsEmpty());
}

TEST_F(AdmissionTest, ATicketIsGoodForOneStart) {
  Start(1, Admit::kToken);
  Vouch("0", kTicket);
  Link(Stock(kTicketed));
  EXPECT_TRUE(IsClosed(Stock(kTicketed)));
  EXPECT_THAT(warnings.back(), HasSubstr("task 0 has already started with this ticket"));
  Vouch("0", kOther);  // the task's process was restarted
  EXPECT_FALSE(IsClosed(Stock(std::string("0#") + kOther)));
  EXPECT_EQ(ranks.at("0"), 0);
}

TEST_F(AdmissionTest, OnlyWhoHasProvedTheTokenCanVouch) {
  Start(1, Admit::kAny);
  const ConnectionId id = Connect(wire::Encode(wire::Vouch{"0", kTicket}));
  EXPECT_TRUE(IsClosed(id));
  EXPECT_EQ(Take(id), "");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("not a worker: its first four bytes are 0x56525257")));
  Ours("1");
  const ConnectionId stock = Stock(kTicketed);
  EXPECT_TRUE(IsClosed(stock));
  EXPECT_EQ(Take(stock), "");
}

TEST_F(AdmissionTest, AVouchTakesTheJobBackFromThoseWithoutTheToken) {
  Start(2, Admit::kAny);
  Link(Connect(classic::EncodeMagic() + classic::Encode(classic::Hello{0, 3, "0", Command::kStart})));
  const ConnectionId waiting = Stock("another");
  Vouch("0", kTicket);
  EXPECT_TRUE(IsClosed(waiting));
  EXPECT_THAT(warnings, ::testing::Contains(HasSubstr("had joined this job before the first one that did")));
  ranks.clear();
  Stock(kTicketed);
  EXPECT_TRUE(IsClosed(Stock("1")));
  Vouch("1", kOther);
  Stock(std::string("1#") + kOther);
  EXPECT_EQ(ranks, (std::map<std::string, int>{{"0", 0}, {"1", 1}}));
}

TEST_F(AdmissionTest, TheNextTrackerKnowsWhoWasVouchedFor) {
  Start(1, Admit::kUser);
  Vouch("0", kTicket);
  Link(Stock(kTicketed));
  job.emplace(OptionsFor(1, Admit::kUser), now);
  job->TakeOver(WrittenNotes(), now);
  EXPECT_TRUE(IsClosed(Stock("0", Command::kShutdown, 0)));
  EXPECT_FALSE(finished);
  Stock(kTicketed, Command::kShutdown, 0);
  EXPECT_TRUE(finished);
}

TEST_F(AdmissionTest, AMalformedVouchIsRefused) {
  Start(1, Admit::kToken);
  for (const std::string text : {"", "0", "short 0", "k3J9fQz81Lw-0_a! 0", "k3J9fQz81Lw-0_ab"}) {
    const ConnectionId id = Authenticate(token);
    Take(id);
    Say(id, wire::Writer().Int(wire::kVouchMagic).String(text).Take());
    EXPECT_EQ(Take(id), "");
    EXPECT_TRUE(IsClosed(id)) << text;
    EXPECT_THAT(warnings.back(), HasSubstr("its vouch has no ticket"));
  }
}

}  // namespace
}  // namespace warren::tracker
