// Caches are read back exactly as they were written, or are refused.
#include "data/cache/cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "data/cache/cache_format.h"
#include "tests/data/error_of.h"
#include "tests/temporary_folder.h"

namespace warren::data {
namespace {

namespace fs = std::filesystem;
using testing::Types;

constexpr std::string_view kIdentity = "train.txt 1024 1700000000\nshare 0 of 2\n";

template <typename T>
std::string Bytes(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

/// The complete contents of a page, for comparisons. Reads every byte of the page's arrays.
template <typename Index>
std::vector<std::string> Contents(const RowView<Index>& page) {
  return {Bytes(page.offsets),
          Bytes(page.indices),
          Bytes(page.values),
          Bytes(page.labels),
          Bytes(page.label_offsets),
          Bytes(page.weights),
          Bytes(page.qids),
          Bytes(page.fields),
          std::to_string(page.columns),
          std::to_string(page.least_index)};
}

template <typename Index>
std::vector<std::vector<std::string>> Contents(Cache<Index>& cache) {
  std::vector<std::vector<std::string>> pages;
  for (std::size_t i = 0; i < cache.pages(); ++i) {
    const auto page = cache.Page(i);
    pages.push_back(Contents(page.View()));
  }
  return pages;
}

/// Three rows, with two entries, no entry, and one entry.
template <typename Index>
RowBlock<Index> Small() {
  RowBlock<Index> block;
  for (const std::uint64_t offset : {0, 2, 2, 3}) block.offsets.push_back(offset);
  for (const Index index : {7, 3, 5}) block.indices.push_back(index);
  for (const float value : {0.5F, -1.0F, std::numeric_limits<float>::quiet_NaN()})
    block.values.push_back(value);
  for (const float label : {1.0F, 0.0F, 1.0F}) block.labels.push_back(label);
  block.columns = 8;
  block.least_index = 3;
  return block;
}

/// The rows of Small, with every optional array of a block.
template <typename Index>
RowBlock<Index> Full() {
  RowBlock<Index> block = Small<Index>();
  for (const std::uint64_t offset : {0, 2, 2, 3}) block.label_offsets.push_back(offset);
  for (const float weight : {0.25F, 1.0F, 4.0F}) block.weights.push_back(weight);
  for (const std::uint64_t qid : {std::uint64_t{9}, std::uint64_t{9}, ~std::uint64_t{0}})
    block.qids.push_back(qid);
  for (const Index field : {0, 1, 2}) block.fields.push_back(field);
  return block;
}

/// A block with this many entries in rows of eight, different for each seed.
RowBlock<std::uint32_t> Large(std::size_t entries, std::uint32_t seed) {
  RowBlock<std::uint32_t> block;
  block.indices.resize(entries);
  block.values.resize(entries);
  for (std::size_t i = 0; i < entries; ++i) block.indices[i] = seed + static_cast<std::uint32_t>(i % 1000);
  block.values.resize(0);
  block.values.resize(entries, static_cast<float>(seed));
  block.offsets.resize(entries / 8 + 1);
  for (std::size_t row = 0; row <= entries / 8; ++row) block.offsets[row] = row * 8;
  block.labels.resize(entries / 8, 1.0F);
  block.columns = std::uint64_t{seed} + 1000;
  block.least_index = seed;
  return block;
}

template <typename Index>
void WriteCache(const std::string& path, const std::vector<RowBlock<Index>>& blocks,
                std::string_view identity = kIdentity) {
  CacheWriter<Index> writer(path, identity);
  for (const auto& block : blocks) writer.Append(block.View());
  writer.Commit();
}

template <typename Index>
std::unique_ptr<Cache<Index>> MustOpen(const std::string& path) {
  std::string why;
  auto cache = Cache<Index>::Open(path, kIdentity, why);
  if (cache == nullptr) throw DataError("no cache: " + why);
  EXPECT_EQ(why, "");
  return cache;
}

template <typename Index>
std::string WhyNot(const std::string& path, std::string_view identity = kIdentity) {
  std::string why = "not set";
  EXPECT_EQ(Cache<Index>::Open(path, identity, why), nullptr);
  return why;
}

template <typename Index>
class CacheTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string path_ = folder_ / "cache";
};
using CacheTest32 = CacheTest<std::uint32_t>;

using IndexTypes = Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(CacheTest, IndexTypes);

// Valid caches are read back as they were written.

TYPED_TEST(CacheTest, APageComesBackAsItWasWritten) {
  const auto full = Full<TypeParam>();
  WriteCache<TypeParam>(this->path_, {full});
  const auto cache = MustOpen<TypeParam>(this->path_);
  ASSERT_EQ(cache->pages(), 1u);
  const auto page = cache->Page(0);
  EXPECT_EQ(Contents(page.View()), Contents(full.View()));
  EXPECT_EQ(this->folder_.Files(), 1u);
}

TYPED_TEST(CacheTest, EveryChoiceOfOptionalArraysComesBack) {
  std::vector<RowBlock<TypeParam>> blocks;
  for (unsigned choice = 0; choice < 16; ++choice) {
    auto block = Full<TypeParam>();
    if ((choice & 1) == 0) block.label_offsets.clear();
    if ((choice & 2) == 0) block.weights.clear();
    if ((choice & 4) == 0) block.qids.clear();
    if ((choice & 8) == 0) block.fields.clear();
    blocks.push_back(std::move(block));
  }
  WriteCache<TypeParam>(this->path_, blocks);
  const auto cache = MustOpen<TypeParam>(this->path_);
  ASSERT_EQ(cache->pages(), blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto page = cache->Page(i);
    EXPECT_EQ(Contents(page.View()), Contents(blocks[i].View())) << i;
  }
}

TYPED_TEST(CacheTest, RowsWithoutLabelsAndWithoutEntriesComeBack) {
  RowBlock<TypeParam> block;
  block.offsets.resize(3, 0);
  block.label_offsets.resize(3, 0);
  WriteCache<TypeParam>(this->path_, {block});
  const auto cache = MustOpen<TypeParam>(this->path_);
  const auto page = cache->Page(0);
  EXPECT_EQ(Contents(page.View()), Contents(block.View()));
  EXPECT_EQ(cache->columns(), 0u);
  EXPECT_EQ(cache->least_index(), TypeParam(-1));
}

TYPED_TEST(CacheTest, ACacheOfNothingIsACache) {
  WriteCache<TypeParam>(this->path_, {});
  const auto cache = MustOpen<TypeParam>(this->path_);
  EXPECT_EQ(cache->pages(), 0u);
  EXPECT_EQ(cache->rows(), 0u);
  EXPECT_EQ(cache->entries(), 0u);
  EXPECT_EQ(cache->columns(), 0u);
  EXPECT_EQ(cache->least_index(), TypeParam(-1));
}

TYPED_TEST(CacheTest, PagesWithoutRowsAreLeftOut) {
  RowBlock<TypeParam> begun;
  begun.offsets.push_back(0);
  WriteCache<TypeParam>(this->path_, {RowBlock<TypeParam>(), Small<TypeParam>(), begun});
  EXPECT_EQ(MustOpen<TypeParam>(this->path_)->pages(), 1u);
}

TYPED_TEST(CacheTest, ManyPagesComeBackInAnyOrderAndAddUp) {
  constexpr std::size_t kPages = 1000;
  std::vector<RowBlock<TypeParam>> blocks(kPages, Small<TypeParam>());
  for (std::size_t i = 0; i < kPages; ++i) {
    blocks[i].labels[0] = static_cast<float>(i);
    blocks[i].indices[0] = static_cast<TypeParam>(7 + i);
    blocks[i].columns = 8 + i;
  }
  std::swap(blocks[3], blocks[kPages - 1]);
  blocks[500].indices[1] = blocks[500].least_index = 2;
  WriteCache<TypeParam>(this->path_, blocks);
  const auto cache = MustOpen<TypeParam>(this->path_);
  ASSERT_EQ(cache->pages(), kPages);
  EXPECT_EQ(cache->rows(), 3 * kPages);
  EXPECT_EQ(cache->entries(), 3 * kPages);
  EXPECT_EQ(cache->columns(), 7 + kPages);
  EXPECT_EQ(cache->least_index(), 2u);
  for (std::size_t i = kPages; i-- > 0;) {
    const auto page = cache->Page(i);
    ASSERT_EQ(Contents(page.View()), Contents(blocks[i].View())) << i;
  }
}

TYPED_TEST(CacheTest, EveryArrayBeginsAtACacheLine) {
  WriteCache<TypeParam>(this->path_, {Full<TypeParam>(), Full<TypeParam>()});
  const auto cache = MustOpen<TypeParam>(this->path_);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto page = cache->Page(i);
    const auto& view = page.View();
    for (const void* array : std::initializer_list<const void*>{
             view.offsets.data(), view.indices.data(), view.values.data(), view.labels.data(),
             view.label_offsets.data(), view.weights.data(), view.qids.data(), view.fields.data()}) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array) % 64, 0u);
    }
  }
}

