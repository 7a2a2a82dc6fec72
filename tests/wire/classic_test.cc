#include "wire/classic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warren::wire::classic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Everything that a restarted worker sends after the magic: it reports a failed connection first, then none.
std::string WholeExchange() {
  return Encode(Hello{2, 4, "task 7", Command::kRecover}) + Encode(GoodLinks{{1, 3}}) +
         Encode(LinkErrors{1}) + Encode(GoodLinks{{}}) + Encode(LinkErrors{0}) + Encode(ListenPort{9010});
}

std::string Describe(const WorkerMessage& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) {
    return "hello " + std::to_string(hello->rank) + " " + std::to_string(hello->world_size) + " " +
           hello->task_id + " " + std::string(CommandName(hello->command));
  }
  if (const auto* print = std::get_if<PrintText>(&message)) return "print " + print->text;
  if (const auto* good = std::get_if<GoodLinks>(&message)) {
    std::string text = "good";
    for (const int rank : good->ranks) text += " " + std::to_string(rank);
    return text;
  }
  if (const auto* errors = std::get_if<LinkErrors>(&message))
    return "errors " + std::to_string(errors->count);
  return "port " + std::to_string(std::get<ListenPort>(message).port);
}

std::vector<std::string> ReadInPieces(std::string_view bytes, std::size_t piece) {
  WorkerStream stream;
  std::vector<std::string> messages;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    stream.Append(bytes.substr(at, piece));
    while (auto message = stream.Next()) messages.push_back(Describe(*message));
  }
  EXPECT_TRUE(stream.done());
  return messages;
}

TEST(WorkerStream, ReadsAWholeExchangeHoweverItIsCut) {
  const std::string bytes = WholeExchange();
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    EXPECT_THAT(ReadInPieces(bytes, piece), ElementsAre("hello 2 4 task 7 recover", "good 1 3", "errors 1",
                                                        "good", "errors 0", "port 9010"));
  }
}

TEST(WorkerStream, ReadsPrintAndShutdown) {
  EXPECT_THAT(
      ReadInPieces(Encode(Hello{0, 1, "NULL", Command::kPrint}) + Encode(PrintText{"[0]\ttrain-auc:1\n"}), 3),
      ElementsAre("hello 0 1 NULL print", "print [0]\ttrain-auc:1\n"));
  EXPECT_THAT(ReadInPieces(Encode(Hello{3, 4, "3", Command::kShutdown}), 5),
              ElementsAre("hello 3 4 3 shutdown"));
}

struct BadBytes {
  std::string bytes;
  std::string complaint;
};

TEST(WorkerStream, SaysWhatIsWrongWithBytesNoWorkerSends) {
  const std::string start = Encode(Hello{});
  const std::vector<BadBytes> cases = {
      {Writer().Int(-2).Take(), "the rank is -2"},
      {Writer().Int(kMaxWorldSize).Take(), "the rank is 131072"},
      {Writer().Int(-1).Int(-7).Take(), "the world size is -7"},
      {Writer().Int(-1).Int(1 << 30).Take(), "the world size is 1073741824"},
      {Writer().Int(-1).Int(-1).Int(2000000000).Take(), "the task id announces 2000000000 bytes"},
      {Writer().Int(-1).Int(-1).Int(-5).Take(), "the task id announces -5 bytes"},
      {Writer().Int(-1).Int(-1).String("0").Int(17).Take(), "the command announces 17 bytes"},
      {Writer().Int(-1).Int(-1).String("0").String("sta\nrt").Take(), "the command is \"sta\\x0art\""},
      {Writer().Int(0).Int(1).String("0").String("print").Int((64 << 10) + 1).Take(),
       "the text to print announces"},
      {start + Writer().Int(65).Take(), "the number of good links is 65"},
      {start + Writer().Int(1).Int(-3).Take(), "the rank of a good link is -3"},
      {start + Writer().Int(0).Int(-1).Take(), "the number of failed links is -1"},
      {start + Writer().Int(0).Int(0).Int(0).Take(), "the listening port is 0"},
      {start + Writer().Int(0).Int(0).Int(65536).Take(), "the listening port is 65536"},
      {Encode(Hello{0, 1, "0", Command::kShutdown}) + Writer().Int(2).Take(), "the word after shutdown is 2"},
      {Encode(Hello{0, 1, "0", Command::kShutdown}) + Encode(WaitForOthers{}) + "x",
       "1 bytes after the end of the exchange"},
  };
  for (const BadBytes& bad : cases) {
    WorkerStream stream;
    stream.Append(bad.bytes);
    try {
      while (stream.Next()) {
      }
      FAIL() << "no error where expected: " << bad.complaint;
    } catch (const ProtocolError& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad.complaint));
    }
  }
}

