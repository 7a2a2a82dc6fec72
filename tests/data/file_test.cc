// Files return their text at any position, or an error that describes the damage.
#include "data/source/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <random>
#include <stdexcept>
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

std::string ReadPart(const File& file, std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  file.ReadAt(offset, text.data(), bytes);
  return text;
}

std::string ReadAll(const File& file, std::size_t at_once) {
  std::string text;
  while (text.size() < file.size()) {
    text += ReadPart(file, text.size(), std::min<std::size_t>(at_once, file.size() - text.size()));
  }
  return text;
}

struct Kind {
  std::string name;
  Container container;
  std::function<std::string(std::string_view)> make;
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kKinds = {
      {"plain", Container::kPlain, [](std::string_view text) { return std::string(text); }},
      {"BGZF", Container::kBgzf, [](std::string_view text) { return Bgzf(text, 1000); }},
      {"BGZF with full blocks", Container::kBgzf, [](std::string_view text) { return Bgzf(text, 65536); }},
      {"zstd", Container::kZstdSeekable, [](std::string_view text) { return ZstdSeekable(text, 3000); }},
      {"zstd with checksums in its frames", Container::kZstdSeekable,
       [](std::string_view text) { return ZstdSeekable(text, 3000, Checksums::kInFrames); }},
      {"zstd with long frames", Container::kZstdSeekable,
       [](std::string_view text) { return ZstdSeekable(text, 1000000, Checksums::kNone); }},
  };
  return kKinds;
}

class FileTest : public testing::Test {
 protected:
  void ExpectErrorIn(const std::string& path, const std::function<void()>& function,
                     const std::string& part) {
    EXPECT_THAT(ErrorOf(function), AllOf(StartsWith(path + ": "), HasSubstr(part)));
  }
  /// Expects an error when the file is opened.
  void ExpectError(const std::string& bytes, Container container, const std::string& part) {
    const std::string path = folder_.Write("f", bytes);
    ExpectErrorIn(
        path, [&] { (void)OpenFile(path, container); }, part);
  }
  /// Expects an error when the file is read, not when it is opened.
  void ExpectErrorOfRead(const std::string& bytes, Container container, const std::string& part) {
    const std::string path = folder_.Write("f", bytes);
    const auto file = OpenFile(path, container);
    ExpectErrorIn(
        path, [&] { (void)ReadAll(*file, 1000000); }, part);
  }

  TemporaryFolder folder_;
};

TEST_F(FileTest, FilesAreRecognisedByTheirContent) {
  const std::string text = SomeText(5000);
  const auto recognised = [&](const std::string& bytes) {
    return Recognise(folder_.Write("text.xz", bytes));
  };
  EXPECT_EQ(recognised({}), Container::kPlain);
  EXPECT_EQ(recognised(text), Container::kPlain);
  EXPECT_EQ(recognised(Gzip(text)), Container::kGzip);
  EXPECT_EQ(recognised(Gzip({})), Container::kGzip);
  EXPECT_EQ(recognised(Bgzf(text)), Container::kBgzf);
  EXPECT_EQ(recognised(Bgzf({})), Container::kBgzf);
  EXPECT_EQ(recognised(Zstd(text)), Container::kZstd);
  EXPECT_EQ(recognised(ZstdSeekable(text, 1000)), Container::kZstdSeekable);
  EXPECT_EQ(recognised(ZstdSeekable({}, 1000)), Container::kZstdSeekable);
  EXPECT_EQ(recognised(Bzip2(text)), Container::kBzip2);
  EXPECT_EQ(recognised(Bzip2({})), Container::kBzip2);
  EXPECT_EQ(recognised(Xz(text)), Container::kXz);
  EXPECT_EQ(recognised(Lzma(text)), Container::kXz);
}

TEST_F(FileTest, FilesOfColumnsAreNoTextAndTheErrorSaysWhatReadsThem) {
  for (const auto& [bytes, name] :
       {std::pair{"PAR1\x15\x04"s, "Parquet"}, std::pair{"ARROW1\0\0\xFF"s, "Arrow"}}) {
    const std::string path = folder_.Write("rows", bytes);
    EXPECT_EQ(
        ErrorOf([&] { (void)Recognise(path); }),
        path + ": is a file of " + name +
            ", expected text: the Python package reads it (warren.data.load), and `warren data convert " +
            path + " OUTPUT.svm --label COLUMN` converts it to text");
  }
  EXPECT_EQ(Recognise(folder_.Write("rows", "PAR2 1:1\n")), Container::kPlain);
}