TEST_F(CacheTest32, APageLongerThanAPieceOfTheCheckComesBack) {
  const auto large = Large(1000003 / 8 * 8, 5);  // ends in the middle of a piece
  WriteCache<std::uint32_t>(path_, {large});
  const auto page = MustOpen<std::uint32_t>(path_)->Page(0);  // the page outlives its cache
  EXPECT_EQ(Contents(page.View()), Contents(large.View()));
}

TEST_F(CacheTest32, TheBytesAreThoseOfTheDocument) {
  if (std::endian::native != std::endian::little) GTEST_SKIP() << "the document shows little-endian bytes";
  RowBlock<std::uint32_t> block;
  for (const std::uint64_t offset : {0, 1}) block.offsets.push_back(offset);
  block.indices.push_back(2);
  block.values.push_back(0.5F);
  block.labels.push_back(1.0F);
  block.columns = 3;
  block.least_index = 2;
  WriteCache<std::uint32_t>(path_, {block}, "a.txt");
  std::string hex;
  for (const char byte : ReadFile(path_)) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  const auto zeros = [](std::size_t bytes) { return std::string(2 * bytes, '0'); };
  std::string expected =
      "77617272656e5242 01000000 04030201 04000000 00000000 0500000000000000 d714a6933ec748a6" + zeros(16) +
      "5900620bf252ac29";
  expected += "612e747874" + zeros(59);
  expected += "0000000000000000 0100000000000000" + zeros(48);
  expected += "02000000" + zeros(60);
  expected += "0000003f" + zeros(60);
  expected += "0000803f" + zeros(60);
  expected +=
      "8000000000000000 0001000000000000 0300000000000000 02000000000000000200000000000000 0100000000000000 0100000000000000 0100000000000000" +
      zeros(32) + "ebf4bc0dec6c924d";
  expected += "8001000000000000 0100000000000000 9e25c8f5c42ef79a afaea6d24d361627 42526e6572726177";
  std::erase(expected, ' ');
  EXPECT_EQ(hex, expected);
}

