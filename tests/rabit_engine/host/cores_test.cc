// The detection of whether each rank has its own core.
#include "rabit_engine/host/cores.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <numeric>

#include "posix/cores.h"
#include "posix/cpu_quota.h"

namespace {

/// The largest mask that sched_getaffinity refuses. A kernel for more than 8192 cores refuses 1024 bytes.
std::size_t refused_mask_bytes = 0;

}  // namespace

/// Replaces the function of the C library in this program.
extern "C" int sched_getaffinity(pid_t thread, std::size_t bytes, cpu_set_t* mask) noexcept {
  if (bytes <= refused_mask_bytes) {
    errno = EINVAL;
    return -1;
  }
  std::memset(mask, 0, bytes);
  return syscall(SYS_sched_getaffinity, thread, bytes, mask) < 0 ? -1 : 0;
}

namespace warren {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Masks = std::vector<std::vector<int>>;

bool Each(const Masks& masks) {
  return EachHasACore(masks);
}

std::vector<int> First(int count) {
  std::vector<int> cores(count);
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

TEST(Cores, ComeToOtherRanksAsTheyAre) {
  EXPECT_EQ(EncodeCores(std::vector<int>{0, 1, 5}), "32");
  EXPECT_THAT(DecodeCores("32"), ElementsAre(0, 1, 5));
  for (const std::vector<int>& cores : {First(256), std::vector<int>{3, 63, 64, 1023}, std::vector<int>{}}) {
    EXPECT_EQ(DecodeCores(EncodeCores(cores)), cores);
  }
  EXPECT_THAT(DecodeCores("x1"), ElementsAre(4)) << "what is no digit has no cores";
  EXPECT_THAT(DecodeCores(std::string(300, '0') + "f"), IsEmpty()) << "no core has such a number";
}

TEST(Cores, OfThisThreadAreThoseOfItsMask) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_EQ(static_cast<int>(posix::OwnCores().size()), CPU_COUNT(&mask));
  EXPECT_LE(posix::UsableCores(), CPU_COUNT(&mask));
}

TEST(Cores, OfThisThreadAreKnownToAKernelForMoreCoresThanAPlainMaskHolds) {
#ifdef WARREN_PORTABLE
  GTEST_SKIP() << "SKIPPED: there are no masks of cores";
#endif
  const std::vector<int> known = posix::OwnCores();
  for (const std::size_t bytes : {sizeof(cpu_set_t), std::size_t{1024}}) {
    refused_mask_bytes = bytes;
    EXPECT_EQ(posix::OwnCores(), known) << bytes;
  }
  refused_mask_bytes = std::size_t{1} << 20;
  EXPECT_THAT(posix::OwnCores(), IsEmpty());
  refused_mask_bytes = 0;
}

TEST(EachHasACore, RanksThatAreNotBoundIfTheyAreNoMoreThanCores) {
  EXPECT_TRUE(Each(Masks(2, First(2))));
  EXPECT_FALSE(Each(Masks(3, First(2))));
  EXPECT_TRUE(Each(Masks(256, First(256))));
  EXPECT_FALSE(Each(Masks(257, First(256))));
}

TEST(EachHasACore, RanksThatAreBoundToDifferentCores) {
  EXPECT_TRUE(Each({{0}, {1}}));
  EXPECT_TRUE(Each({{0, 1}, {2, 3}, {4, 5}}));
}

TEST(EachHasACore, NotRanksThatAreBoundToTheSameCoreHoweverManyTheOthersHave) {
  EXPECT_FALSE(Each({{0}, {0}}));
  EXPECT_FALSE(Each({{0}, {0}, {1, 2, 3}}));
  EXPECT_FALSE(Each({{0, 1}, {1, 0}, {0}, {2, 3}}));
}

TEST(EachHasACore, OnesThatMayRunAnywhereTakeWhatTheBoundOnesLeave) {
  EXPECT_TRUE(Each({{0, 1}, {0}}));
  EXPECT_TRUE(Each({{0, 1, 2}, {0, 1}, {0}}));
  EXPECT_FALSE(Each({{0, 1}, {0}, {1}}));
}

TEST(EachHasACore, NotARankWhoseCoresAreUnknown) {
  EXPECT_FALSE(Each({{0}, {}}));
}

}  // namespace
}  // namespace warren
