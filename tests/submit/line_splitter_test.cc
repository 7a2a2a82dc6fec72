// Cutting output into lines without changing a byte.
#include "submit/output/line_splitter.h"

#include <gmock/gmock.h>

#include <random>
#include <vector>

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Collected {
  LineSplitter splitter;
  std::vector<std::string> pieces;

  void Append(std::string_view bytes) {
    splitter.Append(bytes, [&](std::string_view piece) { pieces.emplace_back(piece); });
  }
  void Finish() {
    splitter.Finish([&](std::string_view piece) { pieces.emplace_back(piece); });
  }
};

TEST(LineSplitter, PutsLinesTogetherHoweverTheyAreCut) {
  Collected collected;
  for (const char* part : {"a", "b\nc", "\n", "\n", "d"}) collected.Append(part);
  EXPECT_THAT(collected.pieces, ElementsAre("ab\n", "c\n", "\n"));
  collected.Finish();
  EXPECT_THAT(collected.pieces, ElementsAre("ab\n", "c\n", "\n", "d"));
  collected.Finish();
  EXPECT_EQ(collected.pieces.size(), 4U);
}

TEST(LineSplitter, FinishAfterAWholeLineAddsNothing) {
  Collected collected;
  collected.Append("a\n");
  collected.Finish();
  EXPECT_THAT(collected.pieces, ElementsAre("a\n"));
}

TEST(LineSplitter, PassesLongLinesOnInPieces) {
  Collected collected;
  const std::string part(1000, 'x');
  for (int i = 0; i < 200; ++i) collected.Append(part);
  collected.Append("\n");
  ASSERT_EQ(collected.pieces.size(), 4U);
  EXPECT_EQ(collected.pieces[0].size(), kMaxLineBytes);
  EXPECT_EQ(collected.pieces[3].back(), '\n');
}

TEST(LineSplitter, KeepsEveryByteOfRandomInput) {
  std::mt19937 random(1);
  Collected collected;
  std::string sent;
  for (int i = 0; i < 300; ++i) {
    std::string part(random() % 3000, '\0');
    for (char& c : part) c = static_cast<char>(i % 2 == 0 ? random() % 256 : random() % 12);
    collected.Append(part);
    sent += part;
  }
  collected.Finish();
  std::string received;
  for (const std::string& piece : collected.pieces) {
    received += piece;
    EXPECT_LE(piece.size(), kMaxLineBytes);
    EXPECT_TRUE(piece.find('\n') >= piece.size() - 1);
  }
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace warren::submit
