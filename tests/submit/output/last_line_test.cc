#include "submit/output/last_line.h"

#include <gtest/gtest.h>

namespace warren::submit {
namespace {

TEST(LastLine, IsTheLastOneThatSaysSomething) {
  EXPECT_EQ(LastLine("one\ntwo"), "two");
  EXPECT_EQ(LastLine("one\ntwo\n\n  \n"), "two");
  EXPECT_EQ(LastLine("one\r\ntwo\r\n-----\r\n"), "two")
      << "without the rule, and without the carriage return";
  EXPECT_EQ(LastLine("one"), "one");
  EXPECT_EQ(LastLine(""), "");
  EXPECT_EQ(LastLine("\n===\n"), "");
}

}  // namespace
}  // namespace warren::submit
