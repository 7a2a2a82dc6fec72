// A job as its page receives it: the whole state, the changes, and the kept file.
#include "submit/monitor/page_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "submit/monitor/kept_page.h"
#include "tests/submit/monitor/synthetic_job.h"

namespace warren::submit {
namespace {

using nlohmann::json;

/// Applies a change as page/state.js does.
void Apply(json& state, const json& change) {
  state["job"].update(change["job"]);
  for (const json& worker : change["workers"])
    state["workers"][worker["i"].get<std::size_t>()].update(worker);
  if (change.contains("all_evaluations")) state["evaluations"] = json::array();
  for (const json& one : change["evaluations"]) {
    json& known = state["evaluations"];
    auto at = known.begin();
    while (at != known.end() && (*at)[0] < one[0]) ++at;
    if (at != known.end() && (*at)[0] == one[0]) {
      *at = one;
    } else {
      known.insert(at, one);
    }
  }
  for (const json& event : change["events"]) state["events"].push_back(event);
}

TEST(PageState, ChangesLeadToTheStateThatIsSentWhole) {
  json state = json::parse(PageState(SyntheticJob(8, 0)));
  JobSnapshot before = SyntheticJob(8, 0);
  for (const double seconds : {0.5, 1.0, 3.0, 5.5, 6.5, 20.0, 61.0, 91.0, 1000.0}) {
    const JobSnapshot now = SyntheticJob(8, seconds);
    Apply(state, json::parse(PageChange(before, now)));
    EXPECT_EQ(state, json::parse(PageState(now))) << "after " << seconds << " s";
    before = now;
  }
}

TEST(PageState, NothingIsSentOfAJobThatHasNotChanged) {
  const JobSnapshot job = SyntheticJob(100, 30);
  EXPECT_EQ(PageChange(job, job), R"({"job":{},"workers":[],"evaluations":[],"events":[]})");
}

TEST(PageState, AChangeHoldsOnlyTheWorkerThatHasChangedAndOfItOnlyThat) {
  const JobSnapshot before = SyntheticJob(1000, 30);
  JobSnapshot now = before;
  now.workers[700].state = WorkerState::kStuck;
  now.workers[700].cores_used += 0.001;  // too small to be shown
  EXPECT_EQ(PageChange(before, now),
            R"({"job":{},"workers":[{"i":700,"state":"stuck"}],"evaluations":[],"events":[]})");
}

TEST(PageState, EvaluationsThatWereThinnedOutComeWhole) {
  const JobSnapshot before = SyntheticJob(1, 10);
  JobSnapshot now = before;
  ASSERT_GT(now.evaluations.size(), 4u);
  now.evaluations.erase(now.evaluations.begin() + 1);
  json state = json::parse(PageState(before));
  Apply(state, json::parse(PageChange(before, now)));
  EXPECT_EQ(state, json::parse(PageState(now)));
}

TEST(PageState, ARoundThatIsEvaluatedAgainReplacesTheOldValue) {
  const JobSnapshot before = SyntheticJob(1, 10);
  JobSnapshot now = before;
  now.evaluations[2].metrics[0].second = 7;
  const json change = json::parse(PageChange(before, now));
  ASSERT_EQ(change["evaluations"].size(), 1u);
  EXPECT_EQ(change["evaluations"][0][2]["train-logloss"], 7);
}

TEST(PageState, AMetricThatIsNoNumberIsSentOnce) {
  JobSnapshot job = SyntheticJob(1, 10);
  job.evaluations = {{1, 1, {{"train-rmse", std::nan("")}}}};
  EXPECT_EQ(PageChange(job, job), R"({"job":{},"workers":[],"evaluations":[],"events":[]})");
  JobSnapshot now = job;
  now.evaluations[0].metrics[0].second = 7;
  EXPECT_EQ(json::parse(PageChange(job, now))["evaluations"].size(), 1u);
}

TEST(PageState, WhoMakesOthersWaitIsSentInPercents) {
  JobSnapshot job = SyntheticJob(1, 10);
  job.workers[0].makes_wait = 0.4149;
  job.workers[0].makes_wait_now = 0.126;
  const json worker = json::parse(PageState(job))["workers"][0];
  EXPECT_EQ(worker["makes_wait"], 0.41);
  EXPECT_EQ(worker["makes_wait_now"], 0.13);
}

TEST(PageState, NumbersThatJsonHasNotAreNull) {
  JobSnapshot job = SyntheticJob(1, 10);
  job.evaluations = {{1, 1, {{"train-rmse", std::nan("")}}}};
  EXPECT_TRUE(json::parse(PageState(job))["evaluations"][0][2]["train-rmse"].is_null());
}

TEST(PageState, TextOfAnyBytesIsJson) {
  JobSnapshot job = SyntheticJob(1, 10);
  job.name = "a\"b\\c\n\xff</script>\x01";
  EXPECT_EQ(json::parse(PageState(job))["job"]["name"], "a\"b\\c\n\xEF\xBF\xBD</script>\x01");
}

TEST(KeptPage, NothingThatAWorkerWritesEndsTheElementOfTheState) {
  JobSnapshot job = SyntheticJob(2, 1000);
  job.story = "</script><script>alert(1)</script><!-- <script>";
  OutputHistory output(2);
  output.Add(0, Stream::kErr, job.story);
  const std::string page = KeptPage(job, output, UsageHistory(1));
  const std::size_t begin = page.find("<script id=\"kept\" type=\"application/json\">");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t first = page.find('>', begin) + 1;
  const std::size_t end = page.find('<', first);
  EXPECT_EQ(page.substr(end, 9), "</script>");
  const json kept = json::parse(page.substr(first, end - first));
  EXPECT_EQ(kept["state"]["job"]["story"], job.story);
  EXPECT_EQ(kept["logs"][0]["lines"][0][3], job.story);
}

TEST(KeptPage, NeedsNoOtherFile) {
  const std::string page = KeptPage(SyntheticJob(2, 1000), OutputHistory(2), UsageHistory(2));
  EXPECT_EQ(page.find("page.css"), std::string::npos);
  EXPECT_EQ(page.find("page.js"), std::string::npos);
  EXPECT_NE(page.find("function drawHead"), std::string::npos);
}

TEST(Evaluations, AreThinnedOutToTheMostThatAreKeptAndEndWithTheLatest) {
  JobSnapshot job;
  EXPECT_EQ(EvaluationsJson(job, 3), R"({"evaluations":[]})");
  for (int round = 1; round <= 7; ++round) {
    job.evaluations.push_back({.round = round, .seconds = round * 0.5, .metrics = {{"m", round}}});
  }
  EXPECT_EQ(EvaluationsJson(job, 3), R"({"evaluations":[[1,0.5,{"m":1}],[4,2,{"m":4}],[7,3.5,{"m":7}]]})");
  EXPECT_EQ(nlohmann::json::parse(EvaluationsJson(job, 7))["evaluations"].size(), 7U);
}

}  // namespace
}  // namespace warren::submit
