// Extraction of agents' messages from a byte stream: the stream may be split anywhere, and nothing else is
// removed.
#include "submit/cluster/agent_messages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct ReadMessages {
  std::string text;
  std::vector<std::string> messages;
};

/// Reads `bytes` in pieces of `size` bytes.
ReadMessages ReadInPieces(const std::string& bytes, std::size_t size) {
  AgentMessageReader reader("mark");
  ReadMessages read;
  const auto on_text = [&](std::string_view text) { read.text += text; };
  const auto on_message = [&](const AgentMessage& message) {
    read.messages.push_back(fmt::format("{}|{}|{}", message.index, message.kind, message.text));
  };
  for (std::size_t i = 0; i < bytes.size(); i += size)
    reader.Append(bytes.substr(i, size), on_text, on_message);
  reader.Finish(on_text);
  return read;
}

TEST(AgentMessages, AreFoundInBetweenTextHoweverItIsCut) {
  const std::string bytes =
      "one\npart\036mark 3 start 0 4242 node1\036\nial\n\036mark 12 exit 0 137\036\n\036";
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    const ReadMessages read = ReadInPieces(bytes, size);
    EXPECT_EQ(read.text, "one\npartial\n\036") << size;
    EXPECT_THAT(read.messages, ElementsAre("3|start|0 4242 node1", "12|exit|0 137")) << size;
  }
}

TEST(AgentMessages, OfAnotherMarkAreText) {
  const std::string bytes = "\036other 3 exit 0 1\036\n\036mar\n";
  const ReadMessages read = ReadInPieces(bytes, 4);
  EXPECT_EQ(read.text, bytes);
  EXPECT_THAT(read.messages, IsEmpty());
}

TEST(AgentMessages, ABeginningWithoutAnEndIsTextOnceItIsTooLong) {
  const std::string bytes =
      "\036mark 3 exit" + std::string(AgentMessageReader::kMaxMessageBytes + 1, 'x') + "\n";
  const ReadMessages read = ReadInPieces(bytes, 1000);
  EXPECT_EQ(read.text, bytes);
  EXPECT_THAT(read.messages, IsEmpty());
}

TEST(AgentMessages, MarksAreNewEachTime) {
  EXPECT_NE(NewJobMark(), NewJobMark());
}

}  // namespace
}  // namespace warren::submit
