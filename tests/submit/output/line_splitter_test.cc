// Splitting output into lines without changing a byte.
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

TEST(LineSplitter, AProgressBarIsPassedOnAsItIsDrawn) {
  Collected tqdm;  // a carriage return before each drawing
  tqdm.Append("\r  0%");
  EXPECT_THAT(tqdm.pieces, ElementsAre("\r  0%"));
  tqdm.Append("\r 50%\r100%");
  tqdm.Append(" done");
  EXPECT_THAT(tqdm.pieces, ElementsAre("\r  0%", "\r 50%", "\r100%", " done"));
  tqdm.Append("\nplain");
  EXPECT_THAT(tqdm.pieces, ElementsAre("\r  0%", "\r 50%", "\r100%", " done", "\n"));
  tqdm.Finish();
  EXPECT_EQ(tqdm.pieces.back(), "plain");

  Collected print;  // print(..., end="\r"): a carriage return after each drawing
  print.Append("1 of 3\r");
  EXPECT_THAT(print.pieces, ElementsAre("1 of 3"));
  print.Append("2 of 3\r");
  EXPECT_THAT(print.pieces, ElementsAre("1 of 3", "\r2 of 3"));
  print.Append("\n");
  print.Append("more");
  EXPECT_THAT(print.pieces, ElementsAre("1 of 3", "\r2 of 3", "\r\n"));
  print.Append("\r");
  print.Finish();
  EXPECT_THAT(print.pieces, ElementsAre("1 of 3", "\r2 of 3", "\r\n", "more", "\r"));
}

TEST(LineSplitter, LinesThatEndInReturnAndNewlineAreLines) {
  Collected collected;
  collected.Append("a\r\n\r\nb");
  EXPECT_THAT(collected.pieces, ElementsAre("a\r\n", "\r\n"));
  collected.Append("c\r\n\r\r\n");
  EXPECT_THAT(collected.pieces, ElementsAre("a\r\n", "\r\n", "bc\r\n", "\r\r\n"));
}

TEST(LineSplitter, ProgressBarsLoseNoByteHoweverTheyAreCut) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    Collected collected;
    std::string sent;
    for (int i = 0; i < 6; ++i) {
      std::string part(random() % 5, 'x');
      for (char& c : part) c = "\r\nab"[random() % 4];
      collected.Append(part);
      sent += part;
    }
    collected.Finish();
    std::string received;
    for (const std::string& piece : collected.pieces) {
      received += piece;
      ASSERT_FALSE(piece.empty());
      ASSERT_GE(piece.find('\n'), piece.size() - 1);
      const std::size_t back = piece.find('\r', 1);
      ASSERT_TRUE(back == std::string::npos || piece.substr(back) == "\r\n") << piece;
    }
    ASSERT_EQ(received, sent);
  }
}

}  // namespace
}  // namespace warren::submit
