// The ways to write options that arguments_test.cc tests, here for programs whose options CLI11 parses.
#include "cli/parse.h"

#include <gmock/gmock.h>

#include "cli/arguments.h"

namespace warren::cli {
namespace {

using testing::ElementsAre;

/// A program with a subcommand, like rabit-data, and an option with a second name, like rabit-tracker.
class ParseTest : public testing::Test {
 protected:
  ParseTest() {
    app_.add_option("-n,--num-workers", workers_);
    app_.add_option("--host-ip", host_);
    CLI::App* const convert = app_.add_subcommand("convert");
    convert->add_option("data", data_)->required();
    convert->add_option("--threads", threads_);
    convert->add_flag("--test", test_);
  }

  void Run(std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    Parse(app_, static_cast<int>(words.size()), words.data(), {{"-np", "--num-workers"}});
  }

  CLI::App app_;
  int workers_ = 0;
  int threads_ = 0;
  bool test_ = false;
  std::string host_;
  std::string data_;
};

TEST_F(ParseTest, TakesAValueInEveryForm) {
  for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{
           {"-n2"}, {"-np", "2"}, {"--num=2"}, {"--num-workers", "2"}, {"-n", "2"}, {"-n=2"}}) {
    workers_ = 0;
    Run(words);
    EXPECT_EQ(workers_, 2) << words.front();
  }
}

TEST_F(ParseTest, ValuesMayLookLikeOptionsListsOrNothing) {
  for (const char* value : {"[::1]", "--num-workers", "-", "a=b", "{x}", "[a,b]", ""}) {
    Run({"--host-ip", value});
    EXPECT_EQ(host_, value);
  }
}

TEST_F(ParseTest, KnowsTheOptionsOfTheSubcommandBehindItsName) {
  Run({"convert", "--thr", "3", "-", "--tes"});
  EXPECT_EQ(threads_, 3);
  EXPECT_EQ(data_, "-");
  EXPECT_TRUE(test_);
  EXPECT_THROW(Run({"--thr", "3", "convert", "x"}), UsageError);
  EXPECT_THROW(Run({"convert", "--t", "3", "x"}), UsageError) << "--threads or --test";
  EXPECT_THROW(Run({"convert", "--hel"}), CLI::CallForHelp);
  EXPECT_THROW(Run({"-h"}), CLI::CallForHelp);
  Run({"convert", "--", "--thr"});
  EXPECT_EQ(data_, "--thr");
}

TEST_F(ParseTest, ErrorsEndWithTwo) {
  const char* const words[] = {"program", "--num-wrokers", "2"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(ParseOrExplain(app_, "program", 3, words), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "program: error: unknown option '--num-wrokers'; did you mean --num-workers\n"
            "program: --help lists the options\n");
}

}  // namespace
}  // namespace warren::cli