// Files that are not caches, or are caches of other data, are refused.

TYPED_TEST(CacheTest, NoFileIsNoCacheAndNoReason) {
  EXPECT_EQ(WhyNot<TypeParam>(this->path_), "");
}

TYPED_TEST(CacheTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(this->path_.c_str(), 0600), 0);
  EXPECT_EQ(WhyNot<TypeParam>(this->path_), this->path_ + ": is not a regular file, expected a cache");
}

TYPED_TEST(CacheTest, AnotherIdentityIsAnotherCache) {
  WriteCache<TypeParam>(this->path_, {Small<TypeParam>()});
  EXPECT_EQ(WhyNot<TypeParam>(this->path_, "train.txt 1024 1700000001\nshare 0 of 2\n"),
            this->path_ + ": was made from other data or options: found '1700000000', expected '1700000001'");
  EXPECT_EQ(WhyNot<TypeParam>(this->path_, "train.txt"),
            this->path_ + ": was made from other data or options: the identities differ from byte 9 on");
  EXPECT_NE(WhyNot<TypeParam>(this->path_, std::string(kIdentity) + '\0'), "");
  EXPECT_NE(WhyNot<TypeParam>(this->path_, ""), "");
}

TEST_F(CacheTest32, TheOtherIndexSizeIsRefused) {
  WriteCache<std::uint32_t>(path_, {Small<std::uint32_t>()});
  EXPECT_EQ(WhyNot<std::uint64_t>(path_), path_ + ": has indices of 4 bytes, expected 8");
}

/// A cache file with changed bytes and correct checksums.
class Forged {
 public:
  explicit Forged(const std::string& path) : bytes_(ReadFile(path)) {
    std::memcpy(&header_, bytes_.data(), sizeof(header_));
    std::memcpy(&footer_, bytes_.data() + bytes_.size() - sizeof(footer_), sizeof(footer_));
    table_.resize(footer_.pages);
    std::memcpy(table_.data(), bytes_.data() + footer_.table_offset, table_.size() * sizeof(table_[0]));
  }
  internal::CacheHeader& header() { return header_; }
  const internal::CachePageEntry& page(std::size_t i) const { return table_[i]; }
  internal::CacheFooter& footer() { return footer_; }
  std::vector<internal::CachePageEntry>& table() { return table_; }
  /// Writes a value into page `page` and corrects the page's checksum.
  template <typename T>
  void Put(std::size_t page, std::uint64_t at, T value) {
    std::memcpy(bytes_.data() + table_[page].offset + at, &value, sizeof(value));
    table_[page].checksum = internal::Checksum(bytes_.data() + table_[page].offset, table_[page].bytes);
  }
  void WriteTo(const std::string& path) {
    const std::size_t table_bytes = table_.size() * sizeof(table_[0]);
    const std::size_t footer_at = bytes_.size() - sizeof(footer_);
    header_.checksum = ChecksumOf(header_);
    footer_.table_checksum = internal::Checksum(table_.data(), table_bytes);
    footer_.checksum = ChecksumOf(footer_);
    std::memcpy(bytes_.data(), &header_, sizeof(header_));
    std::memcpy(bytes_.data() + footer_at - table_bytes, table_.data(), table_bytes);
    std::memcpy(bytes_.data() + footer_at, &footer_, sizeof(footer_));
    // Overwrites the existing file, which has the same length. Truncating it first would be slow on some file
    // systems, and this runs a thousand times.
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << bytes_;
  }

