// Checkpoints in a job of one process: the stored models, and rabit's checkpoint functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rabit/rabit.h>

#include <string>

#include "rabit_engine/recovery/state.h"

namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using warren::recovery::Models;

TEST(Models, SaveALazyOneOnceAndOnlyWhenAsked) {
  int saved = 0;
  Models models;
  EXPECT_FALSE(models.has_global());
  models.serialize = [&saved] {
    ++saved;
    return std::string("lazy");
  };
  EXPECT_TRUE(models.has_global());
  EXPECT_EQ(saved, 0);
  EXPECT_EQ(models.Global(), "lazy");
  EXPECT_EQ(models.Global(), "lazy");
  EXPECT_EQ(saved, 1);
}

struct Text : rabit::Serializable {
  explicit Text(std::string initial = "") : text(std::move(initial)) {}
  void Load(rabit::Stream* stream) override { stream->Read(&text); }
  void Save(rabit::Stream* stream) const override {
    ++times_saved;
    stream->Write(text);
  }
  std::string text;
  mutable int times_saved = 0;
};

class Checkpoints : public testing::Test {
 protected:
  void SetUp() override { rabit::Init(0, nullptr); }
  void TearDown() override { rabit::Finalize(); }
};

TEST_F(Checkpoints, OfAFreshStartAreVersionZeroAndTouchNothing) {
  Text global("untouched");
  Text local("untouched");
  EXPECT_EQ(rabit::LoadCheckPoint(&global, &local), 0);
  EXPECT_EQ(global.text, "untouched");
  EXPECT_EQ(local.text, "untouched");
}

TEST_F(Checkpoints, AreCopiesOfBothModels) {
  Text global("global");
  Text local("local");
  rabit::CheckPoint(&global, &local);
  global.text = local.text = "changed";
  EXPECT_EQ(rabit::VersionNumber(), 1);
  EXPECT_EQ(rabit::LoadCheckPoint(&global, &local), 1);
  EXPECT_EQ(global.text, "global");
  EXPECT_EQ(local.text, "local");
}

TEST_F(Checkpoints, ThatAreLazySaveTheModelOnlyWhenItIsLoaded) {
  const Text model("as it is now");
  rabit::LazyCheckPoint(&model);
  rabit::LazyCheckPoint(&model);
  EXPECT_EQ(rabit::VersionNumber(), 2);
  EXPECT_EQ(model.times_saved, 0);
  Text loaded;
  EXPECT_EQ(rabit::LoadCheckPoint(&loaded), 2);
  EXPECT_EQ(loaded.text, "as it is now");
  EXPECT_EQ(model.times_saved, 1);
}

TEST_F(Checkpoints, WithoutModelsEndAVersionAndLoadAsNothing) {
  rabit::CheckPoint();
  EXPECT_EQ(rabit::VersionNumber(), 1);
  EXPECT_EQ(rabit::LoadCheckPoint(), 0);
  Text model;
  EXPECT_THAT([&] { rabit::LoadCheckPoint(&model); },
              ThrowsMessage<dmlc::Error>(HasSubstr("without a global model")));
}

TEST_F(Checkpoints, ThatHaveNoLocalModelRefuseToLoadOne) {
  Text model("global");
  Text local("untouched");
  rabit::CheckPoint(&model);
  EXPECT_THAT([&] { rabit::LoadCheckPoint(&model, &local); },
              ThrowsMessage<dmlc::Error>(HasSubstr(
                  "rank 0: rabit::LoadCheckPoint: version 1 was checkpointed without a local model")));
  EXPECT_EQ(local.text, "untouched");
}

TEST_F(Checkpoints, RefuseALocalModelInSomeCallsOnly) {
  Text model("global");
  Text local("local");
  const auto begin_again = [] {
    rabit::Finalize();
    rabit::Init(0, nullptr);
  };
  const auto with = [&] { rabit::CheckPoint(&model, &local); };
  const auto without = [&] { rabit::CheckPoint(&model); };
  const auto lazily = [&] { rabit::LazyCheckPoint(&model); };
  rabit::LoadCheckPoint(&model);
  EXPECT_THAT(
      with, ThrowsMessage<dmlc::Error>(HasSubstr("rank 0: rabit::CheckPoint: called with a local model, but "
                                                 "rabit::LoadCheckPoint was called without a local model")));
  EXPECT_NO_THROW(without());
  begin_again();
  rabit::LoadCheckPoint(&model, &local);
  EXPECT_THAT(without, ThrowsMessage<dmlc::Error>(HasSubstr("called without a local model")));
  EXPECT_THAT(lazily,
              ThrowsMessage<dmlc::Error>(HasSubstr("rabit::LazyCheckPoint: called without a local model")));
  EXPECT_EQ(rabit::VersionNumber(), 0);
  EXPECT_NO_THROW(with());
  begin_again();
  rabit::LazyCheckPoint(&model);
  EXPECT_THAT(with, ThrowsMessage<dmlc::Error>(HasSubstr("but rabit::LazyCheckPoint was called without")));
}

TEST_F(Checkpoints, MayCountAVersionOrLoadTheGlobalModelAloneWhileTheyHaveLocalModels) {
  Text model("global");
  Text local("local");
  rabit::CheckPoint();
  EXPECT_EQ(rabit::LoadCheckPoint(), 0);
  rabit::CheckPoint(&model, &local);
  rabit::CheckPoint();
  rabit::CheckPoint(&model, &local);
  EXPECT_EQ(rabit::LoadCheckPoint(&model), 4);
  EXPECT_NO_THROW(rabit::CheckPoint(&model, &local));
}

TEST_F(Checkpoints, BeginAnewWithEachJob) {
  const Text model("model");
  rabit::CheckPoint(&model);
  rabit::Finalize();
  EXPECT_EQ(rabit::VersionNumber(), 0);
  rabit::Init(0, nullptr);
  EXPECT_EQ(rabit::VersionNumber(), 0);
}

}  // namespace
