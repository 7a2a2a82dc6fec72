// Row blocks: appending fills in arrays that only one of the blocks has, clearing leaves nothing, and arrays
// keep their values however they grow and move.
#include "data/row_block.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <new>
#include <utility>
#include <vector>

#include "data/array.h"
#include "data/error.h"

namespace warren::data {
namespace {

template <typename T>
std::vector<T> Values(const Array<T>& array) {
  return {array.begin(), array.end()};
}

template <typename T>
void Fill(Array<T>& array, std::initializer_list<T> values) {
  array.append({values.begin(), values.size()});
}

using Floats = std::vector<float>;
using Numbers = std::vector<std::uint64_t>;

template <typename Index>
class RowBlockTest : public testing::Test {
 protected:
  using Block = RowBlock<Index>;
  using Indices = std::vector<Index>;

  /// Two rows: label 1 with the entry 3:0.5, label 2 with the entries 0:4 and 7:8.
  static Block Two() {
    Block block;
    Fill<std::uint64_t>(block.offsets, {0, 1, 3});
    Fill<Index>(block.indices, {3, 0, 7});
    Fill(block.values, {0.5F, 4.0F, 8.0F});
    Fill(block.labels, {1.0F, 2.0F});
    block.columns = 8;
    block.least_index = 0;
    return block;
  }
  /// One row: label 3 with the entry 9:1.
  static Block One() {
    Block block;
    Fill<std::uint64_t>(block.offsets, {0, 1});
    Fill<Index>(block.indices, {9});
    Fill(block.values, {1.0F});
    Fill(block.labels, {3.0F});
    block.columns = 10;
    block.least_index = 9;
    return block;
  }
};

using IndexTypes = testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(RowBlockTest, IndexTypes);

TYPED_TEST(RowBlockTest, IsEmptyAtFirst) {
  const RowBlock<TypeParam> block;
  EXPECT_TRUE(block.empty());
  EXPECT_EQ(block.rows(), 0U);
  EXPECT_EQ(block.entries(), 0U);
  EXPECT_EQ(block.View().rows(), 0U);
  EXPECT_EQ(block.columns, 0U);
  EXPECT_EQ(block.least_index, TypeParam(-1));
}

TYPED_TEST(RowBlockTest, AppendPutsRowsBehindThoseThatAreThere) {
  auto block = this->Two();
  block.Append(this->One().View());
  EXPECT_EQ(block.rows(), 3U);
  EXPECT_EQ(Values(block.offsets), (Numbers{0, 1, 3, 4}));
  EXPECT_EQ(Values(block.indices), (std::vector<TypeParam>{3, 0, 7, 9}));
  EXPECT_EQ(Values(block.values), (Floats{0.5, 4, 8, 1}));
  EXPECT_EQ(Values(block.labels), (Floats{1, 2, 3}));
  EXPECT_EQ(block.columns, 10U);
  EXPECT_EQ(block.least_index, 0U);
  EXPECT_TRUE(block.label_offsets.empty());
  EXPECT_TRUE(block.weights.empty());
  EXPECT_TRUE(block.qids.empty());
  EXPECT_TRUE(block.fields.empty());
}

TYPED_TEST(RowBlockTest, AppendToAnEmptyBlockIsACopy) {
  RowBlock<TypeParam> block;
  block.Append(this->Two().View());
  EXPECT_EQ(Values(block.offsets), (Numbers{0, 1, 3}));
  EXPECT_EQ(Values(block.labels), (Floats{1, 2}));
  EXPECT_EQ(block.columns, 8U);
  EXPECT_EQ(block.least_index, 0U);
}

TYPED_TEST(RowBlockTest, AppendOfNoRowsChangesNothing) {
  auto block = this->Two();
  block.Append(RowBlock<TypeParam>().View());
  RowBlock<TypeParam> began;
  began.offsets.push_back(0);
  block.Append(began.View());
  EXPECT_EQ(Values(block.offsets), (Numbers{0, 1, 3}));
  EXPECT_EQ(block.columns, 8U);
  // Query ids in only one of the blocks are not an error here, since no rows are appended.
  Fill<std::uint64_t>(block.qids, {1, 2});
  EXPECT_NO_THROW(block.Append(began.View()));
}

TYPED_TEST(RowBlockTest, AppendKeepsRowsWithoutEntries) {
  auto block = this->Two();
  RowBlock<TypeParam> bare;
  Fill<std::uint64_t>(bare.offsets, {0, 0, 0});
  Fill(bare.labels, {5.0F, 6.0F});
  block.Append(bare.View());
  EXPECT_EQ(Values(block.offsets), (Numbers{0, 1, 3, 3, 3}));
  EXPECT_EQ(block.columns, 8U);
  EXPECT_EQ(block.least_index, 0U);
  bare.Append(this->One().View());
  EXPECT_EQ(Values(bare.offsets), (Numbers{0, 0, 0, 1}));
  EXPECT_EQ(bare.least_index, 9U);
}

TYPED_TEST(RowBlockTest, AppendMakesUpWeightsThatOneSideLacks) {
  auto weighted = this->Two();
  Fill(weighted.weights, {0.5F, 2.0F});
  auto block = weighted;
  block.Append(this->One().View());
  EXPECT_EQ(Values(block.weights), (Floats{0.5, 2, 1}));
  block = this->One();
  block.Append(weighted.View());
  EXPECT_EQ(Values(block.weights), (Floats{1, 0.5, 2}));
  block.Append(weighted.View());
  EXPECT_EQ(Values(block.weights), (Floats{1, 0.5, 2, 0.5, 2}));
}

TYPED_TEST(RowBlockTest, AppendKeepsQueryIdsOfBoth) {
  auto block = this->Two();
  Fill<std::uint64_t>(block.qids, {4, 4});
  auto other = this->One();
  Fill<std::uint64_t>(other.qids, {5});
  block.Append(other.View());
  EXPECT_EQ(Values(block.qids), (Numbers{4, 4, 5}));
  RowBlock<TypeParam> empty;
  empty.Append(block.View());
  EXPECT_EQ(Values(empty.qids), (Numbers{4, 4, 5}));
}

TYPED_TEST(RowBlockTest, AppendRefusesQueryIdsOnOneSideOnlyAndChangesNothing) {
  auto with = this->Two();
  Fill<std::uint64_t>(with.qids, {4, 4});
  auto without = this->One();
  EXPECT_THROW(with.Append(without.View()), DataError);
  EXPECT_THROW(without.Append(with.View()), DataError);
  EXPECT_EQ(Values(with.offsets), (Numbers{0, 1, 3}));
  EXPECT_EQ(with.entries(), 3U);
  EXPECT_EQ(Values(without.offsets), (Numbers{0, 1}));
  EXPECT_TRUE(without.qids.empty());
}

TYPED_TEST(RowBlockTest, AppendMakesUpLabelOffsetsThatOneSideLacks) {
  auto many = this->Two();
  many.labels.clear();
  Fill(many.labels, {1.0F, 2.0F, 3.0F});
  Fill<std::uint64_t>(many.label_offsets, {0, 2, 3});
  auto block = many;
  block.Append(this->One().View());
  EXPECT_EQ(Values(block.labels), (Floats{1, 2, 3, 3}));
  EXPECT_EQ(Values(block.label_offsets), (Numbers{0, 2, 3, 4}));
  block = this->One();
  block.Append(many.View());
  EXPECT_EQ(Values(block.labels), (Floats{3, 1, 2, 3}));
  EXPECT_EQ(Values(block.label_offsets), (Numbers{0, 1, 3, 4}));
  block.Append(many.View());
  EXPECT_EQ(Values(block.label_offsets), (Numbers{0, 1, 3, 4, 6, 7}));
  RowBlock<TypeParam> empty;
  empty.Append(many.View());
  EXPECT_EQ(Values(empty.label_offsets), (Numbers{0, 2, 3}));
}

TYPED_TEST(RowBlockTest, AppendMakesUpFieldsThatOneSideLacks) {
  auto with = this->Two();
  Fill<TypeParam>(with.fields, {5, 6, 7});
  auto block = with;
  block.Append(this->One().View());
  EXPECT_EQ(Values(block.fields), (std::vector<TypeParam>{5, 6, 7, 0}));
  block = this->One();
  block.Append(with.View());
  EXPECT_EQ(Values(block.fields), (std::vector<TypeParam>{0, 5, 6, 7}));
}

TYPED_TEST(RowBlockTest, ClearLeavesNothingThatLaterRowsWouldInherit) {
  auto block = this->Two();
  block.labels.push_back(9);
  Fill<std::uint64_t>(block.label_offsets, {0, 2, 3});
  Fill(block.weights, {0.5F, 2.0F});
  Fill<std::uint64_t>(block.qids, {4, 4});
  Fill<TypeParam>(block.fields, {5, 6, 7});
  block.Clear();
  EXPECT_TRUE(block.empty());
  EXPECT_EQ(block.entries(), 0U);
  block.Append(this->One().View());
  EXPECT_EQ(Values(block.offsets), (Numbers{0, 1}));
  EXPECT_EQ(Values(block.labels), (Floats{3}));
  EXPECT_TRUE(block.label_offsets.empty());
  EXPECT_TRUE(block.weights.empty());
  EXPECT_TRUE(block.qids.empty());
  EXPECT_TRUE(block.fields.empty());
  EXPECT_EQ(block.columns, 10U);
  EXPECT_EQ(block.least_index, 9U);
}

TYPED_TEST(RowBlockTest, ClearKeepsTheMemory) {
  auto block = this->Two();
  const void* const memory = block.indices.data();
  block.Clear();
  block.Append(this->Two().View());
  EXPECT_EQ(block.indices.data(), memory);
}

TYPED_TEST(RowBlockTest, TheViewShowsAllOfTheBlock) {
  auto block = this->Two();
  Fill(block.weights, {0.5F, 2.0F});
  Fill<std::uint64_t>(block.qids, {4, 4});
  Fill<TypeParam>(block.fields, {5, 6, 7});
  Fill<std::uint64_t>(block.label_offsets, {0, 1, 2});
  const RowView<TypeParam> view = block.View();
  EXPECT_EQ(view.rows(), 2U);
  EXPECT_EQ(view.entries(), 3U);
  EXPECT_EQ(view.offsets.data(), block.offsets.data());
  EXPECT_EQ(view.indices.data(), block.indices.data());
  EXPECT_EQ(view.values.data(), block.values.data());
  EXPECT_EQ(view.labels.data(), block.labels.data());
  EXPECT_EQ(view.label_offsets.data(), block.label_offsets.data());
  EXPECT_EQ(view.weights.data(), block.weights.data());
  EXPECT_EQ(view.qids.data(), block.qids.data());
  EXPECT_EQ(view.fields.data(), block.fields.data());
  EXPECT_EQ(view.columns, 8U);
  EXPECT_EQ(view.least_index, 0U);
}

/// Four rows with 0 to 3 entries and 1 to 3 labels, and every other array that a block can have.
template <typename Index>
RowBlock<Index> Full() {
  RowBlock<Index> block;
  Fill<std::uint64_t>(block.offsets, {0, 1, 1, 4, 6});
  Fill<Index>(block.indices, {10, 11, 12, 13, 14, 15});
  Fill(block.values, {0.0F, 1.0F, 2.0F, 3.0F, 4.0F, 5.0F});
  Fill(block.labels, {20.0F, 21.0F, 22.0F, 23.0F, 24.0F, 25.0F, 26.0F});
  Fill<std::uint64_t>(block.label_offsets, {0, 1, 3, 6, 7});
  Fill(block.weights, {0.5F, 1.5F, 2.5F, 3.5F});
  Fill<std::uint64_t>(block.qids, {1, 1, 2, 3});
  Fill<Index>(block.fields, {30, 31, 32, 33, 34, 35});
  block.columns = 16;
  block.least_index = 10;
  return block;
}

/// Compares the contents of the arrays, but not the number of columns.
template <typename Index>
void ExpectSameRows(const RowBlock<Index>& a, const RowBlock<Index>& b) {
  EXPECT_EQ(Values(a.offsets), Values(b.offsets));
  EXPECT_EQ(Values(a.indices), Values(b.indices));
  EXPECT_EQ(Values(a.values), Values(b.values));
  EXPECT_EQ(Values(a.labels), Values(b.labels));
  EXPECT_EQ(Values(a.label_offsets), Values(b.label_offsets));
  EXPECT_EQ(Values(a.weights), Values(b.weights));
  EXPECT_EQ(Values(a.qids), Values(b.qids));
  EXPECT_EQ(Values(a.fields), Values(b.fields));
}

TYPED_TEST(RowBlockTest, PartsAppendedOneAfterTheOtherAreTheWhole) {
  for (const auto& block : {Full<TypeParam>(), this->Two()}) {
    const std::size_t rows = block.rows();
    for (std::size_t first = 0; first <= rows; ++first) {
      for (std::size_t second = first; second <= rows; ++second) {
        RowBlock<TypeParam> joined;
        joined.Append(block.View().Part(0, first));
        joined.Append(block.View().Part(first, second));
        joined.Append(block.View().Part(second, rows));
        ExpectSameRows(joined, block);
      }
    }
  }
}

TYPED_TEST(RowBlockTest, APartHasItsRowsAlone) {
  const auto block = Full<TypeParam>();
  RowBlock<TypeParam> part;
  part.Append(block.View().Part(1, 3));
  EXPECT_EQ(Values(part.offsets), (Numbers{0, 0, 3}));
  EXPECT_EQ(Values(part.indices), (std::vector<TypeParam>{11, 12, 13}));
  EXPECT_EQ(Values(part.values), (Floats{1, 2, 3}));
  EXPECT_EQ(Values(part.labels), (Floats{21, 22, 23, 24, 25}));
  EXPECT_EQ(Values(part.label_offsets), (Numbers{0, 2, 5}));
  EXPECT_EQ(Values(part.weights), (Floats{1.5, 2.5}));
  EXPECT_EQ(Values(part.qids), (Numbers{1, 2}));
  EXPECT_EQ(Values(part.fields), (std::vector<TypeParam>{31, 32, 33}));
}

TYPED_TEST(RowBlockTest, APartOfAPartIsAPartOfTheWhole) {
  const auto block = Full<TypeParam>();
  for (std::size_t begin = 0; begin <= 4; ++begin) {
    for (std::size_t middle = begin; middle <= 4; ++middle) {
      RowBlock<TypeParam> direct;
      direct.Append(block.View().Part(middle, 4));
      RowBlock<TypeParam> nested;
      nested.Append(block.View().Part(begin, 4).Part(middle - begin, 4 - begin));
      ExpectSameRows(nested, direct);
    }
  }
}

TYPED_TEST(RowBlockTest, APartOfNothingIsEmpty) {
  EXPECT_EQ(RowBlock<TypeParam>().View().Part(0, 0).rows(), 0U);
  EXPECT_EQ(this->Two().View().Part(1, 1).rows(), 0U);
}

TYPED_TEST(RowBlockTest, APartGoesBehindRowsThatLackWhatItHas) {
  auto block = Full<TypeParam>();
  RowBlock<TypeParam> joined = this->One();
  Fill<std::uint64_t>(joined.qids, {9});
  joined.Append(block.View().Part(2, 4));
  EXPECT_EQ(Values(joined.offsets), (Numbers{0, 1, 4, 6}));
  EXPECT_EQ(Values(joined.label_offsets), (Numbers{0, 1, 4, 5}));
  EXPECT_EQ(Values(joined.labels), (Floats{3, 23, 24, 25, 26}));
  EXPECT_EQ(Values(joined.weights), (Floats{1, 2.5, 3.5}));
  EXPECT_EQ(Values(joined.fields), (std::vector<TypeParam>{0, 31, 32, 33, 34, 35}));
}

TYPED_TEST(RowBlockTest, TruncateLeavesTheFirstRows) {
  const auto whole = Full<TypeParam>();
  for (std::size_t rows = 1; rows <= 4; ++rows) {
    auto block = whole;
    block.Truncate(rows);
    RowBlock<TypeParam> expected;
    expected.Append(whole.View().Part(0, rows));
    ExpectSameRows(block, expected);
    block.Append(whole.View().Part(rows, 4));
    ExpectSameRows(block, whole);
  }
  auto two = this->Two();
  two.Truncate(1);
  EXPECT_EQ(Values(two.labels), (Floats{1}));
  EXPECT_EQ(Values(two.indices), (std::vector<TypeParam>{3}));
  two.Truncate(0);
  EXPECT_TRUE(two.empty());
  two.Truncate(0);
  two.Append(this->One().View());
  EXPECT_EQ(Values(two.labels), (Floats{3}));
  RowBlock<TypeParam> nothing;
  nothing.Truncate(0);
  EXPECT_TRUE(nothing.empty());
}

/// Enough 8-byte elements for an array to be mapped instead of allocated, and to have moved several times.
constexpr std::uint64_t kMany = (std::uint64_t{40} << 20) / sizeof(std::uint64_t);

std::uint64_t WrongValues(const Array<std::uint64_t>& array, std::uint64_t difference = 0) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < array.size(); ++i) wrong += array[i] != i + difference ? 1 : 0;
  return wrong;
}

