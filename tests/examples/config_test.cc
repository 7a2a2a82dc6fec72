// The grammar of xgb-train's configuration file.
#include "examples/xgboost/xgb_train/config.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace warren::xgb_train {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs Parse(std::string_view text) {
  Pairs pairs;
  for (const Setting& setting : ParseConfig(text, "a.conf")) pairs.emplace_back(setting.key, setting.value);
  return pairs;
}

std::string ConfigComplaint(std::string_view text) {
  try {
    ParseConfig(text, "a.conf");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Config, KeysAndValuesStandAroundAnEqualsSignWithOrWithoutBlanks) {
  EXPECT_EQ(Parse("a=1\n b\t=  2 \nc =3"), (Pairs{{"a", "1"}, {"b", "2"}, {"c", "3"}}));
}

TEST(Config, CommentsAndEmptyLinesMeanNothing) {
  EXPECT_EQ(Parse("# a = 1\n\n   \n  # more\nb = 2 # comment\nc=3#comment"), (Pairs{{"b", "2"}, {"c", "3"}}));
}

TEST(Config, QuotesProtectBlanksAndHashes) {
  EXPECT_EQ(Parse("a = \"x y#z\" # c\n'k e' = 'it is \"so\"'"),
            (Pairs{{"a", "x y#z"}, {"k e", "it is \"so\""}}));
}

TEST(Config, NamesWithBracketsAndColonsAreKeys) {
  EXPECT_EQ(Parse("eval[test] = t.txt\ntest:data = u.txt"),
            (Pairs{{"eval[test]", "t.txt"}, {"test:data", "u.txt"}}));
}

TEST(Config, AValueMayHoldEqualsSigns) {
  EXPECT_EQ(Parse("data = x?format=libsvm"), (Pairs{{"data", "x?format=libsvm"}}));
}

TEST(Config, EveryKindOfLineEndCountsOnce) {
  const auto settings = ParseConfig("a=1\r\nb=2\rc=3\n\nd=4", "a.conf");
  ASSERT_EQ(settings.size(), 4u);
  EXPECT_EQ(settings[1].origin, "a.conf:2");
  EXPECT_EQ(settings[2].origin, "a.conf:3");
  EXPECT_EQ(settings[3].origin, "a.conf:5");
}

TEST(Config, ALineWithoutAnEqualsSignIsRefusedWithItsPlace) {
  EXPECT_EQ(ConfigComplaint("a=1\n\nmax_depth 3\n"), "a.conf:3: found: max_depth 3; expected: key = value");
}

TEST(Config, AMissingKeyOrValueIsRefused) {
  EXPECT_EQ(ConfigComplaint("= 1"), "a.conf:1: found: = 1; expected: a key");
  EXPECT_EQ(ConfigComplaint("a ="), "a.conf:1: found: a =; expected: a value after '='");
  EXPECT_EQ(ConfigComplaint("a = # 3"), "a.conf:1: found: a = # 3; expected: a value after '='");
}

TEST(Config, AnUnclosedQuoteIsRefused) {
  EXPECT_EQ(ConfigComplaint("a = \"x"), "a.conf:1: found: a = \"x; expected: a closing \"");
}

TEST(Config, AByteOrderMarkIsNoPartOfTheFirstKey) {
  EXPECT_EQ(Parse("\xef\xbb\xbf"
                  "a = 1\nb = 2\n"),
            (Pairs{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(Parse("\xef\xbb\xbf# c\r\na = 1\r\n"), (Pairs{{"a", "1"}}));
  EXPECT_EQ(Parse("\xef\xbb\xbf"), Pairs{});
  EXPECT_EQ(ConfigComplaint({"\xff\xfe"
                             "a\0=\0"
                             "1\0",
                             8}),
            "a.conf: found a NUL byte, expected UTF-8 text (not UTF-16)");
}

TEST(Config, TwoValuesAreRefused) {
  EXPECT_NE(ConfigComplaint("a = 1 2").find("a.conf:1: found: a = 1 2; expected: one value"),
            std::string::npos);
}

TEST(Config, ArgumentsKeepTheirValueAsItIs) {
  const std::vector<std::string> arguments{"data=a b#'c'=d"};
  const auto settings = ParseArguments(arguments);
  ASSERT_EQ(settings.size(), 1u);
  EXPECT_EQ(settings[0].key, "data");
  EXPECT_EQ(settings[0].value, "a b#'c'=d");
}

TEST(Config, ArgumentsWithoutKeyOrValueAreRefused) {
  for (const char* bad : {"eta", "=1", "eta="}) {
    const std::vector<std::string> arguments{bad};
    EXPECT_THROW(ParseArguments(arguments), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace warren::xgb_train
