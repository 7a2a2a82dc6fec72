// The cores and memory that workers have used over time.
#include "submit/monitor/usage_history.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

namespace warren::submit {
namespace {

TEST(UsageHistory, HasOneListPerProcessAndCommonTimes) {
  UsageHistory history(2);
  EXPECT_EQ(history.Json(), R"({"seconds":[],"cores":[[],[]],"mib":[[],[]]})");
  EXPECT_TRUE(history.IsDue(0));
  history.Add(0, {{0.94, 3 << 20}, {2, 0}});
  EXPECT_FALSE(history.IsDue(0.5));
  EXPECT_TRUE(history.IsDue(1.0));
  history.Add(1.26, {{1, 4 << 20}, {0, 5 << 20}});
  EXPECT_EQ(history.Json(), R"({"seconds":[0,1.3],"cores":[[0.9,1],[2,0]],"mib":[[3,4],[0,5]]})");
}

/// The times that are kept for a job with this many processes that runs for this many seconds. Usage is added
/// each second if it is due.
std::vector<double> TimesOf(std::size_t processes, int seconds) {
  UsageHistory history(processes);
  for (int second = 0; second < seconds; ++second) {
    if (history.IsDue(second)) history.Add(second, std::vector<Usage>(processes));
  }
  return nlohmann::json::parse(history.Json())["seconds"].get<std::vector<double>>();
}

TEST(UsageHistory, ALongJobKeepsTimesAtLongerIntervals) {
  for (const int seconds : {100, 241, 1000, 100'000}) {
    const std::vector<double> times = TimesOf(3, seconds);
    EXPECT_LE(times.size(), 240U);
    EXPECT_GE(times.size(), seconds < 240 ? 100U : 120U);
    EXPECT_EQ(times.front(), 0);
    const double step = times[1] - times[0];
    for (std::size_t i = 1; i < times.size(); ++i) EXPECT_EQ(times[i] - times[i - 1], step) << seconds;
    EXPECT_LT(seconds - times.back(), 2 * step + 1);
  }
}

TEST(UsageHistory, ALargeJobKeepsFewerTimes) {
  EXPECT_LE(TimesOf(1000, 200).size(), 60U);
  EXPECT_LE(TimesOf(10'000, 40).size(), 30U);
}

}  // namespace
}  // namespace warren::submit