 private:
  std::string bytes_;
  internal::CacheHeader header_;
  internal::CacheFooter footer_;
  std::vector<internal::CachePageEntry> table_;
};

/// Writes the cache to `path`. Returns whether it can be opened and all its pages read.
template <typename Index>
bool Accepts(Forged& forged, const std::string& path) {
  forged.WriteTo(path);
  std::string why;
  try {
    const auto cache = Cache<Index>::Open(path, kIdentity, why);
    if (cache != nullptr) Contents(*cache);
    return cache != nullptr;
  } catch (const DataError&) {
    return false;
  }
}

TEST_F(CacheTest32, AnotherVersionAndAnotherByteOrderAreRefused) {
  WriteCache<std::uint32_t>(path_, {Small<std::uint32_t>()});
  Forged newer(path_);
  Forged swapped(path_);
  newer.header().version = 2;
  newer.WriteTo(path_);
  EXPECT_EQ(WhyNot<std::uint32_t>(path_), path_ + ": is a cache of version 2, expected 1");
  swapped.header().byte_order = 0x04030201;
  swapped.WriteTo(path_);
  EXPECT_EQ(WhyNot<std::uint32_t>(path_),
            path_ + ": has the byte order mark 0x04030201, expected 0x01020304, this machine's");
}

// Damage is detected.

TYPED_TEST(CacheTest, ACutAnywhereIsNoticedWhenOpening) {
  WriteCache<TypeParam>(this->path_, {Small<TypeParam>(), Full<TypeParam>()});
  const std::string whole = ReadFile(this->path_);
  for (std::size_t bytes = whole.size(); bytes-- > 0;) {
    ASSERT_EQ(truncate(this->path_.c_str(), static_cast<off_t>(bytes)), 0);
    ASSERT_NE(WhyNot<TypeParam>(this->path_), "") << bytes;
  }
}

TYPED_TEST(CacheTest, EveryBitThatFlipsIsNoticed) {
  WriteCache<TypeParam>(this->path_, {Small<TypeParam>(), Full<TypeParam>()});
  std::string bytes = ReadFile(this->path_);
  const int fd = open(this->path_.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const auto put = [&](std::size_t at) { ASSERT_EQ(pwrite(fd, &bytes[at], 1, static_cast<off_t>(at)), 1); };
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    put(bit / 8);
    std::string why;
    bool noticed = false;
    try {
      const auto cache = Cache<TypeParam>::Open(this->path_, kIdentity, why);
      noticed = cache == nullptr && !why.empty();
      if (cache != nullptr) Contents(*cache);
    } catch (const DataError&) {
      noticed = true;
    }
    ASSERT_TRUE(noticed) << "bit " << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    put(bit / 8);
  }
  close(fd);
  EXPECT_EQ(Contents(*MustOpen<TypeParam>(this->path_)).size(), 2u);
}

TEST_F(CacheTest32, ADamagedPageIsNamedAndTheOthersCanBeRead) {
  WriteCache<std::uint32_t>(path_, {Small<std::uint32_t>(), Small<std::uint32_t>(), Small<std::uint32_t>()});
  std::string bytes = ReadFile(path_);
  const std::uint64_t second = Forged(path_).table()[1].offset;
  bytes[second + 64] ^= 1;
  folder_.Write("cache", bytes);
  const auto cache = MustOpen<std::uint32_t>(path_);
  EXPECT_NO_THROW(cache->Page(0));
  EXPECT_NO_THROW(cache->Page(2));
  for (int again = 0; again < 2; ++again) {
    const std::string error = ErrorOf([&] { cache->Page(1); });
    EXPECT_EQ(error.find(path_ + ": page 1 of 3, 256 bytes at byte 384: has the checksum "), 0u) << error;
  }
}

