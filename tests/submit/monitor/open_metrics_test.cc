// Metrics as OpenMetrics text. watching_test.py tests that Prometheus and the parser of its Python client
// accept it.
#include "submit/monitor/open_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/submit/monitor/synthetic_job.h"

namespace warren::submit {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(OpenMetrics, EachFamilySaysWhatItIs) {
  const std::string text = OpenMetrics(SyntheticJob(4, 20));
  EXPECT_THAT(text, HasSubstr("# TYPE warren_collective_bytes counter\n"
                              "# UNIT warren_collective_bytes bytes\n"
                              "# HELP warren_collective_bytes "));
  EXPECT_THAT(
      text,
      HasSubstr(
          "\nwarren_collective_bytes_total{worker=\"worker 3\",rank=\"3\",collective=\"allreduce\",algorithm=\"ring\"} "));
  EXPECT_THAT(text, HasSubstr("\nwarren_workers{state=\"running\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("\nwarren_round 70\n"));
  EXPECT_THAT(text, EndsWith("\n# EOF\n"));
}

TEST(OpenMetrics, LabelsAreEscapedAndUtf8) {
  JobSnapshot job = SyntheticJob(1, 20);
  job.evaluations.back().metrics = {{"a\"b\\c\nd\xff", 1}};
  EXPECT_THAT(OpenMetrics(job), HasSubstr("warren_evaluation{metric=\"a\\\"b\\\\c\\nd\\\\xff\"} 1\n"));
}

TEST(OpenMetrics, NumbersThatAreNoneAreWrittenAsTheFormatHasThem) {
  JobSnapshot job = SyntheticJob(1, 20);
  job.evaluations.back().metrics = {{"a", std::nan("")}, {"b", -std::numeric_limits<double>::infinity()}};
  job.workers[0].seconds_waited = -1;
  const std::string text = OpenMetrics(job);
  EXPECT_THAT(text, HasSubstr("{metric=\"a\"} NaN\n"));
  EXPECT_THAT(text, HasSubstr("{metric=\"b\"} -Inf\n"));
  EXPECT_THAT(text, HasSubstr("warren_worker_waited_seconds_total{worker=\"worker 0\",rank=\"0\"} 0\n"));
}

TEST(OpenMetrics, AMetricThatIsPrintedTwiceIsThereOnce) {
  JobSnapshot job = SyntheticJob(1, 20);
  job.evaluations.back().metrics = {{"a", 1}, {"a", 2}};
  EXPECT_THAT(OpenMetrics(job), Not(HasSubstr("{metric=\"a\"} 2")));
}

TEST(OpenMetrics, TheCommandIsNotShown) {
  JobSnapshot job = SyntheticJob(1, 20);
  job.command = "train s3://user:secret@host/";
  EXPECT_THAT(OpenMetrics(job), Not(HasSubstr("secret")));
}

TEST(OpenMetrics, GrowsLinearlyWithTheWorkers) {
  const auto size = [](int workers) {
    return static_cast<double>(OpenMetrics(SyntheticJob(workers, 20)).size());
  };
  EXPECT_NEAR((size(800) - size(400)) / (size(400) - size(200)), 2, 0.05);
}

}  // namespace
}  // namespace warren::submit
