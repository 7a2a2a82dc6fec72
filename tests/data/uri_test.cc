// URIs of data sets: the meaning of their parts, and the errors for malformed URIs.
#include "data/uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/data/error_of.h"

namespace warren::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string UriError(const std::string& uri) {
  return ErrorOf([&] { ParseDataUri(uri); });
}

TEST(DataUri, APathAloneIsLibsvmFromZeroWithoutACache) {
  const DataUri uri = ParseDataUri("a/b.txt");
  EXPECT_THAT(uri.paths, ElementsAre("a/b.txt"));
  EXPECT_EQ(uri.options.format, Format::kLibsvm);
  EXPECT_EQ(uri.options.indexing, Indexing::kZero);
  EXPECT_FALSE(uri.options.share);
  EXPECT_FALSE(uri.options.seed);
  EXPECT_FALSE(uri.options.skip_bad_rows);
  EXPECT_EQ(uri.cache, "");
}

TEST(DataUri, PathsOptionsAndCacheStandWhereXgboostsUsersPutThem) {
  const DataUri uri =
      ParseDataUri("train.txt;more/*.txt?format=csv&label_column=2&delimiter=tab&header=1#tmp/cache");
  EXPECT_THAT(uri.paths, ElementsAre("train.txt", "more/*.txt"));
  EXPECT_EQ(uri.options.format, Format::kCsv);
  EXPECT_EQ(uri.options.csv.label_column, 2);
  EXPECT_EQ(uri.options.csv.weight_column, -1);
  EXPECT_EQ(uri.options.csv.delimiter, '\t');
  EXPECT_TRUE(uri.options.csv_header);
  EXPECT_EQ(uri.cache, "tmp/cache");
}

TEST(DataUri, EveryOptionIsTaken) {
  const TextOptions options =
      ParseDataUri("x?part=3&n=4&shuffle=17&bad_rows=skip&weight_column=1&qid_column=0&format=csv").options;
  ASSERT_TRUE(options.share);
  EXPECT_EQ(options.share->index, 3);
  EXPECT_EQ(options.share->count, 4);
  EXPECT_EQ(options.seed, 17);
  EXPECT_TRUE(options.skip_bad_rows);
  EXPECT_EQ(options.csv.weight_column, 1);
  EXPECT_EQ(options.csv.qid_column, 0);
  EXPECT_EQ(ParseDataUri("x?indexing_mode=-1").options.indexing, Indexing::kDetect);
}

TEST(DataUri, AnOptionOfAnotherFormatIsAnError) {
  EXPECT_EQ(UriError("x.csv?label_column=0"),
            "'x.csv?label_column=0': label_column=0: format=libsvm has no such option; expected format=csv");
  EXPECT_THAT(UriError("x?header=1&format=libfm"),
              HasSubstr("header=1: format=libfm has no such option; expected format=csv"));
  EXPECT_THROW(DataUriOf({"x.csv"}, "label_column=0"), DataError);
}

TEST(DataUri, AQuestionMarkThatNoKeyFollowsIsAWildcard) {
  EXPECT_THAT(ParseDataUri("part-?.txt").paths, ElementsAre("part-?.txt"));
  const DataUri uri = ParseDataUri("part-?.txt?format=libfm");
  EXPECT_THAT(uri.paths, ElementsAre("part-?.txt"));
  EXPECT_EQ(uri.options.format, Format::kLibfm);
}

TEST(DataUri, WhatIsWrongIsSaidWithWhatIsRight) {
  EXPECT_THAT(UriError(""), HasSubstr("names no file"));
  EXPECT_THAT(UriError("?format=csv"), HasSubstr("names no file"));
  EXPECT_THAT(UriError("x?format=svm"),
              HasSubstr("'x?format=svm': format=svm: expected one of csv, libfm, libsvm"));
  EXPECT_THAT(UriError("x?fromat=csv"),
              HasSubstr("'fromat=csv' is not an option of a data set; expected key=value with"));
  EXPECT_THAT(UriError("x?format=csv&header"), HasSubstr("'header' is not an option"));
  EXPECT_THAT(UriError("x?format=csv&indexing_mode=-1"), HasSubstr("indexing_mode=-1: csv has no indices"));
  EXPECT_THAT(UriError("x?indexing_mode=1&format=csv"), HasSubstr("indexing_mode=1: csv has no indices"));
  EXPECT_THAT(UriError("x?indexing_mode=2"), HasSubstr("expected a whole number from -1 to 1"));
  EXPECT_THAT(UriError("x?part=1"), HasSubstr("go together"));
  EXPECT_THAT(UriError("x?part=2&n=2"), HasSubstr("parts count from 0"));
  EXPECT_THAT(UriError("x?delimiter=ab"), HasSubstr("expected one character, or tab"));
  EXPECT_THAT(UriError("x?label_column=1x"), HasSubstr("expected a whole number"));
  EXPECT_THAT(UriError("x#"), HasSubstr("expected the name of a cache"));
}

TEST(DataUri, ExactPathsAreNamesInWhichNoCharacterHasAMeaning) {
  const DataUri uri = DataUriOf({"a;b?bad_rows=skip#c", "*.svm"}, "format=csv&label_column=1");
  EXPECT_THAT(uri.paths, ElementsAre("a;b?bad_rows=skip#c", "*.svm"));
  EXPECT_EQ(uri.paths_are, Paths::kExact);
  EXPECT_EQ(uri.options.format, Format::kCsv);
  EXPECT_EQ(uri.options.csv.label_column, 1);
  EXPECT_FALSE(uri.options.skip_bad_rows);
  EXPECT_EQ(uri.cache, "");
  EXPECT_THROW(DataUriOf({}, ""), DataError);
  EXPECT_THROW(DataUriOf({"a"}, "formt=csv"), DataError);
}

}  // namespace
}  // namespace warren::data
