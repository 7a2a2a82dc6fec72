// Streams return the whole text of a file, or an error that describes the damage.
#include "data/source/stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "data/error.h"
#include "tests/data/compressed.h"
#include "tests/data/error_of.h"
#include "tests/temporary_folder.h"

namespace warren::data {
namespace {

using namespace std::string_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ReadAll(Stream& stream, std::size_t at_once = 1000) {
  std::string text;
  std::string buffer(at_once, '\0');
  while (const std::size_t got = stream.Read(buffer.data(), buffer.size())) text.append(buffer, 0, got);
  EXPECT_EQ(stream.Read(buffer.data(), buffer.size()), 0U) << "the end stays the end";
  return text;
}

std::string ReadAll(const std::string& path, std::size_t at_once = 1000) {
  return ReadAll(*OpenStream(path), at_once);
}

std::string StreamError(const std::string& path) {
  return ErrorOf([&] { (void)ReadAll(path); });
}

struct Compression {
  std::string name;
  std::function<std::string(std::string_view)> compress;
  std::size_t magic_bytes;  ///< a shorter file is treated as plain text
};

const std::vector<Compression>& CheckedFormats() {
  static const std::vector<Compression> kFormats = {
      {"gzip", Gzip, 2}, {"zstd", Zstd, 4}, {"bzip2", Bzip2, 10}, {"xz", Xz, 6}};
  return kFormats;
}

std::vector<Compression> Formats() {
  std::vector<Compression> formats = CheckedFormats();
  formats.push_back({"lzma", Lzma, 13});
  formats.push_back({"bgzf", [](std::string_view text) { return Bgzf(text, 1000); }, 2});
  formats.push_back({"seekable", [](std::string_view text) { return ZstdSeekable(text, 1000); }, 4});
  formats.push_back({"plain", [](std::string_view text) { return std::string(text); }, 0});
  return formats;
}

class StreamTest : public testing::Test {
 protected:
  void ExpectError(const std::string& path, const std::string& part) {
    EXPECT_THAT(StreamError(path), AllOf(StartsWith(path + ": "), HasSubstr(part)));
  }

