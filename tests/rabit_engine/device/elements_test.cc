// The kernels' operations on elements, compiled for the host, give the same bits as the engine's own
// reductions.
#include "rabit_engine/device/cuda/elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "rabit_engine/device/host_reduction.h"

namespace warren::device {
namespace {

/// A number with random bits. NaNs are excluded, as they may differ in sign and payload.
template <typename T>
T AnyNumber(std::mt19937_64& random) {
  while (true) {
    const std::uint64_t bits = random();
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    const auto wide = static_cast<double>(Arithmetic<T>::Widen(value));
    // Large floats are excluded, too, so that few sums and products become infinite: infinity minus infinity
    // is a NaN. (On infinite results, the engine's and CUDA's float8 agree.)
    if (std::isfinite(wide) && (std::is_integral_v<T> || std::fabs(wide) < 100)) return value;
  }
}

template <ReduceOp operation, typename T>
void Compare(Type type) {
  std::mt19937_64 random(static_cast<unsigned>(operation) + 1);
  for (int ranks = 1; ranks <= 64; ranks = ranks < 9 ? ranks + 1 : ranks * 2 - 3) {
    for (int repetition = 0; repetition < 200; ++repetition) {
      std::vector<T> values;
      for (int rank = 0; rank < ranks; ++rank) values.push_back(AnyNumber<T>(random));
      const T on_device = CombineInOrder<operation, T>(
          ranks, [&](int rank) { return values[static_cast<std::size_t>(rank)]; });
      const auto expect_few = [&]<int most>(std::integral_constant<int, most>) {
        if (ranks > most) return;
        T few[most] = {};
        std::copy(values.begin(), values.end(), few);
        const T combined = CombineFew<operation>(ranks, few);
        ASSERT_EQ(std::memcmp(&combined, &on_device, sizeof(T)), 0) << ranks << " of " << most << " ranks";
      };
      expect_few(std::integral_constant<int, 2>());
      expect_few(std::integral_constant<int, 4>());
      expect_few(std::integral_constant<int, 8>());
      std::vector<const void*> inputs;
      for (const T& value : values) inputs.push_back(&value);
      T on_host;
      HostReduction(type, operation).CombineAll(&on_host, inputs, 1);
      if (operation == ReduceOp::kAverage) Divide(type, &on_host, 1, ranks);
      if (std::isnan(static_cast<double>(Arithmetic<T>::Widen(on_host)))) continue;
      ASSERT_EQ(std::memcmp(&on_device, &on_host, sizeof(T)), 0)
          << Name(type) << ' ' << Name(operation) << " of " << ranks
          << " ranks: " << static_cast<double>(Arithmetic<T>::Widen(on_device)) << " and "
          << static_cast<double>(Arithmetic<T>::Widen(on_host));
    }
  }
}

class EveryType : public testing::TestWithParam<int> {};

TEST_P(EveryType, HasTheBitsOfTheEngine) {
  const auto type = static_cast<Type>(GetParam());
  WithElement(type, [type](auto element) {
    using T = decltype(element);
    Compare<ReduceOp::kSum, T>(type);
    Compare<ReduceOp::kProduct, T>(type);
    Compare<ReduceOp::kMax, T>(type);
    Compare<ReduceOp::kMin, T>(type);
    Compare<ReduceOp::kAverage, T>(type);
  });
}

INSTANTIATE_TEST_SUITE_P(Elements, EveryType, testing::Range(0, kNumTypes),
                         [](const auto& info) { return std::string(Name(static_cast<Type>(info.param))); });

}  // namespace
}  // namespace warren::device
