#include "examples/histgbt/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warren::histgbt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Options Make(const std::vector<std::string>& arguments) {
  return MakeOptions(xgb_train::ParseArguments(arguments));
}

std::string Complaint(const std::vector<std::string>& arguments) {
  try {
    Make(arguments);
  } catch (const xgb_train::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Options, HaveXgboostsDefaults) {
  const Options options = Make({"data=x"});
  EXPECT_EQ(options.objective_name, "reg:squarederror");
  EXPECT_EQ(options.tree.max_depth, 6);
  EXPECT_EQ(options.tree.eta, 0.3);
  EXPECT_EQ(options.tree.split.lambda, 1);
  EXPECT_EQ(options.max_bin, 256);
  EXPECT_THAT(options.metrics, ElementsAre("rmse"));
}

TEST(Options, AreTakenUnderBothNames) {
  const Options options = Make({"train=x", "learning_rate=0.1", "reg_lambda=2", "min_split_loss=3",
                                "min_child_weight=4", "eval[a]=b", "objective=multi:softmax", "num_class=3",
                                "eval_metric=merror", "eval_metric=mlogloss"});
  EXPECT_EQ(options.data, "x");
  EXPECT_EQ(options.tree.eta, 0.1);
  EXPECT_EQ(options.tree.split.lambda, 2);
  EXPECT_EQ(options.tree.split.gamma, 3);
  EXPECT_EQ(options.tree.split.min_child_weight, 4);
  EXPECT_EQ(options.eval_sets.at(0).name, "a");
  EXPECT_EQ(options.trees_per_round(), 3);
  EXPECT_THAT(options.metrics, ElementsAre("merror", "mlogloss"));
}

TEST(Options, ALaterEvaluationSetOfTheSameNameReplacesTheFormerOne) {
  const Options options = Make({"data=x", "eval[a]=of the file", "eval[b]=c", "eval[a]=of the arguments"});
  ASSERT_EQ(options.eval_sets.size(), 2U);
  EXPECT_EQ(options.eval_sets[0].name, "b");
  EXPECT_EQ(options.eval_sets[1].name, "a");
  EXPECT_EQ(options.eval_sets[1].path, "of the arguments");
}

TEST(Options, AreRefusedWithWhatWasExpected) {
  EXPECT_THAT(Complaint({}), HasSubstr("data is not set"));
  EXPECT_THAT(Complaint({"data=x", "eta=fast"}),
              HasSubstr("found eta = fast; expected a number of at least 0"));
  EXPECT_THAT(Complaint({"data=x", "eta=nan"}), HasSubstr("found eta = nan"));
  EXPECT_THAT(Complaint({"data=x", "max_depth=0"}), HasSubstr("expected a whole number from 1 to 20"));
  EXPECT_THAT(Complaint({"data=x", "max_bin=70000"}), HasSubstr("from 2 to 65536"));
  EXPECT_THAT(Complaint({"data=x", "nthread=1025"}), HasSubstr("from 0 to 1024"));
  EXPECT_THAT(Complaint({"data=x", "objective=rank:ndcg"}),
              HasSubstr("expected reg:squarederror, binary:logistic"));
  EXPECT_THAT(Complaint({"data=x", "objective=multi:softprob"}), HasSubstr("needs num_class"));
  EXPECT_THAT(Complaint({"data=x", "num_class=3"}), HasSubstr("objective is reg:squarederror"));
  EXPECT_THAT(Complaint({"data=x", "colour=blue"}), HasSubstr("there is no option colour"));
  EXPECT_THAT(Complaint({"data=x", "eval_metric=nonesuch"}),
              HasSubstr("found eval_metric = nonesuch; expected auc, logloss"));
  EXPECT_THAT(Complaint({"data=x", "eval_metric=auc"}),
              HasSubstr("the metric auc does not apply to reg:squarederror"));
  EXPECT_THAT(Complaint({"data=x", "objective=binary:logistic", "base_score=1"}),
              HasSubstr("between 0 and 1"));
  EXPECT_THAT(Complaint({"data=x", "objective=binary:logistic", "base_score=1e-40"}),
              HasSubstr("between 0 and 1"));
  EXPECT_THAT(Complaint({"data=x", "early_stopping_rounds=3"}), HasSubstr("needs something to evaluate"));
}

}  // namespace
}  // namespace warren::histgbt