TEST_F(FileTest, TextOfAnySizeComesBackInReadsOfAnySize) {
  for (const Kind& kind : Kinds()) {
    for (const std::size_t size : {0, 1, 999, 1000, 1001, 3000, 6001, 65536, 65537, 300007}) {
      const std::string text = SomeText(size);
      const std::string path = folder_.Write("f", kind.make(text));
      EXPECT_EQ(Recognise(path), kind.container) << kind.name;
      const auto file = OpenFile(path, kind.container);
      ASSERT_EQ(file->size(), size) << kind.name;
      EXPECT_EQ(file->name(), path);
      for (const std::size_t at_once : {1, 7, 1000, 2999, 65536, 1000000}) {
        if (at_once < 1000 && size > 7000) continue;
        EXPECT_TRUE(ReadAll(*file, at_once) == text)
            << kind.name << " of " << size << ", reads of " << at_once;
      }
    }
  }
}

TEST_F(FileTest, BytesThatDoNotCompressComeOutWhole) {
  const std::string bytes = RandomBytes(700000);
  for (const Kind& kind : Kinds()) {
    // An incompressible block of 64 KiB is longer than a BGZF block may be.
    if (kind.name == "BGZF with full blocks") continue;
    const auto file = OpenFile(folder_.Write("f", kind.make(bytes)), kind.container);
    EXPECT_TRUE(ReadAll(*file, 5000) == bytes) << kind.name;
    EXPECT_TRUE(ReadAll(*file, 1000000) == bytes) << kind.name;
  }
}

