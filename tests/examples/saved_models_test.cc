// The names of saved models, and the conditions under which two runs are considered the same.
#include "examples/xgboost/xgb_train/saved_models.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace warren::xgb_train {
namespace {

class SavedModels : public testing::Test {
 protected:
  SavedModels() { std::filesystem::create_directories(folder_); }
  ~SavedModels() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("saved_models_test." + std::to_string(getpid()));
};

TEST_F(SavedModels, AreNamedByRoundInFourDigitsOrMore) {
  EXPECT_EQ(SavedModelPath("m", 7), "m/0007.model");
  EXPECT_EQ(SavedModelPath("m/", 12345), "m/12345.model");
}

TEST_F(SavedModels, AreListedNewestFirstAndNothingElseIs) {
  for (const char* name : {"0002.model", "0010.model", "10000.model", "0011.model.99.tmp", "0012.json",
                           "x.model", "12.model", "0000.model", "-001.model"}) {
    std::ofstream(folder_ / name) << "x";
  }
  EXPECT_EQ(SavedRounds(folder_), (std::vector<int>{10000, 10, 2}));
}

TEST_F(SavedModels, OfAFolderThatIsNotThereAreNone) {
  EXPECT_TRUE(SavedRounds(folder_ / "none").empty());
}

std::string Describe(std::string_view config, uint64_t digest = 1, const std::string& model_in = "") {
  const auto parameters = MakeParameters(ParseConfig(config, "c"));
  return DescribeRun(parameters, digest, model_in, "1.7.4");
}

TEST(DescribeRun, DiffersWhenWhatGrowsTheTreesDiffers) {
  const std::string run = Describe("data=a\neta=1");
  EXPECT_NE(run, Describe("data=a\neta=2"));
  EXPECT_NE(run, Describe("data=a\neta=1\nmax_depth=3"));
  EXPECT_NE(run, Describe("data=a\neta=1", 2));
  EXPECT_NE(run, Describe("data=a\neta=1", 1, "model"));
}

TEST(DescribeRun, DependsOnTheSavePeriodOnlyWhereABoosterKeepsWhatNoModelHolds) {
  EXPECT_EQ(Describe("data=a\nsave_period=1"), Describe("data=a\nsave_period=2"));
  for (const std::string parameter : {"colsample_bytree=0.5", "subsample=0.5", "feature_selector=shuffle"}) {
    EXPECT_NE(Describe("data=a\nsave_period=1\n" + parameter),
              Describe("data=a\nsave_period=2\n" + parameter));
  }
}

TEST(DescribeRun, IsTheSameWhenOnlyLengthOrDisplayDiffers) {
  EXPECT_EQ(Describe("data=a\neta=1\nmax_depth=2"),
            Describe("max_depth=2\ndata=b\neta=1\nnum_round=99\nsave_period=3\neval_metric=auc\nnthread=2"));
}

}  // namespace
}  // namespace warren::xgb_train