TEST(WorkerStream, KnowsWhatTheWorkerStillOwes) {
  WorkerStream stream;
  EXPECT_EQ(stream.Expected(), "the rank");
  stream.Append(Encode(Hello{}));
  ASSERT_TRUE(stream.Next());
  EXPECT_EQ(stream.Expected(), "the list of good links");
  stream.Append(Encode(GoodLinks{}) + Encode(LinkErrors{0}));
  while (stream.Next()) {
  }
  EXPECT_EQ(stream.Expected(), "the listening port");
}

Assignment SampleAssignment() {
  Assignment assignment;
  assignment.rank = 1;
  assignment.parent = 0;
  assignment.world_size = 5;
  assignment.tree_neighbors = {0, 2, 3};
  assignment.ring_prev = 0;
  assignment.ring_next = 2;
  return assignment;
}

TEST(TrackerStream, ReadsTheAnswersHoweverTheyAreCut) {
  const LinkPlan sent{{{"10.0.0.7", 9011, 0}, {"fe80::1", 9012, 3}}, 1};
  const std::string bytes =
      EncodeMagic() + Encode(SampleAssignment()) + Encode(sent) + Encode(LinkPlan{{}, 2});
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    TrackerStream stream;
    std::optional<std::int32_t> magic;
    std::optional<Assignment> assignment;
    std::vector<LinkPlan> plans;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      stream.Append(std::string_view(bytes).substr(at, piece));
      if (!magic) magic = stream.NextMagic();
      if (magic && !assignment) assignment = stream.NextAssignment();
      while (assignment) {
        auto plan = stream.NextLinkPlan();
        if (!plan) break;
        plans.push_back(std::move(*plan));
      }
    }
    ASSERT_EQ(magic, kMagic);
    ASSERT_TRUE(assignment);
    EXPECT_EQ(assignment->rank, 1);
    EXPECT_EQ(assignment->parent, 0);
    EXPECT_EQ(assignment->world_size, 5);
    EXPECT_THAT(assignment->tree_neighbors, ElementsAre(0, 2, 3));
    EXPECT_EQ(assignment->ring_prev, 0);
    EXPECT_EQ(assignment->ring_next, 2);
    ASSERT_EQ(plans.size(), 2U) << piece;
    ASSERT_EQ(plans[0].connect.size(), 2U);
    EXPECT_EQ(plans[0].connect[1].host, "fe80::1");
    EXPECT_EQ(plans[0].connect[1].port, 9012);
    EXPECT_EQ(plans[0].connect[1].rank, 3);
    EXPECT_EQ(plans[0].num_accept, 1);
    EXPECT_EQ(plans[1].num_accept, 2);
  }
}

TEST(TrackerStream, RefusesImpossibleAnswers) {
  TrackerStream too_many;
  too_many.Append(Writer().Int(0).Int(-1).Int(2).Int(1000000).Take());
  EXPECT_THROW(too_many.NextAssignment(), ProtocolError);
  TrackerStream outside;
  outside.Append(Writer().Int(2).Int(0).Int(2).Int(0).Int(1).Int(1).Take());
  EXPECT_THROW(outside.NextAssignment(), ProtocolError);
  TrackerStream negative;
  negative.Append(Writer().Int(-1).Int(0).Take());
  EXPECT_THROW(negative.NextLinkPlan(), ProtocolError);
}

TEST(Encoding, IsTheBytesRabitWorkersExpect) {
  // The machines on which this is tested are little-endian.
  EXPECT_EQ(EncodeMagic(), std::string("\x99\xff\0\0", 4));
  EXPECT_EQ(Encode(Hello{-1, -1, "0", Command::kStart}),
            std::string("\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\0"
                        "0\5\0\0\0start",
                        22));
  EXPECT_EQ(Encode(LinkPlan{{{"h", 9010, 2}}, 1}),
            std::string("\1\0\0\0\1\0\0\0\1\0\0\0h\x32\x23\0\0\2\0\0\0", 21));
}

}  // namespace
}  // namespace warren::wire::classic
