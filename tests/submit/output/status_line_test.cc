// The status line below the output on a terminal: the characters written for it, and when they are written.
#include "submit/output/status_line.h"

#include <gtest/gtest.h>

namespace warren::submit {
namespace {

using namespace std::chrono_literals;

constexpr char kErase[] = "\r\x1b[J";
constexpr StatusLine::TimePoint kStart{};

StatusLine Shown(std::string_view text) {
  StatusLine line;
  line.Set(text, kStart);
  EXPECT_EQ(line.NextDraw(), kStart);
  EXPECT_EQ(line.Draw(80, kStart), std::string(text) + '\r');
  return line;
}

TEST(StatusLine, NothingIsWrittenWhileThereIsNone) {
  StatusLine line;
  EXPECT_EQ(line.BeforeOutput(), "");
  line.AfterOutput(0ms, kStart);
  EXPECT_FALSE(line.NextDraw());
  EXPECT_EQ(line.Hide(), "");
}

TEST(StatusLine, IsErasedBeforeOutputAndDrawnAgain) {
  StatusLine line = Shown("a");
  EXPECT_EQ(line.BeforeOutput(), kErase);
  line.AfterOutput(0ms, kStart + 1s);
  EXPECT_EQ(line.NextDraw(), kStart + 1s);
  EXPECT_EQ(line.Draw(80, kStart + 1s), "a\r");
}

TEST(StatusLine, IsDrawnTenTimesASecondAtMost) {
  StatusLine line = Shown("a");
  for (int i = 1; i < 50; ++i) line.Set(std::to_string(i), kStart + 1ms);
  EXPECT_EQ(line.NextDraw(), kStart + kStatusInterval);
  EXPECT_EQ(line.Draw(80, kStart + kStatusInterval), std::string(kErase) + "49\r");
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(line.BeforeOutput(), i == 0 ? kErase : "");
    line.AfterOutput(0ms, kStart + kStatusInterval + 1ms);
  }
  EXPECT_EQ(line.NextDraw(), kStart + 2 * kStatusInterval);
}

TEST(StatusLine, TheSameTextIsNotDrawnAgain) {
  StatusLine line = Shown("a");
  line.Set("a", kStart + 1s);
  EXPECT_FALSE(line.NextDraw());
  line.Refresh(kStart + 1s);
  EXPECT_EQ(line.NextDraw(), kStart + 1s);
}

TEST(StatusLine, WaitsForTheRestOfALine) {
  StatusLine line = Shown("a");
  EXPECT_EQ(line.BeforeOutput(), kErase);
  line.AfterOutput(kUnfinishedPatience, kStart + 1s);
  EXPECT_EQ(line.NextDraw(), kStart + 1s + kUnfinishedPatience);
  line.Set("b", kStart + 1100ms);
  EXPECT_EQ(line.NextDraw(), kStart + 1s + kUnfinishedPatience);
  line.AfterOutput(0ms, kStart + 1200ms);
  EXPECT_EQ(line.NextDraw(), kStart + 1200ms);
}

TEST(StatusLine, LeavesAProgressBarTheTerminal) {
  StatusLine line = Shown("a");
  for (int second = 1; second < 8; ++second) {
    line.BeforeOutput();
    line.AfterOutput(kRedrawnPatience, kStart + std::chrono::seconds(second));
    line.Set(std::to_string(second), kStart + std::chrono::seconds(second));
  }
  EXPECT_EQ(line.NextDraw(), kStart + 7s + kRedrawnPatience);
}

TEST(StatusLine, HidingErasesItForGood) {
  StatusLine line = Shown("a");
  EXPECT_EQ(line.Hide(), kErase);
  EXPECT_FALSE(line.NextDraw());
  line.AfterOutput(0ms, kStart + 1s);
  EXPECT_FALSE(line.NextDraw());
}

TEST(StatusLine, FitsTheTerminal) {
  StatusLine line;
  line.Set("0123456789", kStart);
  EXPECT_EQ(line.Draw(6, kStart), "01234\r");
  line.Refresh(kStart + 1s);
  EXPECT_EQ(line.Draw(20, kStart + 1s), std::string(kErase) + "0123456789\r");
}

TEST(StatusLine, ATerminalObeysNothingOfItsText) {
  StatusLine line;
  line.Set(
      "a\x1b[2J\x1b]0;b\x07\xc2\x9b"
      "c\rd\ne\tf",
      kStart);
  EXPECT_EQ(line.Draw(80, kStart), "a\\x1b[2J\\x1b]0;b\\x07\\xc2\\x9bc\\x0dd e f\r");
}

TEST(CutToColumns, CountsCharacters) {
  EXPECT_EQ(CutToColumns("\xc3\xa4\xc3\xb6\xc3\xbc", 2), "\xc3\xa4\xc3\xb6");
  EXPECT_EQ(CutToColumns("abc", 0), "");
  EXPECT_EQ(CutToColumns("abc", -1), "");
}

}  // namespace
}  // namespace warren::submit
