// Files named scheme://..., read from a provider (here, a map in memory that records requests) and through
// dmlc-core's streams (here, with its file:// scheme).
#include "data/source/remote.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "data/cache/pages.h"
#include "data/error.h"
#include "data/reader.h"
#include "data/source/inputs.h"
#include "data/source/read_ahead.h"
#include "data/source/stream.h"
#include "tests/data/compressed.h"
#include "tests/data/error_of.h"
#include "tests/temporary_folder.h"

namespace warren::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A store in memory that records the ranges read from it.
class MemoryStore final : public RemoteFiles {
 public:
  struct Request {
    std::string uri;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
  };

  void Put(const std::string& uri, std::string text) { files_[uri] = std::move(text); }
  /// Makes every later read of this file fail.
  void Break(const std::string& uri) { broken_ = uri; }

  std::vector<RemoteFile> List(const std::string& uri) const override {
    std::vector<RemoteFile> found;
    const std::string folder = uri.ends_with('/') ? uri : uri + "/";
    for (const auto& [name, text] : files_) {
      if (name == uri || name.starts_with(folder)) found.push_back({name, text.size()});
    }
    if (found.empty()) throw DataError(uri + ": the store has no such file");
    return found;
  }

  std::unique_ptr<File> Open(const std::string& uri, std::uint64_t size) const override {
    return std::make_unique<MemoryFile>(*this, uri, size);
  }

  std::vector<Request> TakeRequests() {
    const std::lock_guard lock(mutex_);
    return std::exchange(requests_, {});
  }

 private:
  class MemoryFile final : public File {
   public:
    MemoryFile(const MemoryStore& store, const std::string& uri, std::uint64_t size)
        : File(uri, size), store_(store) {}
    void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const override {
      RequireWithin(offset, bytes);
      if (bytes == 0) return;
      if (name() == store_.broken_) throw DataError(name() + ": the store is on fire");
      std::memcpy(to, store_.files_.at(name()).data() + offset, bytes);
      const std::lock_guard lock(store_.mutex_);
      store_.requests_.push_back({name(), offset, bytes});
    }

   private:
    const MemoryStore& store_;
  };

  std::map<std::string, std::string> files_;
  std::string broken_;
  mutable std::mutex mutex_;
  mutable std::vector<Request> requests_;
};

std::size_t BytesOf(const std::vector<MemoryStore::Request>& requests) {
  return std::accumulate(requests.begin(), requests.end(), std::size_t{0},
                         [](std::size_t sum, const auto& request) { return sum + request.bytes; });
}

/// Rows with the labels first, first + 1, ... and `words` entries each; if `queries` is set, in queries of 9
/// rows on average.
std::string NumberedRows(int first, int count, int words = 5, bool queries = false) {
  std::mt19937 random(static_cast<unsigned>(first + count));
  std::string text;
  int query = first;
  for (int row = first; row < first + count; ++row) {
    text += fmt::format("{}", row);
    if (queries) text += fmt::format(" qid:{}", query += static_cast<int>(random() % 9 == 0));
    for (int word = 0; word < words; ++word) text += fmt::format(" {}:{}", 10 * word, random() % 1000);
    text += '\n';
  }
  return text;
}

class ProviderTest : public ::testing::Test {
 protected:
  std::vector<float> Labels(const std::string& uri, Share share = {}, int threads = 1,
                            std::size_t chunk_bytes = 4 * kMiB) const {
    ReaderOptions options;
    options.threads = threads;
    options.chunk_bytes = chunk_bytes;
    options.remote_files = WithReadAhead(store_);
    const auto rows = ReadAll<std::uint32_t>(ParseDataUri(uri), share, options);
    return {rows.labels.begin(), rows.labels.end()};
  }