TYPED_TEST(CacheTest, SizesThatLieWithRightChecksumsNeverReachOutside) {
  WriteCache<TypeParam>(this->path_, {Small<TypeParam>(), Full<TypeParam>()});
  const Forged sound(this->path_);
  const std::vector<std::uint64_t> lies = {0,          1,          2,          3,          5,
                                           63,         64,         4095,       1ULL << 31, 1ULL << 32,
                                           1ULL << 47, 1ULL << 48, 1ULL << 60, 1ULL << 61, 1ULL << 62,
                                           1ULL << 63, ~0ULL - 63, ~0ULL};
  const std::size_t kWords = sizeof(internal::CachePageEntry) / 8 - 1;  // all but the checksum
  for (const std::uint64_t lie : lies) {
    for (std::size_t page = 0; page < 2; ++page) {
      for (std::size_t word = 0; word < kWords; ++word) {
        Forged forged = sound;
        char* const place = reinterpret_cast<char*>(&forged.table()[page]) + 8 * word;
        std::uint64_t truth = 0;
        std::memcpy(&truth, place, 8);
        std::memcpy(place, &lie, 8);
        // Word 2 (columns) and word 3 (least index) may have any value that fits the index type, except that
        // word 2 must not be too small.
        const bool may_be = (word == 2 && lie >= truth) || word == 3;
        const bool fits = lie <= std::numeric_limits<TypeParam>::max();
        const bool accepted = Accepts<TypeParam>(forged, this->path_);
        const bool is_place = word < 2;
        if (is_place && lie != truth) {
          EXPECT_NE(WhyNot<TypeParam>(this->path_), "") << "known without the page";
        }
        EXPECT_EQ(accepted, lie == truth || (may_be && fits))
            << "page " << page << " word " << word << ": " << lie;
      }
    }
    Forged forged = sound;
    forged.footer().table_offset = lie;
    EXPECT_FALSE(Accepts<TypeParam>(forged, this->path_)) << lie;
    forged = sound;
    forged.footer().pages = lie;
    EXPECT_EQ(Accepts<TypeParam>(forged, this->path_), lie == 2) << lie;
    forged = sound;
    forged.header().identity_bytes = lie;
    EXPECT_FALSE(Accepts<TypeParam>(forged, this->path_)) << lie;
  }
}

TYPED_TEST(CacheTest, SizesThatAgreeWhenTheyOverflowAreRefused) {
  auto block = Small<TypeParam>();
  for (const std::uint64_t offset : {0, 2, 2, 3}) block.label_offsets.push_back(offset);
  WriteCache<TypeParam>(this->path_, {block});
  Forged forged(this->path_);
  auto& counts = forged.table()[0].counts;
  counts[internal::kOffsets] += std::uint64_t{1} << 61;  // times eight, this overflows to zero
  counts[internal::kLabelOffsets] += std::uint64_t{1} << 61;
  EXPECT_FALSE(Accepts<TypeParam>(forged, this->path_));
}

TYPED_TEST(CacheTest, SizesThatAgreeButGoBeyondThePagesAreRefused) {
  WriteCache<TypeParam>(this->path_, {Small<TypeParam>()});
  Forged forged(this->path_);
  auto& page = forged.table()[0];
  page.counts[internal::kOffsets] = 1001;
  page.counts[internal::kLabels] = 1000;
  page.bytes = internal::LayoutOf(page.counts, sizeof(TypeParam)).page_bytes;
  EXPECT_FALSE(Accepts<TypeParam>(forged, this->path_));
}

TYPED_TEST(CacheTest, APageWithoutRowsIsNone) {
  RowBlock<TypeParam> block;
  block.offsets.resize(3, 0);
  block.label_offsets.resize(3, 0);
  WriteCache<TypeParam>(this->path_, {block});
  Forged forged(this->path_);
  forged.table()[0].counts[internal::kOffsets] = forged.table()[0].counts[internal::kLabelOffsets] = 1;
  EXPECT_FALSE(Accepts<TypeParam>(forged, this->path_));
}

TYPED_TEST(CacheTest, BytesThatNoPageOwnsAreRefused) {
  WriteCache<TypeParam>(this->path_, {Small<TypeParam>(), Full<TypeParam>()});
  Forged forged(this->path_);
  // The bytes of the table's first entry now follow the pages and belong to none of them.
  forged.table().erase(forged.table().begin());
  forged.footer().pages = 1;
  forged.footer().table_offset += sizeof(internal::CachePageEntry);
  EXPECT_FALSE(Accepts<TypeParam>(forged, this->path_));
  forged.table().clear();
  forged.footer().pages = 0;
  forged.footer().table_offset += sizeof(internal::CachePageEntry);
  EXPECT_FALSE(Accepts<TypeParam>(forged, this->path_));
}

TYPED_TEST(CacheTest, AnIdentityOfNearlyAllBytesThereAreIsRefused) {
  WriteCache<TypeParam>(this->path_, {Small<TypeParam>()}, "");
  Forged forged(this->path_);
  forged.header().identity_bytes = ~std::uint64_t{0};  // overflows to zero with its padding
  forged.WriteTo(this->path_);
  EXPECT_NE(WhyNot<TypeParam>(this->path_, "").find("expected an identity of"), std::string::npos);
}

