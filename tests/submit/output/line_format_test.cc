// The formats of output lines: text and JSON.
#include "submit/output/line_format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "submit/output/line_splitter.h"

namespace warren::submit {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

const LineFormat::Time kTime{1'795'742'000s + 7ms};

Speaker Worker() {
  Speaker speaker{7, "3", 3};
  speaker.rank = 3;
  speaker.task = 1;
  return speaker;
}

std::string AsJson(Stream stream, const Speaker& speaker, std::string_view piece) {
  const LineFormat::Line line =
      MakeLineFormat(LogFormat::kJson)->OfProcess(kTime, stream, speaker, piece, true);
  EXPECT_EQ(line.prefix, "");
  return line.text;
}

TEST(Prefix, IsTheLabelInBrackets) {
  EXPECT_EQ(Prefix({1, "server 0", 3}, false), "[server 0] ");
}

TEST(Prefix, HasOneColourForEachNumber) {
  EXPECT_EQ(Prefix({1, "0", 0}, true), "\x1b[36m[0]\x1b[0m ");
  EXPECT_EQ(Prefix({1, "5", 5}, true), Prefix({9, "5", 5}, true));
  EXPECT_NE(Prefix({1, "1", 1}, true), Prefix({1, "1", 2}, true));
}

TEST(Rfc3339, HasMillisecondsInUtc) {
  EXPECT_EQ(Rfc3339(LineFormat::Time{}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(Rfc3339(kTime), "2026-11-27T01:13:20.007Z");
}

TEST(TextFormat, AddsAPrefixAndNothingElse) {
  const auto format = MakeLineFormat(LogFormat::kText);
  const LineFormat::Line line = format->OfProcess(kTime, Stream::kOut, Worker(), "a\xff\r\n", false);
  EXPECT_EQ(line.prefix, "[3] ");
  EXPECT_EQ(line.text, "a\xff\r\n");
  EXPECT_EQ(format->Message(kTime, Severity::kInfo, "x"), "dmlc-submit: x\n");
  EXPECT_EQ(format->Message(kTime, Severity::kWarning, "x"), "dmlc-submit: warning: x\n");
  EXPECT_EQ(format->Message(kTime, Severity::kError, "x"), "dmlc-submit: error: x\n");
  EXPECT_EQ(format->TrackerPrint(kTime, "a\nb"), "a\nb\n");
  EXPECT_EQ(format->Object(kTime, "{}"), "");
}

TEST(TextFormat, AProgressBarIsDrawnBehindItsPrefix) {
  const auto format = MakeLineFormat(LogFormat::kText);
  LineFormat::Line line = format->OfProcess(kTime, Stream::kErr, Worker(), "\r 50%", false);
  EXPECT_EQ(line.prefix + line.text, "\r[3]  50%");
  EXPECT_TRUE(line.redraws);
  for (const char* const other : {" 50%", "a\r\n", "\r\n", "\n"}) {
    line = format->OfProcess(kTime, Stream::kErr, Worker(), other, false);
    EXPECT_EQ(line.prefix + line.text, std::string("[3] ") + other);
    EXPECT_FALSE(line.redraws);
  }
}

TEST(JsonFormat, AProgressBarIsALineInPieces) {
  EXPECT_EQ(Json::parse(AsJson(Stream::kErr, Worker(), "\r 50%"))["partial"], true);
  EXPECT_FALSE(Json::parse(AsJson(Stream::kErr, Worker(), "\r100%\n")).contains("partial"));
}

TEST(JsonFormat, NamesTheWorkerItsStreamAndTheTime) {
  EXPECT_EQ(
      AsJson(Stream::kErr, Worker(), "a \"b\"\n"),
      "{\"time\":\"2026-11-27T01:13:20.007Z\",\"source\":\"worker\",\"rank\":3,\"task\":1,\"stream\":\"stderr\",\"text\":\"a \\\"b\\\"\"}\n");
}

TEST(JsonFormat, LeavesOutWhatIsNotKnown) {
  Speaker speaker{1, "mpirun", 0, "launcher"};
  EXPECT_EQ(Json::parse(AsJson(Stream::kOut, speaker, "x\n")), Json({{"time", "2026-11-27T01:13:20.007Z"},
                                                                     {"source", "launcher"},
                                                                     {"name", "mpirun"},
                                                                     {"stream", "stdout"},
                                                                     {"text", "x"}}));
}

TEST(JsonFormat, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(Json::parse(AsJson(Stream::kOut, Worker(), "a\xff\xc3\xa9\n"))["text"], "a\xef\xbf\xbd\xc3\xa9");
}

TEST(JsonFormat, MarksPiecesOfALongLine) {
  EXPECT_EQ(Json::parse(AsJson(Stream::kOut, Worker(), std::string(kMaxLineBytes, 'x')))["partial"], true);
  EXPECT_FALSE(Json::parse(AsJson(Stream::kOut, Worker(), "its end\n")).contains("partial"));
  EXPECT_FALSE(Json::parse(AsJson(Stream::kOut, Worker(), "last words")).contains("partial"));
}

TEST(JsonFormat, HasMessagesAndTrackerPrints) {
  const auto format = MakeLineFormat(LogFormat::kJson);
  EXPECT_EQ(
      format->Message(kTime, Severity::kWarning, "a\nb"),
      "{\"time\":\"2026-11-27T01:13:20.007Z\",\"source\":\"dmlc-submit\",\"level\":\"warning\",\"text\":\"a\\nb\"}\n");
  EXPECT_EQ(format->TrackerPrint(kTime, "[0]\ta:1\n[1]\ta:0"),
            "{\"time\":\"2026-11-27T01:13:20.007Z\",\"source\":\"tracker\",\"text\":\"[0]\\ta:1\"}\n"
            "{\"time\":\"2026-11-27T01:13:20.007Z\",\"source\":\"tracker\",\"text\":\"[1]\\ta:0\"}\n");
}

TEST(JsonFormat, PutsTheTimeIntoObjects) {
  const auto format = MakeLineFormat(LogFormat::kJson);
  EXPECT_EQ(format->Object(kTime, "{\"source\":\"progress\",\"round\":3}"),
            "{\"time\":\"2026-11-27T01:13:20.007Z\",\"source\":\"progress\",\"round\":3}\n");
  EXPECT_EQ(format->Object(kTime, "{}"), "{\"time\":\"2026-11-27T01:13:20.007Z\"}\n");
}

}  // namespace
}  // namespace warren::submit
