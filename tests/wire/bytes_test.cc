#include "wire/bytes.h"

#include <gtest/gtest.h>

namespace warren::wire {
namespace {

TEST(Reader, GivesNothingUntilAFieldIsWhole) {
  const std::string bytes = Writer().Int(7).String("rabbit").Take();
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    Reader reader;
    reader.Append(std::string_view(bytes).substr(0, cut));
    const auto number = reader.Int();
    EXPECT_EQ(number.has_value(), cut >= 4) << cut;
    if (number) {
      EXPECT_FALSE(reader.String("word", 100).has_value()) << cut;
    }
    reader.Append(std::string_view(bytes).substr(cut));
    EXPECT_EQ(number ? *number : *reader.Int(), 7);
    EXPECT_EQ(reader.String("word", 100), "rabbit");
    EXPECT_EQ(reader.available(), 0U);
  }
}

TEST(Reader, KeepsZeroBytesAndEmptyStrings) {
  const std::string odd("a\0b\xff", 4);
  Reader reader;
  reader.Append(Writer().String(odd).String("").Take());
  EXPECT_EQ(reader.String("odd", 4), odd);
  EXPECT_EQ(reader.String("empty", 0), "");
}

TEST(Reader, RefusesALengthAboveTheLimitBeforeItsBytesArrive) {
  Reader reader;
  reader.Append(Writer().Int(101).Take());
  try {
    reader.String("task id", 100);
    FAIL() << "no error";
  } catch (const ProtocolError& error) {
    EXPECT_STREQ(error.what(), "the task id announces 101 bytes, expected 0 to 100");
  }
}

TEST(Reader, RefusesANegativeLength) {
  Reader reader;
  reader.Append(Writer().Int(-1).Take());
  EXPECT_THROW(reader.String("task id", 100), ProtocolError);
}

}  // namespace
}  // namespace warren::wire