  TemporaryFolder folder_;
};

TEST_F(StreamTest, TextOfAnySizeComesBackInReadsOfAnySize) {
  for (const Compression& format : Formats()) {
    for (const std::size_t size : {0, 1, 2, 3, 12, 13, 14, 999, 1000, 1001, 65535, 65537, 300007}) {
      const std::string text = SomeText(size);
      const std::string path = folder_.Write("f", format.compress(text));
      for (const std::size_t at_once : {1, 7, 1000, 65536, 1000000}) {
        if (at_once == 1 && size > 2000) continue;
        EXPECT_EQ(ReadAll(path, at_once), text) << format.name << " of " << size << ", reads of " << at_once;
      }
    }
  }
}

TEST_F(StreamTest, AnEmptyReadGivesNothingAndLosesNothing) {
  for (const Compression& format : Formats()) {
    const auto stream = OpenStream(folder_.Write("f", format.compress("text")));
    EXPECT_EQ(stream->Read(nullptr, 0), 0U) << format.name;
    EXPECT_EQ(ReadAll(*stream), "text") << format.name;
  }
}

TEST_F(StreamTest, TextThatCompressesToNearlyNothingComesOutWhole) {
  const std::string text(5000000, 'a');
  for (const Compression& format : Formats()) {
    EXPECT_TRUE(ReadAll(folder_.Write("f", format.compress(text)), 4096) == text) << format.name;
  }
}

TEST_F(StreamTest, BytesThatDoNotCompressComeOutWhole) {
  const std::string bytes = RandomBytes(700000);
  for (const Compression& format : Formats()) {
    EXPECT_TRUE(ReadAll(folder_.Write("f", format.compress(bytes)), 4096) == bytes) << format.name;
  }
}

TEST_F(StreamTest, MembersOneAfterTheOtherAreOneText) {
  const std::string a = SomeText(70000, 1);
  const std::string b = SomeText(5, 2);
  const std::string c = SomeText(3000, 3);
  std::string text = a;
  text += b;
  text += c;
  for (const Compression& format : CheckedFormats()) {
    const std::string bytes =
        format.compress(a) + format.compress({}) + format.compress(b) + format.compress(c);
    for (const std::size_t at_once : {1, 70000, 100000}) {
      EXPECT_EQ(ReadAll(folder_.Write("f", bytes), at_once), text) << format.name;
    }
  }
}

TEST_F(StreamTest, FilesOfTheProgramsAreRead) {
  const std::string text = SomeText(200000);
  const std::string path = folder_.Write("text", text);
  const std::map<std::string, std::string> commands = {
      {"gzip", "gzip -c "},       {"bgzip", "bgzip -c "},
      {"zstd", "zstd -q -c "},    {"pzstd", "pzstd -q -c "},
      {"bzip2", "bzip2 -1 -c "},  {"xz", "xz -c "},
      {"lzma", "xz -F lzma -c "}, {"blocks", "xz --block-size=9999 -c "},
  };
  for (const auto& [name, command] : commands) {
    const std::string out = folder_ / name;
    const std::string line = fmt::format("{}{} > {} 2> /dev/null", command, path, out);
    if (std::system(line.c_str()) != 0) continue;  // the program is not installed
    EXPECT_TRUE(ReadAll(out) == text) << command;
  }
}

TEST_F(StreamTest, ACutIsAnErrorUnlessItLiesBetweenMembers) {
  const std::string a = SomeText(150, 1);
  const std::string b = SomeText(90, 2);
  std::vector<Compression> formats = CheckedFormats();
  formats.push_back({"lzma", Lzma, 13});
  for (const Compression& format : formats) {
    const std::string first = format.compress(a);
    const std::string whole = format.name == "lzma" ? first : first + format.compress(b);
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
      const std::string path = folder_.Write("f", std::string_view(whole).substr(0, cut));
      if (cut < format.magic_bytes) {
        EXPECT_EQ(ReadAll(path), whole.substr(0, cut)) << format.name << " cut at " << cut;
      } else if (cut == first.size()) {
        EXPECT_EQ(ReadAll(path), a) << format.name << " cut at " << cut;
      } else {
        ExpectError(path, "data end at byte " + std::to_string(cut));
      }
    }
  }
}

TEST_F(StreamTest, TheTextBeforeACutIsGivenBeforeTheError) {
  const std::string text = SomeText(100000);
  for (const Compression& format : CheckedFormats()) {
    const std::string bytes = format.compress(text) + format.compress(text);
    const auto stream = OpenStream(folder_.Write("f", std::string_view(bytes).substr(0, bytes.size() - 1)));
    std::string buffer(1000, '\0');
    std::string got;
    EXPECT_THROW(
        {
          while (const std::size_t more = stream->Read(buffer.data(), buffer.size()))
            got.append(buffer, 0, more);
        },
        DataError);
    EXPECT_TRUE((text + text).starts_with(got)) << format.name;
    EXPECT_GE(got.size(), text.size()) << format.name;
  }
}

TEST_F(StreamTest, HowMuchTextComesBeforeACutDoesNotDependOnTheReads) {
  const std::string text(20000, 'a');
  const auto read_to_the_cut = [](Stream& stream, std::size_t at_once) {
    std::string buffer(at_once, '\0');
    std::size_t bytes = 0;
    try {
      while (true) bytes += stream.Read(buffer.data(), buffer.size());
    } catch (const DataError&) {
      return bytes;
    }
  };
  for (const Compression& format : CheckedFormats()) {
    const std::string whole = format.compress(text + SomeText(300));
    for (std::size_t cut = format.magic_bytes; cut < whole.size(); cut += 5) {
      const std::string path = folder_.Write("f", std::string_view(whole).substr(0, cut));
      EXPECT_EQ(read_to_the_cut(*OpenStream(path), 1), read_to_the_cut(*OpenStream(path), 100000))
          << format.name << " cut at " << cut;
    }
  }
}

TEST_F(StreamTest, BgzfThatIsCutBetweenBlocksIsCut) {
  const std::string text = SomeText(500);
  const std::string bytes = BgzfBlock(text) + BgzfBlock(text);
  ExpectError(folder_.Write("f", bytes), "gzip data end at byte " + std::to_string(bytes.size()));
  EXPECT_EQ(ReadAll(folder_.Write("f", bytes + BgzfBlock({}))), text + text);
  EXPECT_EQ(ReadAll(folder_.Write("f", BgzfBlock(text) + Gzip(text))), text + text);
}

TEST_F(StreamTest, AFlippedBitIsAnErrorOrDoesNoHarm) {
  const std::string text = SomeText(200, 1);
  for (const Compression& format : CheckedFormats()) {
    const std::string whole = format.compress(text) + format.compress(text);
    int errors = 0;
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      const std::string bytes = Flipped(whole, bit);
      try {
        const std::string got = ReadAll(folder_.Write("f", bytes));
        const bool unrecognised = bit / 8 < format.magic_bytes && got == bytes;
        EXPECT_TRUE(got == text + text || unrecognised) << format.name << ", bit " << bit;
      } catch (const DataError& error) {
        ++errors;
      }
    }
    EXPECT_GT(errors, static_cast<int>(whole.size()) * 7)
        << format.name << ": nearly all flips should be found";
  }
}

