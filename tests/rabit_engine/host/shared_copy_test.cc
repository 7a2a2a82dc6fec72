#include "rabit_engine/host/shared_copy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace warren {
namespace {

TEST(CopyToShared, CopiesEveryLengthBetweenAnyTwoAddresses) {
  constexpr std::size_t kRoom = 70'000;
  constexpr std::byte kUntouched{0x5a};
  std::vector<std::byte> from(kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) from[i] = std::byte(i * 7 + i / 251);
  for (const std::size_t bytes : {0, 1, 63, 64, 2047, 2048, 2049, 4096, 5000, 65'536, 65'600}) {
    for (const std::size_t skip_from : {0, 1, 31}) {
      for (const std::size_t skip_to : {0, 3, 64}) {
        std::vector<std::byte> to(kRoom, kUntouched);
        CopyToShared(to.data() + skip_to, from.data() + skip_from, bytes);
        for (std::size_t i = 0; i < kRoom; ++i) {
          const bool inside = i >= skip_to && i < skip_to + bytes;
          ASSERT_EQ(to[i], inside ? from[i - skip_to + skip_from] : kUntouched)
              << bytes << " bytes from " << skip_from << " to " << skip_to << ", looking at " << i;
        }
      }
    }
  }
}

TEST(CopyToShared, OfNothingNeedsNoAddresses) {
  CopyToShared(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace warren
