// The messages of memberships, and the task IDs of generations.
#include "wire/membership.h"

#include <gmock/gmock.h>

#include <limits>
#include <string>

namespace warren::wire {
namespace {

using testing::Pair;

/// Decodes `bytes` one byte at a time. Returns the message, which must not be complete before the last byte.
template <typename Message>
Message Decoded(const std::string& bytes, std::optional<Message> (*next)(Reader&)) {
  Reader reader;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    reader.Append(bytes.substr(i, 1));
    EXPECT_FALSE(next(reader)) << "after " << i + 1 << " bytes";
  }
  reader.Append(bytes.substr(bytes.size() - 1));
  return next(reader).value();
}

TEST(Membership, MessagesArriveInAnyPieces) {
  const auto said = Decoded(Encode(MemberMessage{MemberWord::kLeave, "worker 7"}), NextMemberMessage);
  EXPECT_EQ(said.word, MemberWord::kLeave);
  EXPECT_EQ(said.task_id, "worker 7");
  const auto heard = Decoded(Encode(GenerationMessage{GenerationWord::kBroken, 3, 5, "task 1 was lost"}),
                             NextGenerationMessage);
  EXPECT_EQ(heard.word, GenerationWord::kBroken);
  EXPECT_EQ(heard.generation, 3);
  EXPECT_EQ(heard.size, 5);
  EXPECT_EQ(heard.story, "task 1 was lost");
}

TEST(Membership, LongStoriesAreCut) {
  const auto heard = Decoded(Encode(GenerationMessage{GenerationWord::kBroken, 1, 1, std::string(5000, 'x')}),
                             NextGenerationMessage);
  EXPECT_EQ(heard.story, std::string(kMaxStoryBytes, 'x'));
}

TEST(Membership, UnknownWordsAndImpossibleLengthsAreErrors) {
  for (const std::string& bytes :
       {Writer().Int(0).String("").Take(), Writer().Int(5).String("").Take(), Writer().Int(1).Int(-1).Take(),
        Writer().Int(1).Int(std::numeric_limits<std::int32_t>::max()).Take(),
        Writer().Int(1).Int(1025).Take()}) {
    Reader reader;
    reader.Append(bytes);
    EXPECT_THROW(NextMemberMessage(reader), ProtocolError);
  }
  for (const std::string& bytes :
       {Writer().Int(6).Int(1).Int(1).String("").Take(), Writer().Int(2).Int(1).Int(1).Int(1001).Take()}) {
    Reader reader;
    reader.Append(bytes);
    EXPECT_THROW(NextGenerationMessage(reader), ProtocolError);
  }
}

TEST(Membership, TaskIdsNameTheirGeneration) {
  EXPECT_EQ(TaskInGeneration("3", 12), "3@12");
  EXPECT_THAT(SplitGeneration("3@12"), Pair("3", 12));
  EXPECT_THAT(SplitGeneration("user@host@2"), Pair("user@host", 2));
  for (const std::string none : {"3", "", "3@", "3@0", "3@-1", "3@x", "3@1x", "3@99999999999"}) {
    EXPECT_THAT(SplitGeneration(none), Pair(none, 0));
  }
}

}  // namespace
}  // namespace warren::wire
