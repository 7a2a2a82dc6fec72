// Files through dmlc-core's streams. What its file:// opens stands for what it opens elsewhere.
#include "data/source/remote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <thread>
#include <vector>

#include "data/error.h"
#include "data/source/inputs.h"
#include "data/source/stream.h"
#include "tests/data/temporary_folder.h"

namespace warren::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RemoteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      OpenRemote(Uri(folder_.Write("probe", "x")));
    } catch (const DataError& error) {
      if (std::string(error.what()).find("without dmlc-core") != std::string::npos)
        GTEST_SKIP() << error.what();
      throw;
    }
  }
  static std::string Uri(const std::string& path) { return "file://" + path; }

  TemporaryFolder folder_;
};

TEST_F(RemoteTest, AFileIsReadAtAnyPlaceByAnyNumberOfThreads) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i) + "\n";
  const auto file = OpenRemote(Uri(folder_.Write("a", text)));
  EXPECT_EQ(file->size(), text.size());
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (std::size_t at = number * 100; at + 500 < text.size(); at += 1777) {
        std::string got(500, '\0');
        file->ReadAt(at, got.data(), got.size());
        EXPECT_EQ(got, text.substr(at, 500));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RemoteTest, AFolderIsItsFilesInTheOrderOfTheirNames) {
  folder_.Write("set/b", "2");
  folder_.Write("set/a", "1");
  const std::vector<std::string> files = ListRemote(Uri(folder_ / "set"));
  EXPECT_THAT(files, ElementsAre(HasSubstr("set/a"), HasSubstr("set/b")));
  EXPECT_EQ(OpenRemote(files[0])->size(), 1U);
}

TEST_F(RemoteTest, CompressedOnesAreStreams) {
  const std::string path = folder_ / "a.gz";
  gzFile out = gzopen(path.c_str(), "wb");
  gzwrite(out, "1 2:3\n", 6);
  gzclose(out);
  EXPECT_EQ(Recognise(Uri(path)), Container::kGzip);
  const auto stream = OpenStream(Uri(path));
  std::string text(100, '\0');
  text.resize(stream->Read(text.data(), text.size()));
  EXPECT_EQ(text, "1 2:3\n");
}

TEST_F(RemoteTest, WhatCannotBeOpenedIsSaidInDmlcCoresWords) {
  for (const std::string& uri : {Uri(folder_ / "none"), std::string("nonsense://a/b")}) {
    try {
      ListInputs({uri.starts_with("file") ? "x" + uri : uri});
      FAIL() << "no error for " << uri;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("dmlc-core: "));
      EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("Stack trace")));
    }
  }
}

}  // namespace
}  // namespace warren::data