TEST_F(StreamTest, AFlippedBitInLzmaWhichHasNoChecksumsIsSurvived) {
  const std::string whole = Lzma(SomeText(200));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    (void)StreamError(folder_.Write("f", Flipped(whole, bit)));
  }
}

TEST_F(StreamTest, GarbageBehindTheEndIsAnError) {
  for (const Compression& format : Formats()) {
    if (format.name == "plain") continue;
    const std::string whole = format.compress(SomeText(500));
    for (const std::string& garbage : {"x"s, "garbage that is longer than any header is"s, "\x01\0\0\0\0"s}) {
      const std::string path = folder_.Write("f", whole + garbage);
      EXPECT_THROW((void)ReadAll(path), DataError) << format.name << " and " << garbage;
    }
  }
}

TEST_F(StreamTest, NothingMayFollowLzma) {
  const std::string lzma = Lzma(SomeText(500));
  ExpectError(folder_.Write("f", lzma + lzma), "found more data after the end of .lzma");
}

TEST_F(StreamTest, ZerosMayFollowGzipAndNothingElseAfterThem) {
  const std::string text = SomeText(500);
  const std::string padded = Gzip(text) + std::string(300000, '\0');
  EXPECT_EQ(ReadAll(folder_.Write("f", padded)), text);
  ExpectError(folder_.Write("f", padded + Gzip(text)),
              "gzip data, at byte " + std::to_string(padded.size()) + " or before: found '\\x1F");
}

TEST_F(StreamTest, ZerosBetweenXzStreamsComeInFours) {
  const std::string text = SomeText(500);
  const std::string xz = Xz(text);
  for (std::size_t zeros = 0; zeros < 10; ++zeros) {
    const std::string padding(zeros, '\0');
    const auto between = folder_.Write("between", fmt::format("{}{}{}", xz, padding, xz));
    const auto behind = folder_.Write("behind", xz + padding);
    if (zeros % 4 == 0) {
      EXPECT_EQ(ReadAll(between), text + text);
      EXPECT_EQ(ReadAll(behind), text);
    } else {
      ExpectError(between, "not a multiple of 4 bytes");
      ExpectError(behind, "cut off");
    }
  }
}

TEST_F(StreamTest, ZstdFramesToBeSkippedAreSkipped) {
  const std::string text = SomeText(5000);
  const std::string skipped = LittleEndian(0x184D2A53, 4) + LittleEndian(1000, 4) + std::string(1000, 'x');
  const std::string bytes = skipped + Zstd(text) + skipped + Zstd(text) + skipped;
  EXPECT_EQ(ReadAll(folder_.Write("f", bytes)), text + text);
  ExpectError(folder_.Write("f", std::string_view(bytes).substr(0, bytes.size() - 1)), "cut off");
}

