// In-memory streams and rabit's utility functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rabit/internal/io.h>

#include <string>
#include <vector>

namespace rabit::utils {
namespace {

TEST(MemoryFixSizeBuffer, ReadsWhatWasWrittenAndNoFurther) {
  char memory[8] = {};
  MemoryFixSizeBuffer stream(memory, sizeof(memory));
  stream.Write("abcdef", 6);
  EXPECT_EQ(stream.Tell(), 6u);
  stream.Seek(2);
  char read[16] = {};
  EXPECT_EQ(stream.Read(read, sizeof(read)), 6u);
  EXPECT_EQ(std::string(read, 4), "cdef");
  EXPECT_TRUE(stream.AtEnd());
  EXPECT_EQ(stream.Read(read, 1), 0u);
}

TEST(MemoryFixSizeBuffer, RefusesToWritePastItsEnd) {
  char memory[4] = {'a', 'b', 'c', 'd'};
  MemoryFixSizeBuffer stream(memory, sizeof(memory));
  stream.Seek(2);
  EXPECT_THROW(stream.Write("xyz", 3), dmlc::Error);
  EXPECT_THROW(stream.Write("xyz", ~std::size_t{0}), dmlc::Error);
  EXPECT_EQ(std::string(memory, 4), "abcd");
  stream.Seek(9);
  char byte = 0;
  EXPECT_THROW(stream.Write("x", 1), dmlc::Error);
  EXPECT_EQ(stream.Read(&byte, 1), 0u);
  stream.Seek(MemoryFixSizeBuffer::SeekEnd);
  EXPECT_EQ(stream.Tell(), 4u);
}

TEST(MemoryBufferStream, GrowsWithWhatIsWritten) {
  std::string memory = "abcdef";
  MemoryBufferStream stream(&memory);
  stream.Seek(4);
  stream.Write("1234", 4);
  EXPECT_EQ(memory, "abcd1234");
  stream.Seek(10);
  stream.Write("x", 1);
  EXPECT_EQ(memory, std::string("abcd1234\0\0x", 11));
  EXPECT_TRUE(stream.AtEnd());
  stream.Seek(12);
  char byte = 0;
  EXPECT_THROW(stream.Read(&byte, 1), dmlc::Error);
}

TEST(MemoryBufferStream, CarriesContainersOfDmlc) {
  std::string memory;
  MemoryBufferStream out(&memory);
  static_cast<dmlc::Stream&>(out).Write(std::vector<std::string>{"one", "", "three"});
  MemoryFixSizeBuffer in(&memory[0], memory.size());
  std::vector<std::string> back;
  EXPECT_TRUE(static_cast<dmlc::Stream&>(in).Read(&back));
  EXPECT_THAT(back, testing::ElementsAre("one", "", "three"));
}

TEST(Utils, ThrowWithTheWholeMessage) {
  const std::string text(10000, 'x');
  for (const auto& fail :
       {+[](const char* t) { Check(false, "%s!", t); }, +[](const char* t) { Assert(false, "%s!", t); },
        +[](const char* t) { Error("%s!", t); }}) {
    try {
      fail(text.c_str());
      ADD_FAILURE();
    } catch (const dmlc::Error& error) {
      EXPECT_EQ(error.what(), text + "!");
    }
  }
  EXPECT_NO_THROW(Check(true, "never"));
  EXPECT_NO_THROW(Assert(true, "never"));
}

TEST(Utils, ReadWordsForTruth) {
  EXPECT_TRUE(StringToBool("TRUE"));
  EXPECT_TRUE(StringToBool("2"));
  EXPECT_FALSE(StringToBool("false"));
  EXPECT_FALSE(StringToBool("0"));
}

TEST(Utils, OpenFilesOrSayWhichOneCouldNotBeOpened) {
  EXPECT_THROW(FopenCheck("/no/such/file", "r"), dmlc::Error);
  std::FILE* file = FopenCheck("/dev/null", "w");
  EXPECT_NE(file, nullptr);
  std::fclose(file);
}

}  // namespace
}  // namespace rabit::utils
