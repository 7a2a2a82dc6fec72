// The table of parameters: the settings that it accepts, refuses, or leaves to the booster.
#include "examples/xgboost/xgb_train/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warren::xgb_train {
namespace {

using ::testing::HasSubstr;

Parameters Make(const std::string& text) {
  return MakeParameters(ParseConfig("data = train.txt\n" + text, "a.conf"));
}

std::string Complaint(const std::string& text) {
  try {
    Make(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Parameters, TheLaterOfTwoValuesWins) {
  const Parameters p = Make("num_round = 3\nnum_round = 5\neta = 1\neta = 2");
  EXPECT_EQ(p.num_round, 5);
  ASSERT_EQ(p.booster.size(), 1u);
  EXPECT_EQ(p.booster[0].value, "2");
}

TEST(Parameters, WhatCannotBeResumedIsRefusedWhereModelsAreSaved) {
  for (const std::string setting : {"seed_per_iteration = 0", "process_type = update"}) {
    EXPECT_THAT(Complaint(setting + "\nsave_period = 2"), HasSubstr("a.conf:2: found " + setting));
    EXPECT_EQ(Complaint(setting), "accepted");
    EXPECT_EQ(Complaint(setting + "\nsave_period = 2\nresume = 0"), "accepted");
  }
  EXPECT_EQ(Complaint("seed_per_iteration = 1\nprocess_type = default\nsave_period = 2"), "accepted");
}

TEST(Parameters, AnAliasReplacesItsName) {
  EXPECT_EQ(Make("train_path = b").train_path, "b");
  EXPECT_EQ(Make("test:data = a\ntest_path = b").test_path, "b");
  EXPECT_EQ(Make("test_path = a\ntest:data = b").test_path, "b");
  EXPECT_EQ(Make("name_fmap = a").feature_map, "a");
}

TEST(Parameters, EveryEvalMetricCounts) {
  const Parameters p = Make("eval_metric = auc\neval_metric = error");
  ASSERT_EQ(p.booster.size(), 2u);
  EXPECT_EQ(p.booster[0].value, "auc");
  EXPECT_EQ(p.booster[1].value, "error");
}

TEST(Parameters, EvalSetsKeepTheirOrderAndALaterPathReplacesAnEarlier) {
  const Parameters p = Make("eval[b] = 1\neval[a] = 2\neval[a] = 3");
  ASSERT_EQ(p.eval_sets.size(), 2u);
  EXPECT_EQ(p.eval_sets[0].name, "b");
  EXPECT_EQ(p.eval_sets[1].name, "a");
  EXPECT_EQ(p.eval_sets[1].path, "3");
}

TEST(Parameters, UnknownKeysAreTheBoosters) {
  const Parameters p = Make("max_depth = 3");
  ASSERT_EQ(p.booster.size(), 1u);
  EXPECT_EQ(p.booster[0].key, "max_depth");
  EXPECT_EQ(p.booster[0].origin, "a.conf:2");
}

TEST(Parameters, BooleansAreZeroOneTrueOrFalse) {
  EXPECT_TRUE(Make("eval_train = 1").eval_train);
  EXPECT_TRUE(Make("eval_train = True").eval_train);
  EXPECT_FALSE(Make("eval_train = 0").eval_train);
  EXPECT_EQ(Complaint("eval_train = yes"), "a.conf:2: found eval_train = yes; expected 0, 1, false or true");
}

TEST(Parameters, NumbersAreWholeAndInRange) {
  for (const char* bad : {"x", "3x", "1.5", "0", "-1", "99999999999"}) {
    const std::string complaint = Complaint(std::string("num_round = ") + bad);
    EXPECT_EQ(complaint, std::string("a.conf:2: found num_round = ") + bad +
                             "; expected a whole number from 1 to 2147483647");
  }
}

TEST(Parameters, UnknownTasksAndFormatsAreRefusedWithTheirPlace) {
  EXPECT_EQ(Complaint("\ntask = predict"), "a.conf:3: found task = predict; expected train, pred or dump");
  EXPECT_EQ(Complaint("dump_format = xml"), "a.conf:2: found dump_format = xml; expected text, json or dot");
  EXPECT_EQ(Complaint("dsplit = col"), "a.conf:2: found dsplit = col; expected auto or row");
  EXPECT_EQ(Complaint("verbosity = 4").find("a.conf:2: found verbosity = 4; expected 0"), 0u);
  EXPECT_EQ(Complaint("eval[ = x"), "a.conf:2: found eval[ = x; expected eval[NAME] = path");
}

TEST(Parameters, ATaskNamesWhatItMisses) {
  EXPECT_EQ(Complaint("data = NULL"), "task=train needs data, which is not set");
  EXPECT_EQ(Complaint("task = pred\ntest:data = x"), "task=pred needs model_in, which is not set");
  EXPECT_EQ(Complaint("task = pred\nmodel_in = x"), "task=pred needs test:data, which is not set");
  EXPECT_EQ(Complaint("task = dump"), "task=dump needs model_in, which is not set");
}

TEST(Parameters, SilentIsVerbosityZero) {
  EXPECT_EQ(Make("silent = 1").verbosity, 0);
  EXPECT_EQ(Make("silent = 0").verbosity, 1);
}

TEST(Parameters, TheHelpTextNamesEveryParameterItTakes) {
  const std::string help = DescribeParameters();
  for (const char* name : {"task", "data", "test:data", "eval[NAME]", "save_period", "resume", "fmap"}) {
    EXPECT_NE(help.find(std::string("  ") + name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace warren::xgb_train