Array<std::uint64_t> Counting(std::uint64_t size) {
  Array<std::uint64_t> array;
  array.resize(size);
  for (std::uint64_t i = 0; i < size; ++i) array[i] = i;
  return array;
}

TEST(Array, KeepsItsValuesWhileItGrowsFromNothingToManyPages) {
  Array<std::uint64_t> array;
  for (std::uint64_t i = 0; i < kMany; ++i) array.push_back(i);
  EXPECT_EQ(array.size(), kMany);
  EXPECT_EQ(WrongValues(array), 0U);
}

TEST(Array, KeepsItsValuesWhenOthersAreInTheWayOfItsGrowth) {
  Array<std::uint64_t> first;
  Array<std::uint64_t> second;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    first.push_back(i);
    second.push_back(i + 1);
  }
  EXPECT_EQ(WrongValues(first), 0U);
  EXPECT_EQ(WrongValues(second, 1), 0U);
}

TEST(Array, KeepsItsValuesAtEverySizeAroundTheFirstMapping) {
  constexpr std::uint64_t kFourMebibytes = (std::uint64_t{4} << 20) / sizeof(std::uint64_t);
  for (const std::uint64_t from :
       {std::uint64_t{0}, std::uint64_t{1}, kFourMebibytes - 1, kFourMebibytes, kFourMebibytes + 1}) {
    for (const std::uint64_t to : {kFourMebibytes - 1, kFourMebibytes, kFourMebibytes + 1,
                                   kFourMebibytes * 3 / 2, kFourMebibytes * 3 / 2 + 1, kFourMebibytes * 2}) {
      Array<std::uint64_t> array;
      array.reserve(from);
      array.resize(from);
      for (std::uint64_t i = 0; i < from; ++i) array[i] = i;
      array.reserve(to);
      EXPECT_GE(array.capacity(), to);
      EXPECT_EQ(WrongValues(array), 0U) << from << " to " << to;
      // All reserved memory is writable.
      for (std::uint64_t i = from; i < to; ++i) array.push_back(i);
      EXPECT_EQ(WrongValues(array), 0U) << from << " to " << to;
    }
  }
}