TYPED_TEST(CacheTest, ArraysThatPointOutsideAreRefusedThoughTheChecksumIsRight) {
  WriteCache<TypeParam>(this->path_, {Full<TypeParam>()});
  const Forged sound(this->path_);
  const auto error_with = [&](std::uint64_t at, auto value) {
    Forged forged = sound;
    forged.Put(0, at, value);
    forged.WriteTo(this->path_);
    const auto cache = MustOpen<TypeParam>(this->path_);
    const std::string error = ErrorOf([&] { cache->Page(0); });
    return error.substr(error.rfind(": ") + 2);
  };
  const auto layout = internal::LayoutOf(sound.page(0).counts, sizeof(TypeParam));
  const std::uint64_t labels = layout.begin[internal::kLabelOffsets];
  EXPECT_EQ(error_with(0, std::uint64_t{1}), "the offsets begin with 1, expected 0");
  EXPECT_EQ(error_with(8, std::uint64_t{3}), "the offsets decrease, expected them to rise from 0 to 3");
  EXPECT_EQ(error_with(8, ~std::uint64_t{0}), "the offsets decrease, expected them to rise from 0 to 3");
  EXPECT_EQ(error_with(24, std::uint64_t{4}), "the offsets end with 4, expected 3");
  EXPECT_EQ(error_with(24, std::uint64_t{2}), "the offsets end with 2, expected 3");
  EXPECT_EQ(error_with(labels + 24, std::uint64_t{4}), "the label offsets end with 4, expected 3");
  EXPECT_EQ(error_with(layout.begin[internal::kIndices], TypeParam{8}),
            "an index of 8, expected one below the 8 columns");
}

TEST_F(CacheTest32, OffsetsThatFallBetweenTwoPiecesOfTheCheckAreRefused) {
  WriteCache<std::uint32_t>(path_, {Large(1 << 20, 5)});
  Forged forged(path_);
  forged.Put(0, (256 << 10) - 8, std::uint64_t{1 << 20});  // the last offset of the first piece
  forged.WriteTo(path_);
  const auto cache = MustOpen<std::uint32_t>(path_);
  EXPECT_NE(ErrorOf([&] { cache->Page(0); }).find("the offsets decrease"), std::string::npos);
}

TYPED_TEST(CacheTest, AWriterRefusesArraysThatDoNotFit) {
  const auto refusal = [&](auto spoil) {
    auto block = Full<TypeParam>();
    spoil(block);
    const std::string error = ErrorOf([&] {
      WriteCache<TypeParam>(this->path_, {Small<TypeParam>(), block});
    });
    EXPECT_EQ(this->folder_.Files(), 0u);
    const std::string begin = this->path_ + ": page 1 cannot be written: ";
    EXPECT_EQ(error.find(begin), 0u) << error;
    return error.substr(begin.size());
  };
  using Block = RowBlock<TypeParam>;
  EXPECT_EQ(refusal([](Block& b) { b.values.resize(2); }), "2 values in 3 rows of 3 entries, expected 3");
  EXPECT_EQ(refusal([](Block& b) { b.weights.resize(2); }),
            "2 weights in 3 rows of 3 entries, expected 3 or none");
  EXPECT_EQ(refusal([](Block& b) { b.qids.resize(1); }), "1 qids in 3 rows of 3 entries, expected 3 or none");
  EXPECT_EQ(refusal([](Block& b) { b.fields.resize(1); }),
            "1 fields in 3 rows of 3 entries, expected 3 or none");
  EXPECT_EQ(refusal([](Block& b) { b.label_offsets.resize(3); }),
            "3 label offsets in 3 rows of 3 entries, expected 4 or none");
  EXPECT_EQ(refusal([](Block& b) {
              b.label_offsets.clear();
              b.labels.resize(2);
            }),
            "2 labels in 3 rows of 3 entries, expected 3");
  EXPECT_EQ(refusal([](Block& b) { b.offsets[0] = 1; }), "the offsets begin with 1, expected 0");
  EXPECT_EQ(refusal([](Block& b) { b.labels.resize(2); }), "the label offsets end with 3, expected 2");
  EXPECT_EQ(refusal([](Block& b) { b.columns = 7; }), "an index of 7, expected one below the 7 columns");
}

// Dying writers and full disks.

