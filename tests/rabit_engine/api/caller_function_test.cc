// The guarantees that rabit gives callers' reduction functions.
#include "rabit_engine/api/caller_function.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "rabit_engine/base/error.h"

namespace warren::api {
namespace {

struct Seen {
  bool aligned = true;
  std::size_t pieces = 0;
  std::size_t count = 0;
  std::size_t element_bytes = 0;
} seen;

std::size_t alignment = 1;

void Note(const void* src, const void* dst, int count, const MPI::Datatype& type) {
  seen.aligned = seen.aligned && reinterpret_cast<std::uintptr_t>(src) % alignment == 0 &&
                 reinterpret_cast<std::uintptr_t>(dst) % alignment == 0;
  ++seen.pieces;
  seen.count += static_cast<std::size_t>(count);
  seen.element_bytes = type.type_size;
}

struct Three {
  std::int32_t values[3];
};

void AddThrees(const void* src, void* dst, int count, const MPI::Datatype& type) {
  Note(src, dst, count, type);
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < 3; ++k) {
      static_cast<Three*>(dst)[i].values[k] =
          10 * static_cast<Three*>(dst)[i].values[k] + static_cast<const Three*>(src)[i].values[k];
    }
  }
}

TEST(CallerFunction, IsGivenAlignedMemoryWhereverTheBuffersLie) {
  // Enough elements for several pieces if the buffers must be copied.
  constexpr std::size_t kCount = 5000;
  alignment = 4;  // the largest power of two that divides 12
  for (std::size_t src_offset : {0, 1}) {
    for (std::size_t dst_offset : {0, 4, 7}) {
      seen = {};
      std::vector<std::int32_t> src_memory(3 * kCount + 4);
      std::vector<std::int32_t> dst_memory(3 * kCount + 4);
      char* const src = reinterpret_cast<char*>(src_memory.data()) + src_offset;
      char* const dst = reinterpret_cast<char*>(dst_memory.data()) + dst_offset;
      for (std::size_t i = 0; i < kCount; ++i) {
        const auto number = static_cast<std::int32_t>(i);
        const Three low{{number, 1, 2}};
        const Three high{{7, number, 9}};
        std::memcpy(dst + i * sizeof(Three), &low, sizeof(low));
        std::memcpy(src + i * sizeof(Three), &high, sizeof(high));
      }
      CallerFunction function(AddThrees, sizeof(Three));
      function.reduction().Combine(dst, dst, src, kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        const auto number = static_cast<std::int32_t>(i);
        Three result{};
        std::memcpy(&result, dst + i * sizeof(Three), sizeof(result));
        // dst is the left operand.
        ASSERT_EQ(result.values[0], 10 * number + 7);
        ASSERT_EQ(result.values[1], 10 + number);
        ASSERT_EQ(result.values[2], 29);
      }
      EXPECT_TRUE(seen.aligned);
      EXPECT_EQ(seen.count, kCount);
      EXPECT_EQ(seen.element_bytes, sizeof(Three));
    }
  }
}

void OnlyNote(const void* src, void* dst, int count, const MPI::Datatype& type) {
  Note(src, dst, count, type);
}

TEST(CallerFunction, IsGivenCountsThatFitIntoAnInt) {
  seen = {};
  alignment = 1;
  CallerFunction function(OnlyNote, 1);
  char bytes[2] = {};
  const std::size_t count = 2 * std::size_t{INT_MAX} + 5;
  // OnlyNote does not access the buffers, which are shorter than `count`.
  function.reduction().Combine(&bytes[0], &bytes[0], &bytes[1], count);
  EXPECT_EQ(seen.pieces, 3u);
  EXPECT_EQ(seen.count, count);
}

TEST(CallerFunction, RefusesNoFunctionAndElementsOfNoBytes) {
  EXPECT_THROW(CallerFunction(nullptr, 4), Misuse);
  EXPECT_THROW(CallerFunction(OnlyNote, 0), Misuse);
}

TEST(CallerFunction, AProcessThatTheFunctionForksDoesNotGoOn) {
  static pid_t child;
  CallerFunction function([](const void*, void*, int, const MPI::Datatype&) { child = fork(); }, sizeof(int));
  const Reduction reduction = function.reduction();
  int from = 1;
  int to = 2;
  bool refused = false;
  try {
    reduction.Combine(&to, &to, &from, 1);
  } catch (const Misuse& error) {
    refused = std::string_view(error.what()).starts_with("the reduction function forked this process");
  }
  if (child == 0) _exit(refused ? 0 : 1);
  EXPECT_FALSE(refused);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace warren::api
