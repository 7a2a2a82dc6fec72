// What counts as LibSVM text, and what is said about the rest. The expectations follow from what XGBoost
// 1.7.4's reader was seen to do with each line.
#include "examples/xgboost/xgb_train/libsvm_check.h"

#include <gtest/gtest.h>

#include <string>

namespace warren::xgb_train {
namespace {

std::string Complaint(std::string_view text, Share share = {}, LineFormat format = LineFormat::kLibsvm) {
  try {
    CheckLibsvm(text, "d", share, format);
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

uint64_t Rows(std::string_view text) {
  return CheckLibsvm(text, "d").rows;
}

TEST(LibsvmCheck, ARowIsALabelAndPairsOfIndexAndValue) {
  EXPECT_EQ(Rows("1 1:2 3:4\n0 2:1\n"), 2u);
  EXPECT_EQ(Rows("1 1:2\n0 2:1"), 2u);
  EXPECT_EQ(Rows("1\n0\n"), 2u);
}

TEST(LibsvmCheck, NumbersAreDecimalWithSignFractionAndExponent) {
  EXPECT_EQ(Rows("+1 1:1e5 2:-2.5E-3 3:.5 4:5. 5:+3 6:-0\n-1.5e+0 1:1e-400\n"), 2u);
}

TEST(LibsvmCheck, BlanksTabsCommentsAndEmptyLinesAreFree) {
  EXPECT_EQ(Rows("# top\n\n  \t\n \t1\t1:2  3:4 \t# 7:x\n0 2:1# tail\n"), 2u);
}

TEST(LibsvmCheck, LinesEndInLineFeedCarriageReturnOrBoth) {
  EXPECT_EQ(Rows("1 1:2\r\n0 2:1\r1 3:1\n"), 3u);
  EXPECT_EQ(Complaint("1 1:2\r\n0 2:1\r1 3:x\n").substr(0, 6), "d:3:3:");
}

TEST(LibsvmCheck, AByteOrderMarkIsSkipped) {
  EXPECT_EQ(Rows("\xEF\xBB\xBF"
                 "1 1:2\n"),
            1u);
}

TEST(LibsvmCheck, WeightsAndQueriesAreTaken) {
  EXPECT_EQ(Rows("1:0.5 1:2\n0:2 2:1\n"), 2u);
  EXPECT_EQ(Rows("1 qid:1 1:2\n0\tqid:1\t2:1\n1 qid:20\n"), 3u);
  EXPECT_EQ(Rows("1:2 qid:3 1:2\n"), 1u);
}

TEST(LibsvmCheck, ABadWordIsNamedWithLineAndColumn) {
  EXPECT_EQ(Complaint("1 1:2\n0 2:1 3:abc 4:1\n"),
            "d:2:7: found '3:abc', expected index:value with a decimal number as value");
  EXPECT_EQ(Complaint("hello\n"), "d:1:1: found 'hello', expected a label, which is a decimal number");
  EXPECT_EQ(Complaint("1,2,3\n"), "d:1:1: found '1,2,3', expected label or label:weight, decimal numbers");
  EXPECT_EQ(Complaint("1 word\n"), "d:1:3: found 'word', expected index:value");
  EXPECT_EQ(Complaint("1: 1:2\n"), "d:1:1: found '1:', expected label:weight, both decimal numbers");
}

TEST(LibsvmCheck, WhatXgboostWouldMisreadIsRefused) {
  for (const char* bad :
       {"1 1:nan 2:5", "1 1:inf", "1 1: 2:5", "1 1 :7", "1 1:--5", "1 1:3-4", "1 1.7:3", "nan 1:1",
        "1 1:2\x0b"
        "2:3",
        "1 1:0x10", "1 1:1e", "1 1:1e39", "1 1:1e400", "1e39 1:1", "1 1:123456789012345678901", "1 1:2 qid:3",
        "1 qid:x 1:1", "1 qid: 1:1"}) {
    EXPECT_NE(Complaint(bad), "accepted") << bad;
  }
  EXPECT_NE(Complaint(std::string_view("1 1:2\0 2:3", 10)), "accepted");
}

TEST(LibsvmCheck, AFeatureWithoutAValueIsRefusedBecauseXgboostCrashesOnIt) {
  EXPECT_EQ(Complaint("1 1:1\n0 2\n"), "d:2:3: found '2', expected index:value");
}

TEST(LibsvmCheck, IndicesFitXgboostsColumnCount) {
  EXPECT_EQ(Rows("1 0:1 4294967294:3\n"), 1u);
  EXPECT_EQ(Complaint("1 4294967295:3\n"),
            "d:1:3: found '4294967295:3', expected an index from 0 to 4294967294");
  EXPECT_NE(Complaint("1 99999999999999999999999:3\n"), "accepted");
  EXPECT_EQ(Complaint("1 -1:3\n"), "d:1:3: found '-1:3', expected index:value");
}

TEST(LibsvmCheck, IndicesFromOneExcludeZero) {
  EXPECT_EQ(Complaint("1 0:1\n", {}, LineFormat::kLibsvmFromOne),
            "d:1:3: found '0:1', expected an index from 1 to 4294967295");
  EXPECT_EQ(Complaint("1 1:1 4294967295:1\n", {}, LineFormat::kLibsvmFromOne), "accepted");
}

TEST(LibsvmCheck, RowsWithAndWithoutWeightsDoNotMix) {
  EXPECT_EQ(Complaint("1:1 1:1\n0 1:1\n"),
            "d:2:1: found '0', expected label:weight, like in the rows before");
  EXPECT_EQ(Complaint("1 1:1\n0:1 1:1\n"),
            "d:2:1: found '0:1', expected a label without a weight, like in the rows before");
}

TEST(LibsvmCheck, RowsWithAndWithoutQueriesDoNotMix) {
  EXPECT_EQ(Complaint("1 qid:1 1:1\n0 1:1\n"),
            "d:2:3: found '1:1', expected qid:n behind the label, like in the rows before");
  EXPECT_EQ(Complaint("1 1:1\n0 qid:1\n"), "d:2:3: found 'qid:1', expected no qid, like in the rows before");
}

TEST(LibsvmCheck, JunkIsShownEscapedAndShortened) {
  EXPECT_EQ(Complaint("\x1b[2Jx\n").substr(0, 23), "d:1:1: found '\\x1B[2Jx'");
  EXPECT_LT(Complaint(std::string(100000, 'x')).size(), 150u);
}

TEST(LibsvmCheck, SharesCoverEveryRowOnceWhateverTheirNumber) {
  const std::string text = "# c\n1 1:1\n0 2:22\r\n\r\n1 3:333 4:4\n0\n1 5:5";
  const LibsvmSummary whole = CheckLibsvm(text, "d");
  EXPECT_EQ(whole.rows, 5u);
  for (int count = 1; count <= 60; ++count) {
    LibsvmSummary sum;
    for (int index = 0; index < count; ++index) {
      const LibsvmSummary part = CheckLibsvm(text, "d", {index, count});
      sum.rows += part.rows;
      sum.digest += part.digest;
    }
    EXPECT_EQ(sum.rows, whole.rows) << count;
    EXPECT_EQ(sum.digest, whole.digest) << count;
  }
}

TEST(LibsvmCheck, OnlyTheShareWithTheBadLineComplainsAndCountsLinesFromTheTop) {
  const std::string text = "1 1:1\n1 1:1\n1 1:1\n1 1:bad\n";
  EXPECT_EQ(Complaint(text, {0, 2}), "accepted");
  EXPECT_EQ(Complaint(text, {1, 2}).substr(0, 6), "d:4:3:");
}

TEST(LibsvmCheck, ADigestNamesTheContents) {
  EXPECT_EQ(CheckLibsvm("1 1:1\n0 2:2\n", "a").digest, CheckLibsvm("# x\n1 1:1\r\n0 2:2", "b").digest);
  EXPECT_NE(CheckLibsvm("1 1:1\n0 2:2\n", "a").digest, CheckLibsvm("1 1:1\n0 2:3\n", "a").digest);
  EXPECT_NE(CheckLibsvm("1 1:1\n", "a").digest, CheckLibsvm("1 1:1\n1 1:1\n", "a").digest);
}

}  // namespace
}  // namespace warren::xgb_train
