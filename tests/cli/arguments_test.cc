// The ways to write options, and the errors for anything else.
#include "cli/arguments.h"

#include <gmock/gmock.h>

#include <random>

namespace warren::cli {
namespace {

using testing::ElementsAre;

/// Options 0 to 5: a number with short names, two options with a common prefix, two flags with short names,
/// and an option with an optional value.
const ArgumentReader& Reader() {
  static const ArgumentReader reader(
      {{{"--num-workers", "-n", "-np"}, ValueUse::kRequired, "N", true},
       {{"--host-file", "-H", "--hostfile"}, ValueUse::kRequired, "FILE", false},
       {{"--host-ip"}, ValueUse::kRequired, "IP", false},
       {{"--quiet", "-q"}, ValueUse::kNone, "", false},
       {{"--help", "-h"}, ValueUse::kNone, "", false},
       {{"--dashboard"}, ValueUse::kOptional, "[=PORT]", false}});
  return reader;
}

struct Result {
  std::vector<GivenOption> given;
  std::size_t at = 0;
};

Result Read(const std::vector<std::string>& words) {
  Result result;
  result.given = Reader().ReadOptions(words, result.at);
  return result;
}

std::string ErrorOf(const std::vector<std::string>& words) {
  try {
    Read(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(none)";
}

TEST(ArgumentReader, TakesAValueInEveryForm) {
  const GivenOption two{0, "2"};
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--num-workers", "2"},
                                                                                     {"--num-workers=2"},
                                                                                     {"--num-w=2"},
                                                                                     {"--num", "2"},
                                                                                     {"--n", "2"},
                                                                                     {"-n", "2"},
                                                                                     {"-n=2"},
                                                                                     {"-n2"},
                                                                                     {"-np", "2"},
                                                                                     {"-np=2"},
                                                                                     {"-np2"}}) {
    const Result result = Read(words);
    EXPECT_THAT(result.given, ElementsAre(two)) << testing::PrintToString(words);
    EXPECT_EQ(result.at, words.size());
  }
  EXPECT_THAT(Read({"-n-2"}).given, ElementsAre(GivenOption{0, "-2"}));
  EXPECT_THAT(Read({"-Hhosts=a"}).given, ElementsAre(GivenOption{1, "hosts=a"}));
  EXPECT_THAT(Read({"-H", ""}).given, ElementsAre(GivenOption{1, ""}));
  EXPECT_THAT(Read({"--hostf", "--quiet"}).given, ElementsAre(GivenOption{1, "--quiet"}));
}

TEST(ArgumentReader, TakesLettersOfFlagsInOneWord) {
  EXPECT_THAT(Read({"-qh"}).given, ElementsAre(GivenOption{3, ""}, GivenOption{4, ""}));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"-qn2"}, {"-qn", "2"}, {"-qn=2"}}) {
    EXPECT_THAT(Read(words).given, ElementsAre(GivenOption{3, ""}, GivenOption{0, "2"}));
  }
}

TEST(ArgumentReader, StopsAtTheFirstWordThatIsNoOption) {
  EXPECT_EQ(Read({"-q", "run", "-n2", "--quiet"}).at, 1U);
  EXPECT_EQ(Read({"-q", "--", "-n2"}).at, 1U);
  EXPECT_EQ(Read({"-", "-n2"}).at, 0U);
  EXPECT_EQ(Read({"", "-n2"}).at, 0U);
  const Result result = Read({"--dashboard", "8080"});
  EXPECT_THAT(result.given, ElementsAre(GivenOption{5, ""}));
  EXPECT_EQ(result.at, 1U) << "a value that may be left out stands behind '='";
  EXPECT_THAT(Read({"--dash=8080"}).given, ElementsAre(GivenOption{5, "8080"}));
}

TEST(ArgumentReader, SaysWhatAnAmbiguousAbbreviationCouldBe) {
  EXPECT_EQ(ErrorOf({"--host", "x"}), "ambiguous option '--host': it could be --host-file, --host-ip");
  EXPECT_EQ(ErrorOf({"--h"}), "ambiguous option '--h': it could be --host-file, --host-ip, --help");
  EXPECT_EQ(ErrorOf({"--hostf", "x"}), "(none)") << "both names are those of one option";
}

TEST(ArgumentReader, NamesTheNearestToAnUnknownOption) {
  EXPECT_EQ(ErrorOf({"--num-wrokers", "3"}), "unknown option '--num-wrokers'; did you mean --num-workers");
  EXPECT_EQ(ErrorOf({"-num", "3"}), "unknown option '-num'; did you mean --num-workers");
  EXPECT_EQ(ErrorOf({"-hostfile", "h"}), "unknown option '-hostfile'; did you mean --host-file");
  EXPECT_EQ(ErrorOf({"-help"}), "unknown option '-help'; did you mean --help");
  EXPECT_EQ(ErrorOf({"-qx"}), "unknown option '-qx'; did you mean --quiet");
  EXPECT_EQ(ErrorOf({"--wrong"}), "unknown option '--wrong'");
  EXPECT_EQ(ErrorOf({"-x"}), "unknown option '-x'");
  EXPECT_EQ(ErrorOf({"-nprocs", "2"}), "unknown option '-nprocs'; did you mean --num-workers");
  EXPECT_EQ(ErrorOf({"-nprocs2"}), "unknown option '-nprocs2'; did you mean --num-workers");
}

TEST(ArgumentReader, SaysWhatIsWrongWithAValue) {
  EXPECT_EQ(ErrorOf({"--num-workers"}), "--num-workers needs a value: --num-workers N");
  EXPECT_EQ(ErrorOf({"-qn"}), "--num-workers needs a value: --num-workers N");
  EXPECT_EQ(ErrorOf({"--quiet=yes"}), "--quiet takes no value");
  EXPECT_EQ(ErrorOf({"-q=yes"}), "--quiet takes no value");
}

/// Either all words are read, or an error is thrown, or reading stops at a word that is not an option.
TEST(ArgumentReader, LosesNoWord) {
  const std::vector<std::string> pieces = {"-",    "--",        "n", "np", "q", "h",   "H", "num-workers",
                                           "host", "dashboard", "=", "2",  "",  "run", "é"};
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> words(random() % 5);
    for (std::string& word : words) {
      for (std::size_t piece = random() % 4; piece > 0; --piece) word += pieces[random() % pieces.size()];
    }
    std::size_t at = 0;
    try {
      const std::vector<GivenOption> given = Reader().ReadOptions(words, at);
      ASSERT_LE(at, words.size());
      if (at < words.size()) {
        ASSERT_TRUE(words[at].size() < 2 || words[at][0] != '-' || words[at] == "--") << words[at];
      }
      std::size_t letters = 0;
      for (std::size_t i = 0; i < at; ++i) letters += words[i].size();
      ASSERT_LE(given.size(), letters);
      ASSERT_EQ(given.empty(), at == 0);
      for (const GivenOption& one : given) ASSERT_LT(one.form, Reader().forms().size());
    } catch (const UsageError& error) {
      ASSERT_STRNE(error.what(), "");
    }
  }
}

}  // namespace
}  // namespace warren::cli