TEST(Array, ResizeWithAValueFillsWhatIsNewAlone) {
  Array<int> array;
  array.resize(3, 7);
  array.resize(5, 8);
  EXPECT_EQ(Values(array), (std::vector<int>{7, 7, 7, 8, 8}));
  array.resize(2, 9);
  EXPECT_EQ(Values(array), (std::vector<int>{7, 7}));
  array.resize(3, 9);
  EXPECT_EQ(Values(array), (std::vector<int>{7, 7, 9}));
}

TEST(Array, ShrinkingAndClearingKeepTheMemory) {
  Array<std::uint64_t> array = Counting(1000);
  const auto* const memory = array.data();
  array.resize(10);
  EXPECT_EQ(WrongValues(array), 0U);
  array.clear();
  EXPECT_TRUE(array.empty());
  array.resize(1000);
  EXPECT_EQ(array.data(), memory);
}

TEST(Array, TakesACopyOfItsOwnElement) {
  Array<std::uint64_t> array;
  array.push_back(42);
  for (int i = 0; i < 1000; ++i) array.push_back(array[0]);
  for (const std::uint64_t value : array) ASSERT_EQ(value, 42U);
}

TEST(Array, CopiesAreOnTheirOwn) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{5}, kMany}) {
    Array<std::uint64_t> array = Counting(size);
    Array<std::uint64_t> copy(array);
    Array<std::uint64_t> assigned = Counting(3);
    assigned = array;
    for (std::uint64_t& value : array) value = 1;
    EXPECT_EQ(copy.size(), size);
    EXPECT_EQ(WrongValues(copy), 0U);
    EXPECT_EQ(assigned.size(), size);
    EXPECT_EQ(WrongValues(assigned), 0U);
    const auto& itself = assigned;
    assigned = itself;
    EXPECT_EQ(assigned.size(), size);
    EXPECT_EQ(WrongValues(assigned), 0U);
  }
}

TEST(Array, MovesTakeTheMemoryAlong) {
  for (const std::uint64_t size : {std::uint64_t{5}, kMany}) {
    Array<std::uint64_t> array = Counting(size);
    const auto* const memory = array.data();
    Array<std::uint64_t> moved(std::move(array));
    EXPECT_EQ(moved.data(), memory);
    Array<std::uint64_t> assigned = Counting(kMany);
    assigned = std::move(moved);
    EXPECT_EQ(assigned.data(), memory);
    EXPECT_EQ(assigned.size(), size);
    EXPECT_EQ(WrongValues(assigned), 0U);
  }
}

TEST(Array, RefusesMoreThanThereCanBe) {
  Array<std::uint64_t> array = Counting(5);
  EXPECT_THROW(array.reserve(static_cast<std::size_t>(-1)), std::bad_alloc);
  EXPECT_THROW(array.reserve(static_cast<std::size_t>(-1) / 16), std::bad_alloc);
  EXPECT_EQ(array.size(), 5U);
  EXPECT_EQ(WrongValues(array), 0U);
}

}  // namespace
}  // namespace warren::data