  /// The labels of all parts, one part after the other.
  std::vector<float> LabelsOfParts(const std::string& uri, int parts, int threads,
                                   std::size_t chunk_bytes) const {
    std::vector<float> labels;
    for (int part = 0; part < parts; ++part) {
      const auto share = Labels(uri, {part, parts}, threads, chunk_bytes);
      labels.insert(labels.end(), share.begin(), share.end());
    }
    return labels;
  }

  std::string RemoteError(const std::string& uri, int threads = 1) const {
    return ErrorOf([&] { (void)Labels(uri, {}, threads, 10'000); });
  }

  static std::vector<float> Numbers(int count) {
    std::vector<float> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    return numbers;
  }

  TemporaryFolder folder_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
};

TEST_F(ProviderTest, PartsAreDisjointAndCompleteForAnyNumberOfThreads) {
  for (const bool queries : {false, true}) {
    store_->Put("mem://set/a", NumberedRows(0, 700, 5, queries));
    store_->Put("mem://set/b", NumberedRows(700, 1, 3000, queries));  // a row that spans several windows
    store_->Put("mem://set/c", "");
    store_->Put("mem://set/d", NumberedRows(701, 1299, 5, queries));
    for (const int parts : {1, 2, 3, 7, 50}) {
      for (const int threads : {1, 4}) {
        for (const std::size_t chunk_bytes : {std::size_t{300}, std::size_t{5000}, 4 * kMiB}) {
          ASSERT_EQ(LabelsOfParts("mem://set", parts, threads, chunk_bytes), Numbers(2000))
              << parts << " parts, " << threads << " threads, " << chunk_bytes;
        }
      }
    }
  }
}

TEST_F(ProviderTest, LocalAndRemotePathsGoTogetherInTheirOrder) {
  store_->Put("mem://a", NumberedRows(0, 10));
  store_->Put("other://c", NumberedRows(20, 10));
  const std::string local = folder_.Write("b", NumberedRows(10, 10));
  EXPECT_EQ(Labels("mem://a;" + local + ";other://c?format=libsvm"), Numbers(30));
  EXPECT_EQ(Labels("mem://a;file://" + local), Numbers(20));
}

TEST_F(ProviderTest, AFolderIsItsFilesOfDataAsALocalOneIs) {
  store_->Put("mem://set/a", NumberedRows(0, 10));
  store_->Put("mem://set/_SUCCESS", "no rows");
  store_->Put("mem://set/.b.crc", "no rows");
  store_->Put("mem://set/older/a", "no rows");
  EXPECT_EQ(Labels("mem://set"), Numbers(10));
  EXPECT_EQ(Labels("mem://set/"), Numbers(10));
  store_->Put("mem://set/_named", NumberedRows(10, 10));
  EXPECT_EQ(Labels("mem://set;mem://set/_named"), Numbers(20));
  EXPECT_THAT(RemoteError("mem://set;mem://set/a"),
              HasSubstr("mem://set/a is named twice, by 'mem://set' and by 'mem://set/a'; its rows would"));
  store_->Put("mem://none/_SUCCESS", "");
  EXPECT_THAT(RemoteError("mem://none"), HasSubstr("mem://none: found no data files"));
}

TEST_F(ProviderTest, CompressedFilesAreRead) {
  const std::string text = NumberedRows(0, 200'000);
  for (const bool by_blocks : {false, true}) {
    const std::string uri = by_blocks ? "mem://a.bgz" : "mem://a.gz";
    const std::string bytes = by_blocks ? Bgzf(text) : Gzip(text);
    ASSERT_GT(bytes.size(), kMiB);
    store_->Put(uri, bytes);
    for (const int threads : {1, 4}) {
      (void)store_->TakeRequests();
      ASSERT_EQ(Labels(uri, {}, threads), Numbers(200'000)) << uri;
      // BGZF is read twice: once for the positions of its blocks, and once for their text.
      const auto requests = store_->TakeRequests();
      EXPECT_LE(requests.size(), 8 + (by_blocks ? 2 : 1) * (bytes.size() / kMiB)) << uri;
      EXPECT_LE(BytesOf(requests), (by_blocks ? 2 : 1) * bytes.size() + 2 * kMiB) << uri;
    }
    EXPECT_EQ(LabelsOfParts(uri, 3, 2, 100'000), Numbers(200'000)) << uri;
  }
}

TEST_F(ProviderTest, AChunkTakesOneRequestAndOneForALongLastRow) {
  const std::string text = NumberedRows(0, 800'000);
  ASSERT_GT(text.size(), 16 * kMiB);
  store_->Put("mem://short_rows", text);
  store_->Put("mem://long_rows", NumberedRows(0, 200, 10'000));  // 98 KB each
  store_->Put("mem://queries", NumberedRows(0, 800'000, 5, true));
  for (const int threads : {1, 4}) {
    for (const auto& [uri, of_a_chunk] :
         {std::pair("mem://short_rows", 1), std::pair("mem://long_rows", 2), std::pair("mem://queries", 1)}) {
      (void)store_->TakeRequests();
      const std::size_t size = store_->List(uri).front().size;
      ASSERT_FALSE(Labels(uri, {}, threads).empty());
      const auto requests = store_->TakeRequests();
      const std::size_t chunks = (size + 4 * kMiB - 1) / (4 * kMiB);
      // Two of the requests determine the kind of file and read its first row.
      EXPECT_LE(requests.size(), 2 + chunks * static_cast<std::size_t>(of_a_chunk)) << uri;
      EXPECT_LE(BytesOf(requests), size + chunks * kMiB / 2) << uri;
    }
  }
}

TEST_F(ProviderTest, PartsAndShuffledPiecesOfQueriesTakeFewRequestsMore) {
  store_->Put("mem://queries", NumberedRows(0, 800'000, 5, true));
  const std::size_t size = store_->List("mem://queries").front().size;
  const std::size_t chunks = (size + 4 * kMiB - 1) / (4 * kMiB);
  ASSERT_FALSE(Labels("mem://queries", {1, 3}, 2).empty());
  EXPECT_LE(store_->TakeRequests().size(), 2 + 2 + chunks / 3 + 2);
  ASSERT_FALSE(Labels("mem://queries?shuffle=1", {}, 2).empty());
  EXPECT_LE(store_->TakeRequests().size(), 2 + 2 * chunks);
}

TEST_F(ProviderTest, SmallChunksAreReadOutOfLargeWindows) {
  store_->Put("mem://a", NumberedRows(0, 400'000));
  const std::size_t size = store_->List("mem://a").front().size;
  for (const int threads : {1, 4}) {
    (void)store_->TakeRequests();
    ASSERT_EQ(Labels("mem://a", {}, threads, 16'384), Numbers(400'000));
    const auto requests = store_->TakeRequests();
    EXPECT_LE(requests.size(), 10 + size / kMiB);
    EXPECT_LE(BytesOf(requests), size + kMiB);
  }
}

TEST_F(ProviderTest, ManyFilesTakeTwoRequestsEach) {
  for (int file = 0; file < 200; ++file)
    store_->Put(fmt::format("mem://set/{:03}", file), NumberedRows(100 * file, 100, 100));
  EXPECT_EQ(Labels("mem://set", {}, 4), Numbers(20'000));
  EXPECT_LE(store_->TakeRequests().size(), 2U * 200 + 2);
}

TEST_F(ProviderTest, TheLineOfABadRowIsFoundInFewRequests) {
  std::string text = NumberedRows(0, 800'000);
  const std::size_t size = text.size();
  store_->Put("mem://a", text + "1 2:x\n");
  EXPECT_THAT(RemoteError("mem://a"), HasSubstr("mem://a:800001:3: found '2:x'"));
  EXPECT_LE(store_->TakeRequests().size(), 30 + 2 * size / (4 * kMiB));

  // Ten bad rows are described. To find all their line numbers, the text before them is read only once more.
  for (int row = 0; row < 20; ++row) text += "1 2:x\n";
  store_->Put("mem://b", text);
  ReaderOptions options;
  options.remote_files = store_;  // the store records requests, so a second read would be noticed
  options.threads = 1;
  BadRows bad_rows;
  (void)ReadAll<std::uint32_t>(ParseDataUri("mem://b?bad_rows=skip"), {}, options, &bad_rows);
  EXPECT_EQ(bad_rows.count, 20U);
  ASSERT_EQ(bad_rows.first.size(), 10U);
  EXPECT_THAT(bad_rows.first.back(), HasSubstr("mem://b:800010:3"));
  EXPECT_LE(BytesOf(store_->TakeRequests()), 2 * size + 8 * kMiB);
}

TEST_F(ProviderTest, ErrorsNameTheFileAndKeepTheStoresWords) {
  store_->Put("mem://set/a", NumberedRows(0, 10'000));
  store_->Put("mem://set/b", NumberedRows(0, 10'000));
  EXPECT_THAT(RemoteError("mem://nothing"), HasSubstr("mem://nothing: the store has no such file"));
  store_->Break("mem://set/b");
  for (const int threads : {1, 4})
    EXPECT_THAT(RemoteError("mem://set", threads), HasSubstr("mem://set/b: the store is on fire"));
}

TEST_F(ProviderTest, WindowsHoldWhatTheFileHasForAnyReadsOfAnyThreads) {
  std::string text;
  for (std::uint64_t i = 0; text.size() < 6 * kMiB; ++i) text += std::to_string(i * 7919);
  store_->Put("mem://a", text);
  const auto files = WithReadAhead(store_);
  const auto file = files->Open("mem://a", text.size());
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937 random(number);
      std::string got;
      std::size_t at = 0;
      for (int i = 0; i < 1000; ++i) {
        if (random() % 4 == 0) at = random() % text.size();
        got.resize(std::min<std::size_t>(random() % (std::size_t{1} << (random() % 22)), text.size() - at));
        file->ReadAt(at, got.data(), got.size());
        ASSERT_EQ(got.compare(0, got.size(), text, at, got.size()), 0) << at << ", " << got.size();
        at += got.size();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  char byte = 0;
  EXPECT_THROW(file->ReadAt(text.size(), &byte, 1), std::out_of_range);
}

TEST_F(ProviderTest, WindowsOfAllFilesTogetherAreBounded) {
  // After 4 MiB of each of 40 files have been read, the first file's window is gone; the last file's remains.
  const std::string text(6 * kMiB, 'x');
  for (int i = 0; i < 40; ++i) store_->Put(fmt::format("mem://{}", i), text);
  const auto files = WithReadAhead(store_);
  std::string got(kMiB - 1, '\0');
  const auto read = [&](int number) {
    const auto file = files->Open(fmt::format("mem://{}", number), text.size());
    for (std::size_t at = 0; at + got.size() <= 4 * kMiB; at += got.size())
      file->ReadAt(at, got.data(), got.size());
  };
  for (int i = 0; i < 40; ++i) read(i);
  (void)store_->TakeRequests();
  read(39);
  EXPECT_EQ(store_->TakeRequests().size(), 0U);
  read(0);
  EXPECT_GT(store_->TakeRequests().size(), 0U);
}

TEST_F(ProviderTest, WindowsDoNotOverlap) {
  store_->Put("mem://a", std::string(kMiB, 'x'));
  const auto file = WithReadAhead(store_)->Open("mem://a", kMiB);
  std::string got(10'000, '\0');
  file->ReadAt(20'000, got.data(), 100);
  file->ReadAt(10'000, got.data(), got.size());
  const auto requests = store_->TakeRequests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_LE(requests[1].offset + requests[1].bytes, requests[0].offset);
}

TEST_F(ProviderTest, ListingSaysWhichFileCannotBeRead) {
  for (int file = 0; file < 50; ++file) store_->Put(fmt::format("mem://set/{:02}", file), "1 0:1\n");
  store_->Break("mem://set/33");
  EXPECT_EQ(ErrorOf([&] { ListInputs({"mem://set"}, store_); }), "mem://set/33: the store is on fire");
}

TEST_F(ProviderTest, WhatWasReadToListABlockedFileIsNotReadAgain) {
  store_->Put("mem://a.bgz", Bgzf(NumberedRows(0, 1000), 1000));
  const std::vector<Input> inputs = ListInputs({"mem://a.bgz"}, store_);
  EXPECT_GT(store_->TakeRequests().size(), 10U);
  EXPECT_EQ(OpenFile(inputs.at(0))->size(), NumberedRows(0, 1000).size());
  EXPECT_TRUE(store_->TakeRequests().empty());
}

TEST_F(ProviderTest, PagesGoThroughRemoteFilesAgainAndAgainButDoNotCacheThem) {
  store_->Put("mem://a", NumberedRows(0, 20'000));
  PageOptions options;
  options.memory_bytes = kMiB;
  options.reader.remote_files = WithReadAhead(store_);
  Pages<std::uint32_t> pages(ParseDataUri("mem://a"), {}, options);
  for (int pass = 0; pass < 2; ++pass) {
    std::size_t rows = 0;
    for (RowView<std::uint32_t> page; pages.Next(page);) rows += page.rows();
    EXPECT_EQ(rows, 20'000U);
    pages.Rewind();
  }
  const DataUri cached = ParseDataUri("mem://a#" + (folder_ / "cache"));
  EXPECT_THAT(ErrorOf([&] { Pages<std::uint32_t>(cached, {}, options); }),
              HasSubstr("mem://a: cannot be cached"));
}

class DmlcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string error = ErrorOf([&] { Open(Uri(folder_.Write("probe", "x"))); });
    if (error.find("without dmlc-core") != std::string::npos) GTEST_SKIP() << error;
    ASSERT_EQ(error, "no error");
  }
  static std::string Uri(const std::string& path) { return "file://" + path; }
  std::unique_ptr<File> Open(const std::string& uri) const {
    return files_->Open(uri, files_->List(uri).at(0).size);
  }

  TemporaryFolder folder_;
  std::shared_ptr<const RemoteFiles> files_ = DmlcFiles();
};

TEST_F(DmlcTest, AFileIsReadAtAnyPlaceByAnyNumberOfThreads) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i) + "\n";
  const auto file = Open(Uri(folder_.Write("a", text)));
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

TEST_F(DmlcTest, AFolderIsItsFilesInTheOrderOfTheirNames) {
  folder_.Write("set/b", "23");
  folder_.Write("set/a", "1");
  const std::vector<RemoteFile> files = files_->List(Uri(folder_ / "set"));
  ASSERT_EQ(files.size(), 2U);
  EXPECT_THAT(files[0].uri, HasSubstr("set/a"));
  EXPECT_THAT(files[1].uri, HasSubstr("set/b"));
  EXPECT_EQ(files[0].size, 1U);
  EXPECT_EQ(files[1].size, 2U);
}

TEST_F(DmlcTest, CompressedOnesAreStreams) {
  const std::string uri = Uri(folder_.Write("a.gz", Gzip("1 2:3\n")));
  EXPECT_EQ(Recognise(*Open(uri)), Container::kGzip);
  const auto stream = OpenStream(Open(uri));
  std::string text(100, '\0');
  text.resize(stream->Read(text.data(), text.size()));
  EXPECT_EQ(text, "1 2:3\n");
}

TEST_F(DmlcTest, WhatCannotBeOpenedIsSaidInDmlcCoresWords) {
  for (const std::string& uri : {"x" + Uri(folder_ / "none"), std::string("nonsense://a/b")}) {
    EXPECT_THAT(ErrorOf([&] { ListInputs({uri}); }),
                AllOf(HasSubstr("dmlc-core: "), Not(HasSubstr("Stack trace"))));
  }
}

}  // namespace
}  // namespace warren::data
