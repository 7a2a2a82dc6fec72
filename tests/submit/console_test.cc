// How lines and the bar look.
#include "submit/output/console.h"

#include <gtest/gtest.h>

namespace warren::submit {
namespace {

TEST(Prefix, IsTheLabelInBrackets) {
  EXPECT_EQ(Prefix({1, "server 0", 3}, false), "[server 0] ");
}

TEST(Prefix, HasOneColourForEachNumber) {
  EXPECT_EQ(Prefix({1, "0", 0}, true), "\x1b[36m[0]\x1b[0m ");
  EXPECT_EQ(Prefix({1, "5", 5}, true), Prefix({9, "5", 5}, true));
  EXPECT_NE(Prefix({1, "1", 1}, true), Prefix({1, "1", 2}, true));
}

TEST(ProgressBar, FillsAsWorkersConnect) {
  EXPECT_EQ(ProgressBar(0, 4), "dmlc-submit: [                              ] 0 of 4 workers connected");
  EXPECT_EQ(ProgressBar(2, 4), "dmlc-submit: [===============               ] 2 of 4 workers connected");
  EXPECT_EQ(ProgressBar(4, 4), "dmlc-submit: [==============================] 4 of 4 workers connected");
}

}  // namespace
}  // namespace warren::submit