TEST_F(FileTest, SeveralThreadsReadAtRandomPlaces) {
  const std::string text = SomeText(300007);
  for (const Kind& kind : Kinds()) {
    const auto file = OpenFile(folder_.Write("f", kind.make(text)), kind.container);
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) {
      threads.emplace_back([&, seed] {
        std::mt19937 random(seed);
        for (int i = 0; i < 200; ++i) {
          const std::size_t offset = random() % (text.size() + 1);
          const std::size_t bytes = std::min<std::size_t>(random() % 20000, text.size() - offset);
          EXPECT_TRUE(ReadPart(*file, offset, bytes) == text.substr(offset, bytes))
              << kind.name << ": " << bytes << " at " << offset;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(FileTest, SeveralThreadsReadOnFromTheirOwnPlaces) {
  const std::string text = SomeText(300007);
  for (const Kind& kind : Kinds()) {
    const auto file = OpenFile(folder_.Write("f", kind.make(text)), kind.container);
    std::vector<std::thread> threads;
    for (std::size_t start = 0; start < 12; ++start) {
      threads.emplace_back([&, start] {
        for (std::size_t offset = start * 25000; offset < (start + 1) * 25000; offset += 625) {
          EXPECT_TRUE(ReadPart(*file, offset, 625) == text.substr(offset, 625))
              << kind.name << " at " << offset;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(FileTest, AReadThatGoesOnDoesNotBeginTheBlockAgain) {
  const std::string text = SomeText(60000);
  for (const Kind& kind : Kinds()) {
    if (kind.container == Container::kPlain) continue;
    const std::string bytes = kind.make(text);
    const std::string path = folder_.Write("f", bytes);
    const auto file = OpenFile(path, kind.container);
    EXPECT_EQ(ReadPart(*file, 0, 500), text.substr(0, 500));
    folder_.Write("f", std::string(bytes.size(), 'x'));
    EXPECT_EQ(ReadPart(*file, 500, 300), text.substr(500, 300)) << kind.name;
    EXPECT_THROW((void)ReadPart(*file, 0, text.size()), DataError) << kind.name;
  }
}

TEST_F(FileTest, ReadingBeyondTheEndIsRefused) {
  for (const Kind& kind : Kinds()) {
    const auto file = OpenFile(folder_.Write("f", kind.make("text")), kind.container);
    char to[8];
    EXPECT_NO_THROW(file->ReadAt(4, to, 0)) << kind.name;
    EXPECT_THROW(file->ReadAt(0, to, 5), std::out_of_range) << kind.name;
    EXPECT_THROW(file->ReadAt(5, to, 0), std::out_of_range) << kind.name;
    EXPECT_THROW(file->ReadAt(~std::uint64_t{0}, to, 2), std::out_of_range) << kind.name;
  }
}

TEST_F(FileTest, APlainFileThatBecomesShorterIsAnErrorThatSaysSo) {
  const std::string path = folder_.Write("f", SomeText(1000));
  const auto file = OpenFile(path, Container::kPlain);
  ASSERT_EQ(truncate(path.c_str(), 600), 0);
  EXPECT_EQ(ReadPart(*file, 100, 500), SomeText(1000).substr(100, 500));
  EXPECT_EQ(
      ErrorOf([&] { (void)ReadPart(*file, 500, 200); }),
      path +
          ": became shorter while it was read: it ended at byte 600, but had 1000 bytes when it was opened; it has 600 now");
}

TEST_F(FileTest, ACompressedFileThatBecomesShorterIsAnError) {
  for (const Kind& kind : Kinds()) {
    const std::string bytes = kind.make(SomeText(100000));
    const std::string path = folder_.Write("f", bytes);
    const auto file = OpenFile(path, kind.container);
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(bytes.size() / 2)), 0);
    ExpectErrorIn(
        path, [&] { (void)ReadAll(*file, 1000); }, "became shorter");
  }
}

TEST_F(FileTest, ABgzfFileThatIsChangedWhileItIsOpenIsAnError) {
  const std::string path = folder_.Write("f", Bgzf(SomeText(5000, 1), 1000));
  const auto file = OpenFile(path, Container::kBgzf);
  folder_.Write("f", Bgzf(SomeText(5000, 2), 900));
  ExpectErrorIn(
      path, [&] { (void)ReadAll(*file, 1000); }, "its header differs from when the file was opened");
}

TEST_F(FileTest, WhatIsAddedLaterIsNotSeen) {
  const std::string path = folder_.Write("f", "text");
  const auto file = OpenFile(path, Container::kPlain);
  folder_.Write("f", "text and more");
  EXPECT_EQ(file->size(), 4U);
  EXPECT_EQ(ReadAll(*file, 100), "text");
}

TEST_F(FileTest, AMissingFileIsAnError) {
  const std::string path = folder_ / "none";
  const std::string expected = path + ": opening failed: No such file or directory";
  EXPECT_EQ(ErrorOf([&] { (void)Recognise(path); }), expected);
  EXPECT_EQ(ErrorOf([&] { (void)OpenFile(path, Container::kPlain); }), expected);
}

TEST_F(FileTest, FoldersAndPipesAreErrors) {
  const std::string folder = folder_ / "";
  ExpectErrorIn(
      folder, [&] { (void)Recognise(folder); }, "is a folder, expected a regular file");
  ExpectErrorIn(
      folder, [&] { (void)OpenFile(folder, Container::kPlain); }, "is a folder, expected a regular file");
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ExpectErrorIn(
      pipe, [&] { (void)Recognise(pipe); }, "is a pipe or device");
  ExpectErrorIn(
      "/dev/null", [&] { (void)OpenFile("/dev/null", Container::kPlain); }, "is a pipe or device");
}

TEST_F(FileTest, AFileThatMayNotBeReadIsAnError) {
  const std::string path = folder_.Write("f", "text");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_EQ(ErrorOfNobody([&] { (void)OpenFile(path, Container::kPlain); }),
            path + ": opening failed: Permission denied");
}

TEST_F(FileTest, WhatCanBeReadFromItsBeginningOnlyIsRefused) {
  ExpectError(Gzip("text"), Container::kGzip, "is gzip, which can only be read from the beginning");
  ExpectError(Zstd("text"), Container::kZstdSeekable, "found no zstd seek table");
  ExpectError(Gzip("text"), Container::kBgzf, "BGZF block at byte 0: found no complete block header");
}

TEST_F(FileTest, BgzfOfTheProgramIsRead) {
  const std::string text = SomeText(200000);
  const std::string out = folder_ / "f";
  if (std::system(("bgzip -c " + folder_.Write("text", text) + " > " + out + " 2> /dev/null").c_str()) != 0) {
    GTEST_SKIP() << "bgzip is not installed";
  }
  ASSERT_EQ(Recognise(out), Container::kBgzf);
  EXPECT_TRUE(ReadAll(*OpenFile(out, Container::kBgzf), 10000) == text);
}

TEST_F(FileTest, BgzfFilesOneAfterTheOtherAreOneText) {
  const std::string a = SomeText(2500, 1);
  const std::string b = SomeText(700, 2);
  const auto file = OpenFile(folder_.Write("f", Bgzf(a, 1000) + Bgzf({}) + Bgzf(b, 300)), Container::kBgzf);
  EXPECT_EQ(ReadAll(*file, 5000), a + b);
  EXPECT_EQ(ReadPart(*file, 2400, 200), (a + b).substr(2400, 200));
}

TEST_F(FileTest, BgzfBlocksMayHaveOtherExtraFields) {
  const std::string text = SomeText(500);
  const std::string other = "XY" + LittleEndian(3000, 2) + std::string(3000, 'B');
  const auto path =
      folder_.Write("f", BgzfBlock(text, other, other) + BgzfBlock(text, "AA\0\0"s) + BgzfBlock({}));
  ASSERT_EQ(Recognise(path), Container::kBgzf);
  EXPECT_EQ(ReadAll(*OpenFile(path, Container::kBgzf), 5000), text + text);
}

TEST_F(FileTest, BgzfThatIsCutAnywhereIsAnError) {
  const std::string whole = Bgzf(SomeText(300), 100);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const std::string path = folder_.Write("f", std::string_view(whole).substr(0, cut));
    EXPECT_THROW((void)OpenFile(path, Container::kBgzf), DataError) << "cut at " << cut;
  }
  const std::string without_end = BgzfBlock("text");
  ExpectError(without_end, Container::kBgzf, "without the empty block that marks its end");
  ExpectError(without_end + "x", Container::kBgzf,
              "BGZF block at byte " + std::to_string(without_end.size()));
}

TEST_F(FileTest, BgzfBlocksThatLieAboutTheirTextAreErrors) {
  const std::string end = BgzfBlock({});
  const auto with_size = [](std::string block, std::uint32_t size) {
    return block.replace(block.size() - 4, 4, LittleEndian(size, 4));
  };
  const std::string block = BgzfBlock("text");
  ExpectError(with_size(block, 0) + end, Container::kBgzf, "BGZF block at byte 0: damaged");
  ExpectError(with_size(block, 65537) + end, Container::kBgzf,
              "found 65537 bytes of text, expected 65536 at most");
  ExpectErrorOfRead(with_size(block, 3) + end, Container::kBgzf, "damaged");
  ExpectErrorOfRead(with_size(block, 5) + end, Container::kBgzf, "damaged");
  std::string longer = block;
  longer.insert(block.size() - 8, "x");
  longer.replace(16, 2, LittleEndian(longer.size() - 1, 2));
  ExpectErrorOfRead(longer + end, Container::kBgzf, "damaged");
  ExpectErrorOfRead(with_size(block, 65536) + end, Container::kBgzf, "damaged");
}

TEST_F(FileTest, AFlippedBitIsAnErrorOrDoesNoHarm) {
  const std::string text = SomeText(200);
  const std::vector<std::pair<Container, std::string>> files = {
      {Container::kBgzf, Bgzf(text, 120)},
      {Container::kZstdSeekable, ZstdSeekable(text, 120, Checksums::kInTable)},
      {Container::kZstdSeekable, ZstdSeekable(text, 120, Checksums::kInFrames)},
  };
  for (const auto& [container, whole] : files) {
    int errors = 0;
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      const std::string path = folder_.Write("f", Flipped(whole, bit));
      try {
        EXPECT_EQ(ReadAll(*OpenFile(path, container), 1 + bit % 300), text)
            << NameOf(container) << ", bit " << bit;
      } catch (const DataError&) {
        ++errors;
      }
    }
    EXPECT_GT(errors, static_cast<int>(whole.size()) * 5)
        << NameOf(container) << ": nearly all should be found";
  }
}

TEST_F(FileTest, AFlippedBitWithoutChecksumsIsSurvived) {
  const std::string whole = ZstdSeekable(SomeText(200), 120, Checksums::kNone);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    const std::string path = folder_.Write("f", Flipped(whole, bit));
    (void)ErrorOf([&] { (void)ReadAll(*OpenFile(path, Container::kZstdSeekable), 1 + bit % 300); });
  }
}

TEST_F(FileTest, ZstdThatIsCutAnywhereHasNoSeekTable) {
  const std::string whole = ZstdSeekable(SomeText(300), 100);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const std::string path = folder_.Write("f", std::string_view(whole).substr(0, cut));
    EXPECT_NE(Recognise(path), Container::kZstdSeekable) << "cut at " << cut;
    EXPECT_THROW((void)OpenFile(path, Container::kZstdSeekable), DataError) << "cut at " << cut;
  }
}

TEST_F(FileTest, ZstdFramesWithoutTextAndFramesToBeSkippedAreLeftOut) {
  const std::string text = SomeText(300);
  const std::string skipped =
      LittleEndian(0x184D2A53, 4) + LittleEndian(300000, 4) + std::string(300000, 'x');
  SeekTableWriter table(false);
  std::string bytes;
  for (const std::string& frame :
       {Zstd({}), skipped, Zstd(text), Zstd({}), skipped, skipped + Zstd(text), skipped}) {
    table.Add(static_cast<std::uint32_t>(frame.size()), frame.ends_with(Zstd(text)) ? 300 : 0);
    bytes += frame;
  }
  const auto file = OpenFile(folder_.Write("f", bytes + table.Table()), Container::kZstdSeekable);
  EXPECT_EQ(ReadAll(*file, 5000), text + text);
  EXPECT_EQ(ReadPart(*file, 250, 100), (text + text).substr(250, 100));
}

TEST_F(FileTest, ASeekTableThatLiesIsAnError) {
  const std::string frame = Zstd(SomeText(300));
  const auto size = static_cast<std::uint32_t>(frame.size());
  const auto with_entry = [&](std::uint32_t compressed_bytes, std::uint32_t text_bytes) {
    SeekTableWriter table(false);
    table.Add(size, 300);
    table.Add(compressed_bytes, text_bytes);
    return frame + frame + table.Table();
  };
  const std::string at_second = "zstd frame at byte " + std::to_string(size) + ": ";
  constexpr auto kSeekable = Container::kZstdSeekable;
  const std::string path = folder_.Write("f", with_entry(size, 300));
  EXPECT_EQ(OpenFile(path, kSeekable)->size(), 600U);
  ExpectError(with_entry(size - 1, 300), kSeekable, "its frames are");
  ExpectError(with_entry(size + 1, 300), kSeekable, at_second + "is ");
  ExpectError(with_entry(0xFFFFFFFF, 300), kSeekable, at_second + "is ");
  ExpectError(with_entry(size, 0xFFFFFFFF), kSeekable, "more than zstd can");
  ExpectError(with_entry(size, 0), kSeekable, at_second + "holds more than the 0 bytes");
  ExpectErrorOfRead(with_entry(size, 1), kSeekable, at_second + "holds more than the 1 bytes");
  ExpectErrorOfRead(with_entry(size, 299), kSeekable, at_second + "holds more than the 299 bytes");
  ExpectErrorOfRead(with_entry(size, 301), kSeekable,
                    at_second + "ends after 300 bytes of text, expected 301");
  ExpectErrorOfRead(with_entry(size, 1000000), kSeekable, at_second + "ends after 300 bytes of text");
}

TEST_F(FileTest, ASeekTableWithFramesCutAtTheWrongPlacesIsAnError) {
  const std::string frame = Zstd(SomeText(300));
  const auto size = static_cast<std::uint32_t>(frame.size());
  SeekTableWriter table(false);
  table.Add(size - 1, 300);
  table.Add(size + 1, 300);
  ExpectErrorOfRead(frame + frame + table.Table(), Container::kZstdSeekable,
                    "zstd frame at byte 0: does not end within");
}

TEST_F(FileTest, ASeekTableWithAnImpossibleNumberOfFramesIsNone) {
  std::string bytes = ZstdSeekable(SomeText(300), 100);
  bytes.replace(bytes.size() - 9, 4, LittleEndian(0xFFFFFFFF, 4));
  ExpectError(bytes, Container::kZstdSeekable, "found no zstd seek table");
  EXPECT_EQ(Recognise(folder_ / "f"), Container::kZstd);
}

TEST_F(FileTest, ASeekTableWithReservedFlagsIsNone) {
  std::string bytes = ZstdSeekable(SomeText(300), 100);
  bytes[bytes.size() - 5] = '\x84';
  EXPECT_EQ(Recognise(folder_.Write("f", bytes)), Container::kZstd);
}

TEST_F(FileTest, AWrongChecksumInTheSeekTableIsAnError) {
  const std::string frame = Zstd("text");
  SeekTableWriter table(true);
  table.Add(static_cast<std::uint32_t>(frame.size()), 4, 0x12345678);
  ExpectErrorOfRead(frame + table.Table(), Container::kZstdSeekable, "expected 12345678");
}

TEST_F(FileTest, AZstdFrameThatNeedsTooMuchMemoryIsAnError) {
  // A frame header with a window of 2^28 bytes, and a block of one byte.
  const std::string frame = LittleEndian(0xFD2FB528, 4) + "\0\x90\x09\0\0x"s;
  SeekTableWriter table(false);
  table.Add(static_cast<std::uint32_t>(frame.size()), 1);
  ExpectErrorOfRead(frame + table.Table(), Container::kZstdSeekable, "requires too much memory");
}

}  // namespace
}  // namespace warren::data
