// The latest output lines of each process.
#include "submit/monitor/output_history.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace warren::submit {
namespace {

struct Answer {
  std::vector<std::string> lines;
  std::uint64_t from = 0;
  std::uint64_t last = 0;
};

Answer Ask(const OutputHistory& history, const OutputQuery& query) {
  const auto json = nlohmann::json::parse(history.Json(query));
  Answer answer{{}, json["from"], json["last"]};
  for (const auto& line : json["lines"]) answer.lines.push_back(line[3]);
  return answer;
}

using Lines = std::vector<std::string>;

TEST(OutputHistory, LinesOfAllComeInTheirOrder) {
  OutputHistory history(3);
  history.Add(2, Stream::kOut, "a\n");
  history.Add(0, Stream::kErr, "b\r\n");
  history.Add(2, Stream::kOut, "c");
  history.Add(1, Stream::kOut, "\n");
  EXPECT_EQ(Ask(history, {}).lines, (Lines{"a", "b", "c", ""}));
  EXPECT_EQ(Ask(history, {.process = 2}).lines, (Lines{"a", "c"}));
  EXPECT_EQ(Ask(history, {.process = 7}).lines, Lines{});
  EXPECT_EQ(history.Json({.process = 0}), R"({"lines":[[2,0,"err","b"]],"from":1,"last":4})");
}

TEST(OutputHistory, OnePartAfterTheOtherIsAskedForBackwards) {
  OutputHistory history(2);
  for (int i = 1; i <= 10; ++i) history.Add(static_cast<std::size_t>(i % 2), Stream::kOut, std::to_string(i));
  Answer answer = Ask(history, {.limit = 4});
  EXPECT_EQ(answer.lines, (Lines{"7", "8", "9", "10"}));
  answer = Ask(history, {.before = answer.from, .limit = 4});
  EXPECT_EQ(answer.lines, (Lines{"3", "4", "5", "6"}));
  answer = Ask(history, {.before = answer.from, .limit = 4});
  EXPECT_EQ(answer.lines, (Lines{"1", "2"}));
  EXPECT_EQ(answer.from, 1u);
}

TEST(OutputHistory, NewLinesAreAskedForByTheLastOneThatWasSeen) {
  OutputHistory history(2);
  history.Add(0, Stream::kOut, "old");
  const std::uint64_t seen = Ask(history, {}).last;
  history.Add(1, Stream::kOut, "new");
  EXPECT_EQ(Ask(history, {.after = seen}).lines, Lines{"new"});
}

TEST(OutputHistory, ASearchFindsPartsInAnyCase) {
  OutputHistory history(1);
  history.Add(0, Stream::kOut, "an ERROR here");
  history.Add(0, Stream::kOut, "nothing");
  EXPECT_EQ(Ask(history, {.contains = "error"}).lines, Lines{"an ERROR here"});
}

TEST(OutputHistory, ALongTextIsSearchedForByItsBeginning) {
  OutputHistory history(1);
  const std::string line(OutputHistory::kSearchBytes, 'x');
  history.Add(0, Stream::kOut, line);
  history.Add(0, Stream::kOut, line.substr(1));
  EXPECT_EQ(Ask(history, {.contains = line + "y"}).lines, Lines{line});
}

TEST(OutputHistory, ALongSearchStopsAndSaysHowFarItCame) {
  OutputHistory history(1, std::size_t{16} << 20, std::size_t{16} << 20);
  history.Add(0, Stream::kOut, "needle");
  for (int i = 0; i < 1000; ++i) history.Add(0, Stream::kOut, std::string(8000, 'x'));
  Answer answer = Ask(history, {.contains = "needle"});
  EXPECT_TRUE(answer.lines.empty());
  int questions = 1;
  for (; answer.lines.empty() && answer.from > 1; ++questions) {
    answer = Ask(history, {.before = answer.from, .contains = "needle"});
  }
  EXPECT_EQ(answer.lines, Lines{"needle"});
  EXPECT_GT(questions, 1);
}

TEST(OutputHistory, TheOldestGoWhenAProcessHasNoRoom) {
  OutputHistory history(2, 1000, 1000);  // 500 bytes per process
  for (int i = 0; i < 100; ++i) history.Add(0, Stream::kOut, std::string(50, 'x'));
  history.Add(1, Stream::kOut, "kept");
  EXPECT_LT(Ask(history, {.process = 0}).lines.size(), 10u);
  EXPECT_EQ(Ask(history, {.process = 1}).lines, Lines{"kept"});
}

TEST(OutputHistory, ALineWithoutEndIsCut) {
  OutputHistory history(1);
  history.Add(0, Stream::kOut, std::string(100'000, 'x'));
  EXPECT_LT(Ask(history, {}).lines.at(0).size(), OutputHistory::kLineBytes + 10);
}

TEST(OutputHistory, OfAProgressBarTheLatestStateIsKept) {
  OutputHistory history(2);
  for (const char* const piece :
       {"before\n", "\r  0%", "\r 50%", "\r100%", "\n", "\n", "after\n", "\rbar\n", "\rnext"}) {
    history.Add(0, Stream::kErr, piece);
  }
  history.Add(0, Stream::kOut, "\r10%");
  EXPECT_EQ(
      history.Json({}),
      "{\"lines\":[[1,0,\"err\",\"before\"],[4,0,\"err\",\"100%\"],[5,0,\"err\",\"\"],[6,0,\"err\",\"after\"],[7,0,\"err\",\"bar\"],[8,0,\"err\",\"next\"],[9,0,\"out\",\"10%\"]],\"from\":1,\"last\":9}");
}

}  // namespace
}  // namespace warren::submit