TEST_F(CacheTest32, ANewCacheIsNotThereBeforeItsCommitAndOldReadersKeepTheirs) {
  WriteCache<std::uint32_t>(path_, {Small<std::uint32_t>()});
  const auto old = MustOpen<std::uint32_t>(path_);
  CacheWriter<std::uint32_t> writer(path_, "new");
  writer.Append(Large(80, 1).View());
  EXPECT_NE(MustOpen<std::uint32_t>(path_), nullptr);
  writer.Commit();
  std::string why;
  EXPECT_NE(Cache<std::uint32_t>::Open(path_, "new", why), nullptr) << why;
  const auto page = old->Page(0);
  EXPECT_EQ(Contents(page.View()), Contents(Small<std::uint32_t>().View()));
}

TEST_F(CacheTest32, AWriterThatGivesUpLeavesTheOldCache) {
  WriteCache<std::uint32_t>(path_, {Small<std::uint32_t>()});
  { CacheWriter<std::uint32_t>(path_, kIdentity).Append(Large(80, 1).View()); }
  EXPECT_EQ(MustOpen<std::uint32_t>(path_)->rows(), 3u);
  EXPECT_EQ(folder_.Files(), 1u);
}

TEST_F(CacheTest32, NothingCanBeAddedAfterTheCommit) {
  CacheWriter<std::uint32_t> writer(path_, kIdentity);
  writer.Commit();
  const std::string expected = path_ + ": cannot write to a cache that is already finished or has failed";
  EXPECT_EQ(ErrorOf([&] { writer.Append(Small<std::uint32_t>().View()); }), expected);
  EXPECT_EQ(ErrorOf([&] { writer.Commit(); }), expected);
  EXPECT_EQ(MustOpen<std::uint32_t>(path_)->pages(), 0u);
}

/// Writes the cache repeatedly in a forked process, which is killed when its parent dies.
[[noreturn]] void WriteForever(const std::string& path, const std::vector<RowBlock<std::uint32_t>>& blocks) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    for (;;) WriteCache(path, blocks);
  } catch (...) {
    _exit(1);
  }
}

TEST_F(CacheTest32, AWriterKilledAtAnyMomentLeavesAWholeCacheOrNone) {
  const std::vector<RowBlock<std::uint32_t>> blocks = {Large(40000, 1), Large(40000, 2), Large(40000, 3)};
  std::mt19937 random(1);
  int seen = 0;
  for (int round = 0; round < 60; ++round) {
    if (round % 6 == 0) fs::remove(path_);
    const pid_t writer = fork();
    if (writer == 0) WriteForever(path_, blocks);
    // A busy machine takes longer to write a whole cache, so the limit grows until a whole cache has been
    // found.
    const unsigned limit_us = seen > 0 ? 8000 : 8000 * (1 + static_cast<unsigned>(round));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % limit_us));
    kill(writer, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    ASSERT_TRUE(WIFSIGNALED(status));
    std::string why;
    const auto cache = Cache<std::uint32_t>::Open(path_, kIdentity, why);
    ASSERT_EQ(why, "");
    if (cache == nullptr) continue;
    ++seen;
    ASSERT_EQ(cache->pages(), 3u);
    const auto page = cache->Page(2);
    ASSERT_EQ(Contents(page.View()), Contents(blocks[2].View()));
  }
  EXPECT_GT(seen, 0);
  WriteCache(path_, blocks);
  EXPECT_EQ(folder_.Files(), 1u) << "what killed writers left was to be removed";
}

TEST_F(CacheTest32, AFullDeviceIsAnErrorWithTheReason) {
  EXPECT_EQ(ErrorOf([] { CacheWriter<std::uint32_t>("/dev/full", kIdentity); }),
            "cannot write /dev/full: No space left on device");
}

/// A disk of 1 MiB that only this process sees. It disappears with this object, or with the process.
class SmallDisk {
 public:
  explicit SmallDisk(std::string where) : where_(std::move(where)) {
    fs::create_directories(where_);
    mounted_ = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               mount("none", where_.c_str(), "tmpfs", 0, "size=1m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount(where_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::string where_;
  bool mounted_ = false;
};

TEST_F(CacheTest32, ADiskThatFillsUpIsAnErrorAndNothingStays) {
  const SmallDisk disk(folder_ / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  const std::string path = folder_ / "disk/cache";
  WriteCache<std::uint32_t>(path, {Small<std::uint32_t>()});
  CacheWriter<std::uint32_t> writer(path, kIdentity);
  const auto large = Large(40000, 1);  // 380 kB
  writer.Append(large.View());
  writer.Append(large.View());
  EXPECT_EQ(ErrorOf([&] { writer.Append(large.View()); }),
            "cannot write " + path + ": No space left on device");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "disk"), {}), 1) << "while the writer still lives";
  EXPECT_THROW(writer.Commit(), DataError);
  EXPECT_EQ(MustOpen<std::uint32_t>(path)->rows(), 3u);
}

