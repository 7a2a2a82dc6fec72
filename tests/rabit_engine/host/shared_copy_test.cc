#include "rabit_engine/host/shared_copy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace warren {
namespace {

using Copy = void (*)(void*, const void*, std::size_t);

class SharedCopy : public testing::TestWithParam<Copy> {};

TEST_P(SharedCopy, CopiesEveryLengthBetweenAnyTwoAddresses) {
  constexpr std::size_t kRoom = 70'000;
  constexpr std::byte kUntouched{0x5a};
  std::vector<std::byte> from(kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) from[i] = std::byte(i * 7 + i / 251);
  for (const std::size_t bytes : {0, 1, 60, 63, 64, 130, 2047, 2048, 2049, 4096, 5000, 65'536, 65'600}) {
    for (const std::size_t skip_from : {0, 1, 31}) {
      for (const std::size_t skip_to : {0, 3, 64}) {
        std::vector<std::byte> to(kRoom, kUntouched);
        GetParam()(to.data() + skip_to, from.data() + skip_from, bytes);
        for (std::size_t i = 0; i < kRoom; ++i) {
          const bool inside = i >= skip_to && i < skip_to + bytes;
          ASSERT_EQ(to[i], inside ? from[i - skip_to + skip_from] : kUntouched)
              << bytes << " bytes from " << skip_from << " to " << skip_to << ", looking at " << i;
        }
      }
    }
  }
}

TEST_P(SharedCopy, OfNothingNeedsNoAddresses) {
  GetParam()(nullptr, nullptr, 0);
}

void CopyToNear(void* to, const void* from, std::size_t bytes) {
  CopyToShared(to, from, bytes, Reader::kNear);
}
void CopyToFar(void* to, const void* from, std::size_t bytes) {
  CopyToShared(to, from, bytes, Reader::kFar);
}
void CopyAmongCrowded(void* to, const void* from, std::size_t bytes) {
  CopyToShared(to, from, bytes, Reader::kCrowded);
}

INSTANTIATE_TEST_SUITE_P(, SharedCopy,
                         testing::Values(CopyToNear, CopyToFar, CopyAmongCrowded, CopyPastCaches));

}  // namespace
}  // namespace warren