TEST_F(StreamTest, ZstdThatNeedsTooMuchMemoryIsAnErrorThatSaysSo) {
  // A frame header with a window of 2^28 bytes, and an empty block.
  const std::string bytes = LittleEndian(0xFD2FB528, 4) + "\0\x90\x01\0\0"s;
  ExpectError(folder_.Write("f", bytes), "zstd data, at byte");
  ExpectError(folder_.Write("f", bytes), "a window of more than 128 MiB");
  std::string modest = bytes;
  modest[5] = '\x88';
  EXPECT_EQ(ReadAll(folder_.Write("f", modest)), "");
}

TEST_F(StreamTest, XzThatNeedsTooMuchMemoryIsAnErrorThatSaysSo) {
  std::string bytes = Lzma(SomeText(100));
  bytes.replace(1, 4, "\xFF\xFF\xFF\xFF");  // the dictionary's size
  ExpectError(folder_.Write("f", bytes), "MiB of memory to be decompressed, expected at most 1024");
}

TEST_F(StreamTest, TextThatBeginsNearlyLikeACompressedFileIsPlain) {
  for (const std::string& text :
       {"BZh1:1 2:2 3:3\n"s, "BZ"s, "(\n"s, "]0 1:2 3:4 5:6 7:8 9:10\n"s, "P*M 1:1\n"s, "BZh01AY&SY 1:1\n"s,
        "]\x03\0\0\x07\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s, "\x1F"s, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0"s}) {
    EXPECT_EQ(ReadAll(folder_.Write("f", text)), text);
  }
}

TEST_F(StreamTest, ErrorsSayWhichFileAndWhereInIt) {
  const std::string good = Gzip(SomeText(500));
  std::string bytes = good + good;
  bytes[good.size()] = 'X';
  const std::string path = folder_.Write("f", bytes);
  EXPECT_EQ(StreamError(path), path + ": gzip data, at byte " + std::to_string(good.size() + 2) +
                                   " or before: incorrect header check");
}

TEST_F(StreamTest, AMissingFileIsAnError) {
  EXPECT_EQ(StreamError(folder_ / "none"), folder_ / "none" + ": opening failed: No such file or directory");
}

TEST_F(StreamTest, AFolderIsAnError) {
  EXPECT_EQ(StreamError(folder_ / ""), folder_ / "" + ": is a folder, expected a file");
}

TEST_F(StreamTest, AFileThatMayNotBeReadIsAnError) {
  const std::string path = folder_.Write("f", "text");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_EQ(ErrorOfNobody([&] { (void)ReadAll(path); }), path + ": opening failed: Permission denied");
}

TEST_F(StreamTest, PipesAndDevicesAreRead) {
  const std::string text = SomeText(200000);
  const std::string path = folder_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (const Compression& format : Formats()) {
    std::thread writer([&] { folder_.Write("pipe", format.compress(text)); });
    EXPECT_TRUE(ReadAll(path) == text) << format.name;
    writer.join();
  }
  EXPECT_EQ(ReadAll("/dev/null"), "");
}

/// Replaces standard input with another file while the object lives.
class StandardInput {
 public:
  explicit StandardInput(int fd) : before_(dup(STDIN_FILENO)) { dup2(fd, STDIN_FILENO); }
  ~StandardInput() {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

 private:
  int before_;
};

TEST_F(StreamTest, ADashIsTheStandardInputEvenOneThatComesInDripsAndDoesNotBlock) {
  for (const Compression& format : Formats()) {
    const std::string text = SomeText(60);
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    std::thread writer([&] {
      for (const char byte : format.compress(text)) {
        EXPECT_EQ(write(ends[1], &byte, 1), 1);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      close(ends[1]);
    });
    {
      const StandardInput input(ends[0]);
      const auto stream = OpenStream("-");
      EXPECT_EQ(stream->name(), "standard input");
      EXPECT_EQ(ReadAll(*stream), text) << format.name;
    }
    writer.join();
    EXPECT_EQ(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
    close(ends[0]);
  }
}

TEST_F(StreamTest, TheStandardInputStaysOpen) {
  { (void)OpenStream("/dev/null"); }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const StandardInput input(null);
  { EXPECT_EQ(ReadAll("-"), ""); }
  EXPECT_EQ(fcntl(STDIN_FILENO, F_GETFD), 0);
  close(null);
}

}  // namespace
}  // namespace warren::data