TEST_F(CacheTest32, AFolderThatIsNotThereIsAnErrorWithTheReason) {
  const std::string path = folder_ / "no/cache";
  EXPECT_EQ(ErrorOf([&] { CacheWriter<std::uint32_t>(path, kIdentity); }),
            "cannot create " + path + ": No such file or directory");
}

// Files that change while they are read, and many readers.

TEST_F(CacheTest32, AFileCutWhileOpenIsAnErrorAndNoSignal) {
  WriteCache<std::uint32_t>(path_, {Small<std::uint32_t>(), Large(40000, 1)});
  const auto cache = MustOpen<std::uint32_t>(path_);
  const auto held = cache->Page(0);
  EXPECT_NO_THROW(cache->Page(1));
  const auto bytes = fs::file_size(path_);
  ASSERT_EQ(truncate(path_.c_str(), 5000), 0);
  for (std::size_t page : {0, 1}) {
    EXPECT_EQ(ErrorOf([&] { cache->Page(page); }), path_ + ": has 5000 bytes, but had " +
                                                       std::to_string(bytes) +
                                                       " when it was opened: something else changed it");
  }
}

TEST_F(CacheTest32, AFileCutAtTheWorstMomentIsAnErrorAndNoSignal) {
  const std::vector<RowBlock<std::uint32_t>> blocks = {Large(200000, 1)};
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    WriteCache(path_, blocks);
    const auto cache = MustOpen<std::uint32_t>(path_);
    std::thread cutter([&, wait = random() % 1500] {
      std::this_thread::sleep_for(std::chrono::microseconds(wait));
      EXPECT_EQ(truncate(path_.c_str(), 5000), 0);
    });
    // Each iteration opens a new reader, so that a page is checked while the file is being truncated.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    std::string why;
    bool noticed = false;
    while (!noticed && std::chrono::steady_clock::now() < give_up) {
      try {
        const auto reader = Cache<std::uint32_t>::Open(path_, kIdentity, why);
        if (reader == nullptr) break;
        reader->Page(0);
        cache->Page(0);
      } catch (const DataError&) {
        noticed = true;
      }
    }
    cutter.join();
    ASSERT_TRUE(noticed || !why.empty());
  }
}

TEST_F(CacheTest32, AFileChangedInPlaceIsCheckedAgain) {
  WriteCache<std::uint32_t>(path_, {Small<std::uint32_t>()});
  const auto cache = MustOpen<std::uint32_t>(path_);
  EXPECT_NO_THROW(cache->Page(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // file times have a coarse clock
  const int fd = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(pwrite(fd, "?", 1, 128 + 8), 1);
  close(fd);
  EXPECT_NE(ErrorOf([&] { cache->Page(0); }).find("it is damaged"), std::string::npos);
}

TEST_F(CacheTest32, ManyThreadsReadOneCacheAndOthersTheSameFile) {
  std::vector<RowBlock<std::uint32_t>> blocks;
  for (std::uint32_t i = 0; i < 20; ++i) blocks.push_back(Large(4000, i));
  WriteCache(path_, blocks);
  const auto shared = MustOpen<std::uint32_t>(path_);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (unsigned reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&, reader] {
      const auto own = MustOpen<std::uint32_t>(path_);
      for (std::size_t i = 0; i < 200; ++i) {
        const std::size_t at = (i * (reader + 1)) % blocks.size();
        const auto page = (i % 2 == 0 ? shared : own)->Page(at);
        if (Contents(page.View()) != Contents(blocks[at].View())) ++wrong;
      }
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

std::size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_F(CacheTest32, MemoryHoldsThePagesThatAreHeldAndNoMore) {
  constexpr std::size_t kPages = 30;
  constexpr std::size_t kPageBytes = 10 << 20;
  {
    const auto large = Large((kPageBytes / 76) * 8, 1);
    CacheWriter<std::uint32_t> writer(path_, kIdentity);
    for (std::size_t i = 0; i < kPages; ++i) writer.Append(large.View());
    writer.Commit();
  }
  ASSERT_GT(fs::file_size(path_), kPages * kPageBytes * 9 / 10);
  const auto cache = MustOpen<std::uint32_t>(path_);
  const std::size_t before = ResidentBytes();
  std::size_t most = 0;
  double sum = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t i = 0; i < kPages; ++i) {
      const auto page = cache->Page(i);
      for (const float value : page.View().values) sum += value;
      most = std::max(most, ResidentBytes());
    }
  }
  EXPECT_GT(sum, 0);
#ifndef WARREN_PORTABLE  // portable builds read only the used part of a page
  EXPECT_GT(most, before + kPageBytes / 2);
#endif
  EXPECT_LT(most, before + 2 * kPageBytes);
}

}  // namespace
}  // namespace warren::data
