// The text of the progress bar that a terminal shows during long reads.
#include "data/progress_bar.h"

#include <gtest/gtest.h>

namespace warren::data {
namespace {

TEST(DescribeProgress, TellsShareSpeedAndTimeToGo) {
  EXPECT_EQ(DescribeProgress("reading a", {500'000'000, 1'000'000'000, 7}, 2, 200),
            "reading a: [============            ] 50 %, 250 MB/s, 2 s to go");
}

TEST(DescribeProgress, TellsBytesAndRowsWhenTheTotalIsUnknownOrTooSmall) {
  EXPECT_EQ(DescribeProgress("reading -", {2'500'000, 0, 7}, 1, 200), "reading -: 2.5 MB, 7 rows, 2.5 MB/s");
  EXPECT_EQ(DescribeProgress("reading a.gz", {300, 100, 7}, 1, 200), "reading a.gz: 300 B, 7 rows, 300 B/s");
}

TEST(DescribeProgress, FitsTheTerminal) {
  EXPECT_EQ(DescribeProgress("reading something", {1, 2, 3}, 1, 10), "reading so");
}

TEST(DescribeProgress, DoesNotDivideByNoTime) {
  EXPECT_EQ(DescribeProgress("r", {10, 10, 1}, 0, 200), "r: [========================] 100 %, 0 B/s");
}

}  // namespace
}  // namespace warren::data
