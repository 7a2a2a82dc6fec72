// Manual pages: their sections, and text that roff must not interpret.
#include "tracker/man_page.h"

#include <gmock/gmock.h>

#include <string>

namespace warren::tracker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string PageOf(const std::string& paragraph) {
  return ManText(
      {"my-program", "1.2.3", "do it", "[options]", {{"Files", {paragraph}, {{"--all", "Takes all."}}}}});
}

TEST(ManPage, HasTheSectionsThatReadersLookFor) {
  EXPECT_THAT(PageOf("One."), StartsWith(".TH MY\\-PROGRAM 1 \"\" \"Warren 1.2.3\" \"Warren\"\n"
                                         ".SH NAME\nmy\\-program \\- do it\n"
                                         ".SH SYNOPSIS\n.B my\\-program\n[options]\n"
                                         ".SH FILES\nOne.\n.TP\n.B \\-\\-all\nTakes all.\n"));
}

TEST(ManPage, SentencesHaveLinesOfTheirOwn) {
  EXPECT_THAT(PageOf("Does a. Then b, e.g. now. 2. is no sentence."),
              HasSubstr("\nDoes a.\nThen b, e.g. now. 2. is no sentence.\n"));
}

TEST(ManPage, NoLineIsARequest) {
  EXPECT_THAT(PageOf(".profile is read"), HasSubstr("\n\\&.profile is read\n"));
  const std::string long_word(70, 'x');
  EXPECT_THAT(PageOf(long_word + " in '.profile' it"), HasSubstr(long_word + " in\n\\&'.profile' it\n"));
}

TEST(ManPage, BackslashesAreKeptAndQuotedWordsAreBold) {
  EXPECT_THAT(PageOf("a\\b `--tls` c"), HasSubstr("a\\eb \\fB\\-\\-tls\\fR c\n"));
}

}  // namespace
}  // namespace warren::tracker
