#include "examples/xgboost/xgb_train/page_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace warren::xgb_train {
namespace {

namespace fs = std::filesystem;

// The folders are locked with flock, whose locks belong to open files, so threads compete for them as
// processes would.
TEST(PageFolder, IsThereHoweverManyLookForThoseOfDeadProcessesMeanwhile) {
  const fs::path folder = fs::path(testing::TempDir()) / ("page_folder_test." + std::to_string(getpid()));
  fs::create_directory(folder);
  const std::string cache = (folder / "cache").string();
  std::atomic<bool> done = false;
  const auto look = [&] {
    while (!done) RemovePageFoldersOfDeadProcesses(cache);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(look);
  int gone = 0;
  for (int i = 0; i < 250; ++i) {
    const PageFolder pages(cache, 0, 3);
    if (!fs::exists(pages.path())) ++gone;
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gone, 0);
  EXPECT_TRUE(fs::is_empty(folder));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace warren::xgb_train
