// The text of the progress bar.
#include "submit/output/console.h"

#include <gtest/gtest.h>

namespace warren::submit {
namespace {

TEST(ProgressBar, FillsAsWorkersConnect) {
  EXPECT_EQ(ProgressBar(0, 4), "dmlc-submit: [                              ] 0 of 4 workers connected");
  EXPECT_EQ(ProgressBar(2, 4), "dmlc-submit: [===============               ] 2 of 4 workers connected");
  EXPECT_EQ(ProgressBar(4, 4), "dmlc-submit: [==============================] 4 of 4 workers connected");
}

}  // namespace
}  // namespace warren::submit
