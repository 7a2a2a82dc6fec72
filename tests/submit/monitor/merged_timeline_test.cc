#include "submit/monitor/merged_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace warren::submit {
namespace {

using Json = nlohmann::json;
using std::chrono::nanoseconds;

class MergedTimelineTest : public testing::Test {
 protected:
  static wire::WorkerReport Report(int rank, std::vector<wire::TracedEvent> trace) {
    wire::WorkerReport report;
    report.rank = rank;
    report.host = "node-" + std::to_string(rank);
    report.trace = std::move(trace);
    return report;
  }
  /// The events whose phase is `kind`, in order.
  static std::vector<Json> Of(const Json& all, const char* kind) {
    std::vector<Json> some;
    for (const Json& event : all) {
      if (event["ph"] == kind) some.push_back(event);
    }
    return some;
  }

  tracker::TimePoint began_{std::chrono::seconds(100)};
  MergedTimeline timeline_{began_};
};

TEST_F(MergedTimelineTest, HasAProcessARankAndALineACommunicator) {
  timeline_.Add(Report(1, {{"world", "Allreduce", 100'000'002'500, 1500, {{"bytes", 64}}}}));
  timeline_.Add(Report(
      0, {{"world", "Allreduce", 99'999'999'999, 7, {}}, {"half", "Barrier", 100'000'000'000, 0, {}}}));
  timeline_.Add(Report(1, {{"world", "Broadcast", 100'000'005'000, 1'000'000'000, {}}}));
  timeline_.Mark("round 1", began_ + nanoseconds(4001));
  timeline_.Finish();
  const Json all = Json::parse(timeline_.TakeText());
  const auto calls = Of(all, "X");
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_EQ(calls[0]["pid"], 1);
  EXPECT_EQ(calls[0]["name"], "Allreduce");
  EXPECT_EQ(calls[0]["ts"], 2.5);
  EXPECT_EQ(calls[0]["dur"], 1.5);
  EXPECT_EQ(calls[0]["args"]["bytes"], 64);
  EXPECT_EQ(calls[1]["ts"], -0.001);
  EXPECT_NE(calls[1]["tid"], calls[2]["tid"]);
  EXPECT_EQ(calls[3]["tid"], calls[0]["tid"]);
  EXPECT_EQ(calls[3]["dur"], 1e6);
  const auto marks = Of(all, "i");
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks[0]["ts"], 4.001);
  std::map<int, std::string> processes;
  for (const Json& event : Of(all, "M")) {
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
  }
  EXPECT_EQ(processes[0], "rank 0 on node-0");
  EXPECT_EQ(processes[1], "rank 1 on node-1");
  EXPECT_EQ(processes.size(), 3U);
}

TEST_F(MergedTimelineTest, CanBeOpenedWhereverItEnds) {
  std::string text = timeline_.TakeText();
  timeline_.Add(Report(0, {{"a", "b", 1, 1, {}}}));
  text += timeline_.TakeText();
  timeline_.Add(Report(0, {{"a", "c", 2, 1, {}}}));
  text += timeline_.TakeText();
  EXPECT_EQ(Of(Json::parse(text + "]"), "X").size(), 2U);
}

TEST_F(MergedTimelineTest, NamesAreQuotedAndRanksThatAreNoneAreLeftOut) {
  timeline_.Add(Report(-1, {{"a", "b", 1, 1, {}}}));
  timeline_.Add(Report(0, {{"a\"\n", "\xff\\", 1, 1, {{"x\"", 1}}}}));
  timeline_.Finish();
  const auto calls = Of(Json::parse(timeline_.TakeText()), "X");
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0]["name"], "\xef\xbf\xbd\\");
}

}  // namespace
}  // namespace warren::submit
