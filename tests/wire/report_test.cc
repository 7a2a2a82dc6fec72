#include "wire/report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace warren::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

std::string Message(const std::string& text) {
  return Writer().String(text).Take();
}

WorkerReport Read(const std::string& bytes) {
  ReportStream stream;
  stream.Append(bytes);
  const auto report = stream.Next();
  EXPECT_TRUE(report.has_value());
  EXPECT_EQ(stream.num_buffered(), 0U);
  return report.value_or(WorkerReport());
}

WorkerReport Whole() {
  WorkerReport report;
  report.task_id = "3";
  report.rank = 2;
  report.host = "node-7";
  report.pid = 4711;
  report.every = 2.5;
  report.call = ReportedCall{12, "allreduce of 4 float, sum", true, 1.5};
  report.traffic = {{"allreduce", "ring", 11, std::uint64_t{1} << 63, 0.25}, {"broadcast", "", 1, 8, 0}};
  report.waits = {{7, 0.5}, {9, 0.002}};
  report.waits_dropped = 3;
  report.progress = ReportedProgress{5, 100, {{"train-rmse", 0.125}, {"auc", 1}}};
  report.reading = ReportedReading{"train.libsvm", 1000, 2000, 4000, 3};
  report.trace = {{"world", "Allreduce", 5'000'000'000, 2000, {{"bytes", 64}, {"call", 7}}},
                  {"world: gradients", "waits", -3, 0, {}}};
  return report;
}

TEST(ReportTest, AllThatIsWrittenIsRead) {
  const WorkerReport read = Read(Encode(Whole()));
  EXPECT_EQ(read.task_id, "3");
  EXPECT_EQ(read.rank, 2);
  EXPECT_EQ(read.host, "node-7");
  EXPECT_EQ(read.pid, 4711);
  EXPECT_EQ(read.every, 2.5);
  ASSERT_TRUE(read.call);
  EXPECT_EQ(read.call->number, 12U);
  EXPECT_EQ(read.call->name, "allreduce of 4 float, sum");
  EXPECT_TRUE(read.call->inside);
  EXPECT_EQ(read.call->seconds, 1.5);
  ASSERT_THAT(read.traffic, SizeIs(2));
  EXPECT_EQ(read.traffic[0].algorithm, "ring");
  EXPECT_EQ(read.traffic[0].calls, 11U);
  EXPECT_EQ(read.traffic[0].bytes, std::uint64_t{1} << 63);
  EXPECT_EQ(read.traffic[0].seconds, 0.25);
  EXPECT_EQ(read.traffic[1].collective, "broadcast");
  ASSERT_THAT(read.waits, SizeIs(2));
  EXPECT_EQ(read.waits[1].call, 9U);
  EXPECT_EQ(read.waits[1].seconds, 0.002);
  EXPECT_EQ(read.waits_dropped, 3U);
  ASSERT_TRUE(read.progress);
  EXPECT_EQ(read.progress->of, 100);
  ASSERT_THAT(read.progress->metrics, SizeIs(2));
  EXPECT_EQ(read.progress->metrics[0], std::pair(std::string("train-rmse"), 0.125));
  ASSERT_TRUE(read.reading);
  EXPECT_EQ(read.reading->what, "train.libsvm");
  EXPECT_EQ(read.reading->rows, 1000U);
  EXPECT_EQ(read.reading->bytes, 2000U);
  EXPECT_EQ(read.reading->total_bytes, 4000U);
  EXPECT_EQ(read.reading->seconds, 3);
  ASSERT_THAT(read.trace, SizeIs(2));
  EXPECT_EQ(read.trace[0].line, "world");
  EXPECT_EQ(read.trace[0].name, "Allreduce");
  EXPECT_EQ(read.trace[0].begin_ns, 5'000'000'000);
  EXPECT_EQ(read.trace[0].length_ns, 2000U);
  EXPECT_THAT(read.trace[0].numbers, ElementsAre(Pair("bytes", 64U), Pair("call", 7U)));
  EXPECT_EQ(read.trace[1].begin_ns, -3);
  EXPECT_FALSE(read.asks_clock);
}

TEST(ReportTest, TheTimeIsAskedForAndAnswered) {
  WorkerReport question;
  question.asks_clock = true;
  EXPECT_TRUE(Read(Encode(question)).asks_clock);
  Reader reader;
  reader.Append(Encode(ClockAnswer{-1'234'567'890'123}));
  const auto answer = reader.String("the time", 32);
  ASSERT_TRUE(answer);
  EXPECT_EQ(DecodeClockAnswer(*answer).now_ns, -1'234'567'890'123);
  for (const char* bad : {"", "x", "1.5", "99999999999999999999", "1 "}) {
    EXPECT_THROW(DecodeClockAnswer(bad), ProtocolError) << bad;
  }
}

TEST(ReportTest, TheBytesAreThoseOfTheDocumentation) {
  WorkerReport report;
  report.task_id = "0";
  report.host = "a";
  report.pid = 7;
  report.progress = ReportedProgress{1, 2, {{"m", 0.5}}};
  EXPECT_EQ(Encode(report), Message(R"({"task":"0","rank":-1,"host":"a","pid":7,)"
                                    R"("progress":{"round":1,"of":2,"metrics":[["m",0.5]]}})"));
}

TEST(ReportTest, MetricsThatAreNoNumbersAreReadAsNaN) {
  WorkerReport report;
  report.progress = ReportedProgress{
      1, 0, {{"nan", std::nan("")}, {"inf", -std::numeric_limits<double>::infinity()}, {"one", 1}}};
  const auto metrics = Read(Encode(report)).progress->metrics;
  ASSERT_THAT(metrics, SizeIs(3));
  EXPECT_TRUE(std::isnan(metrics[0].second));
  EXPECT_TRUE(std::isnan(metrics[1].second));
  EXPECT_EQ(metrics[2].second, 1);
}

TEST(ReportTest, TheGreatestReportIsShortEnough) {
  const std::string bad(2000, '\xff');
  WorkerReport report = Whole();
  report.task_id = report.host = report.call->name = report.reading->what = bad;
  report.traffic.assign(
      200, {"reduce-scatter", "recursive-doubling-of-hosts", std::uint64_t(-1), std::uint64_t(-1), 1e9});
  report.waits.assign(2000, {std::uint64_t(-1), 1e9});
  const std::vector<std::pair<std::string, std::uint64_t>> numbers(
      9, {std::string(300, 'n'), std::uint64_t(-1)});
  report.trace.assign(200, {std::string(300, 'l'), std::string(300, 'e'), -1'000'000'000'000'000'000,
                            std::uint64_t(-1), numbers});
  report.progress->metrics.assign(200, {bad, -1.2345678901234567e-300});
  const std::string bytes = Encode(report);
  EXPECT_LE(bytes.size(), kMaxReportBytes);
  const WorkerReport read = Read(bytes);
  EXPECT_THAT(read.traffic, SizeIs(kMaxReportedTraffic));
  EXPECT_THAT(read.waits, SizeIs(kMaxReportedWaits));
  EXPECT_THAT(read.progress->metrics, SizeIs(kMaxReportedMetrics));
  EXPECT_THAT(read.trace, SizeIs(kMaxTracedEvents));
}

TEST(ReportTest, NothingThatATerminalObeysComesOut) {
  WorkerReport report;
  report.task_id = "\x1b[2J\"\\\n";
  EXPECT_EQ(Read(Encode(report)).task_id, "\\x1b[2J\"\\ ");
  EXPECT_EQ(Read(Message(R"({"host":"\u001b[2J\n\u009b"})")).host, "\\x1b[2J \\xc2\\x9b");
}

TEST(ReportTest, UnknownMembersArePassedOver) {
  const WorkerReport read =
      Read(Message(R"({"later":{"a":[1,{"b":null}]},"task":"5","call":{"number":1,"colour":"red"}})"));
  EXPECT_EQ(read.task_id, "5");
  EXPECT_EQ(read.call->number, 1U);
  EXPECT_EQ(read.rank, -1);
}

TEST(ReportTest, DeeplyNestedMembersAreReadAndRefusedWithoutRecursion) {
  const std::size_t depth = kMaxReportBytes / 2 - 20;
  const std::string deep = std::string(depth, '[') + std::string(depth, ']');
  EXPECT_EQ(Read(Message("{\"task\":\"3\",\"x\":" + deep + "}")).task_id, "3");
  for (const std::string& text :
       {deep, std::string(kMaxReportBytes, '['), std::string("{\"traffic\":") + deep + "}"}) {
    ReportStream stream;
    stream.Append(Message(text));
    EXPECT_THROW(stream.Next(), ProtocolError) << text.substr(0, 20);
  }
}

TEST(ReportTest, ReportsMayComeInPiecesAndManyAtOnce) {
  const std::string both = Encode(Whole()) + Encode(WorkerReport());
  ReportStream stream;
  std::vector<std::string> tasks;
  for (const char c : both) {
    stream.Append(std::string(1, c));
    while (const auto report = stream.Next()) tasks.push_back(report->task_id);
  }
  EXPECT_EQ(tasks, (std::vector<std::string>{"3", ""}));
}

TEST(ReportTest, NonsenseIsRefused) {
  const auto next = [](const std::string& bytes) {
    ReportStream stream;
    stream.Append(bytes);
    stream.Next();
  };
  const auto refused = [&](const std::string& text) {
    EXPECT_THROW(next(Message(text)), ProtocolError) << text;
  };
  for (const char* text : {"",
                           "{",
                           "[]",
                           "null",
                           "7",
                           "{} {}",
                           "{\"task\":\"\xff\"}",
                           R"({"task":7})",
                           R"({"rank":-2})",
                           R"({"rank":1.5})",
                           R"({"rank":2147483648})",
                           R"({"pid":-1})",
                           R"({"call":[]})",
                           R"({"call":{"number":-1}})",
                           R"({"call":{"seconds":-1}})",
                           R"({"call":{"seconds":"1"}})",
                           R"({"call":{"seconds":1e400}})",
                           R"({"call":{"inside":1}})",
                           R"({"traffic":{}})",
                           R"({"traffic":[1]})",
                           R"({"waits":[[1]]})",
                           R"({"every":-1})",
                           R"({"every":"1"})",
                           R"({"waits_dropped":-1})",
                           R"({"waits":[[1,1,1]]})",
                           R"({"waits":[[-1,1]]})",
                           R"({"progress":{"round":-1}})",
                           R"({"progress":{"metrics":[["a","b"]]}})",
                           R"({"progress":{"metrics":[[1,1]]}})",
                           R"({"reading":0})"}) {
    refused(text);
  }
  std::string waits = "[1,1]";
  for (std::size_t i = 0; i < kMaxReportedWaits; ++i) waits += ",[1,1]";
  refused(fmt::format(R"({{"waits":[{}]}})", waits));
  refused(fmt::format(R"({{"task":"{}"}})", std::string(5000, 'a')));
  refused(std::string(kMaxReportBytes - 1, '['));
  EXPECT_THAT([&] { next(Writer().Int(kMaxReportBytes + 1).Take()); },
              ThrowsMessage<ProtocolError>(HasSubstr("announces 524289 bytes")));
}

std::size_t AllocatedBytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(ReportTest, AStreamThatNeverPausesKeepsLittle) {
  // The data is split in the middle of each report, so that the buffer is never empty.
  const std::string report = Encode(Whole());
  ReportStream stream;
  stream.Append(report.substr(0, 10));
  const std::size_t before = AllocatedBytes();
  for (int i = 0; i < 1000; ++i) {
    stream.Append(report.substr(10) + report.substr(0, 10));
    while (stream.Next()) continue;
    ASSERT_EQ(stream.num_buffered(), 10U);
  }
  EXPECT_LT(AllocatedBytes(), before + (std::size_t{64} << 10));
}

}  // namespace
}  // namespace warren::wire
